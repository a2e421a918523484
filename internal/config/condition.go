package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/syntax"
)

// Facts are what a rule's condition sees of a request.
type Facts struct {
	Tokens   int // estimate of the prompt
	Messages int
	Tools    int
	Images   int
	Hour     int // 0 to 23, UTC
	Thinking bool
	Stream   bool
	Task     string
	Tenant   string
	Model    string // as asked for; "" or auto where the configuration chooses
	Tags     map[string]string
}

// Condition says whether a request has what a rule asks for. It can't fail, waits for nothing and allocates nothing.
type Condition func(*Facts) bool

// maxCondition bounds a condition's text, and with it how deep it nests and how long it takes.
const maxCondition = 2000

// factNames are the variables of a condition.
const factNames = "tokens, messages, tools, images, hour, thinking, stream, task, tenant, model, tags"

// compile makes a condition of an expression in Starlark's syntax. Its types are checked here, so that nothing is
// left that could go wrong with a request.
func compile(when string) (Condition, error) {
	if len(when) > maxCondition {
		return nil, fmt.Errorf("is longer than %d bytes", maxCondition)
	}
	text := strings.TrimSpace(words(when))
	if strings.Contains(text, "\n") {
		text = "(" + text + "\n)" // within brackets a line may end anywhere
	}
	tree, err := (&syntax.FileOptions{}).ParseExpr("", text, 0)
	if err != nil {
		return nil, badSyntax(err)
	}
	v, err := build(tree)
	if err != nil {
		return nil, err
	}
	if v.truth == nil {
		return nil, fmt.Errorf("gives %s, and has to give true or false", v.what())
	}
	return v.truth, nil
}

// words writes &&, || and ! as and, or and not, outside of texts: many who write conditions think in those.
func words(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		n, word := 1, ""
		switch {
		case rest[0] == '"' || rest[0] == '\'':
			n = quoted(rest)
		case strings.HasPrefix(rest, "&&"):
			n, word = 2, " and "
		case strings.HasPrefix(rest, "||"):
			n, word = 2, " or "
		case rest[0] == '!' && !strings.HasPrefix(rest, "!="):
			word = " not "
		}
		out.WriteString(cmp.Or(word, rest[:n]))
		i += n
	}
	return out.String()
}

// quoted is the length of the text in quotes that s begins with.
func quoted(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++ // what is escaped ends no text
		case s[0]:
			return i + 1
		}
	}
	return len(s)
}

// badSyntax is what the parser says, without a file's name.
func badSyntax(err error) error {
	var e syntax.Error
	if !errors.As(err, &e) {
		return errors.New("is no condition")
	}
	return fmt.Errorf("%s: %s", place(e.Pos), clip(e.Msg, 200))
}

// wrongAt is what is wrong at a place of a condition.
func wrongAt(x syntax.Node, format string, args ...any) error {
	start, _ := x.Span()
	return fmt.Errorf("%s: %s", place(start), fmt.Sprintf(format, args...))
}

// place is where in a condition something is.
func place(p syntax.Position) string {
	if p.Line > 1 {
		return fmt.Sprintf("line %d, column %d", p.Line, p.Col)
	}
	return fmt.Sprintf("column %d", p.Col)
}

// value is a part of a condition: exactly one of its fields is set, and says of what type it is.
type value struct {
	truth   Condition
	number  func(*Facts) int
	text    func(*Facts) string
	tags    func(*Facts) map[string]string
	texts   []string // a list
	numbers []int    // a list
}

func (v value) what() string {
	switch {
	case v.truth != nil:
		return "true or false"
	case v.number != nil:
		return "a number"
	case v.text != nil:
		return "a text"
	case v.tags != nil:
		return "the tags"
	}
	return "a list"
}

// build makes a value of a syntax tree.
func build(tree syntax.Expr) (value, error) {
	switch x := tree.(type) {
	case *syntax.ParenExpr:
		return build(x.X)
	case *syntax.Ident:
		return fact(x)
	case *syntax.Literal:
		return literal(x)
	case *syntax.ListExpr:
		return list(x, x.List)
	case *syntax.TupleExpr:
		return list(x, x.List)
	case *syntax.UnaryExpr:
		return unary(x)
	case *syntax.BinaryExpr:
		return binary(x)
	case *syntax.IndexExpr:
		return index(x)
	case *syntax.DotExpr:
		return tag(x)
	case *syntax.CallExpr:
		return call(x)
	}
	return value{}, wrongAt(tree, "conditions have comparisons, and, or, not, in, + - *, .startswith and .endswith only")
}

func fact(x *syntax.Ident) (value, error) {
	switch x.Name {
	case "tokens":
		return value{number: func(f *Facts) int { return f.Tokens }}, nil
	case "messages":
		return value{number: func(f *Facts) int { return f.Messages }}, nil
	case "tools":
		return value{number: func(f *Facts) int { return f.Tools }}, nil
	case "images":
		return value{number: func(f *Facts) int { return f.Images }}, nil
	case "hour":
		return value{number: func(f *Facts) int { return f.Hour }}, nil
	case "thinking":
		return value{truth: func(f *Facts) bool { return f.Thinking }}, nil
	case "stream":
		return value{truth: func(f *Facts) bool { return f.Stream }}, nil
	case "task":
		return value{text: func(f *Facts) string { return f.Task }}, nil
	case "tenant":
		return value{text: func(f *Facts) string { return f.Tenant }}, nil
	case "model":
		return value{text: func(f *Facts) string { return f.Model }}, nil
	case "tags":
		return value{tags: func(f *Facts) map[string]string { return f.Tags }}, nil
	case "True", "true":
		return value{truth: func(*Facts) bool { return true }}, nil
	case "False", "false":
		return value{truth: func(*Facts) bool { return false }}, nil
	}
	return value{}, wrongAt(x, "there is no %q: conditions see %s", brief(x.Name), factNames)
}

func literal(x *syntax.Literal) (value, error) {
	switch v := x.Value.(type) {
	case string:
		if x.Token == syntax.STRING {
			return value{text: func(*Facts) string { return v }}, nil
		}
	case int64:
		if n := int(v); n <= maxTokens {
			return value{number: func(*Facts) int { return n }}, nil
		}
	}
	return value{}, wrongAt(x, "%s is neither a text nor a whole number up to %d", brief(x.Raw), maxTokens)
}

// list takes texts or numbers, as they stand.
func list(tree syntax.Expr, items []syntax.Expr) (value, error) {
	v := value{}
	for _, item := range items {
		_, plain := item.(*syntax.Literal)
		if !plain {
			return value{}, wrongAt(item, "a list holds texts or numbers as they stand")
		}
		one, err := build(item)
		switch {
		case err != nil:
			return value{}, err
		case one.text != nil:
			v.texts = append(v.texts, one.text(nil))
		default:
			v.numbers = append(v.numbers, one.number(nil))
		}
	}
	if (v.texts == nil) == (v.numbers == nil) {
		return value{}, wrongAt(tree, "a list holds texts or numbers, not both, and at least one")
	}
	return v, nil
}

func unary(x *syntax.UnaryExpr) (value, error) {
	v, err := build(x.X)
	switch {
	case err != nil:
		return value{}, err
	case x.Op == syntax.NOT && v.truth != nil:
		return value{truth: func(f *Facts) bool { return !v.truth(f) }}, nil
	case x.Op == syntax.MINUS && v.number != nil:
		return value{number: func(f *Facts) int { return -v.number(f) }}, nil
	}
	return value{}, wrongAt(x, "%s is not for %s", x.Op, v.what())
}

func binary(x *syntax.BinaryExpr) (value, error) {
	a, err := build(x.X)
	if err != nil {
		return value{}, err
	}
	b, err := build(x.Y)
	if err != nil {
		return value{}, err
	}
	var v value
	switch {
	case x.Op == syntax.IN:
		v.truth = within(a, b)
	case x.Op == syntax.NOT_IN:
		if in := within(a, b); in != nil {
			v.truth = func(f *Facts) bool { return !in(f) }
		}
	case a.truth != nil && b.truth != nil:
		v.truth = logic(x.Op, a.truth, b.truth)
	case a.number != nil && b.number != nil:
		v.truth, v.number = compare(x.Op, a.number, b.number), arithmetic(x.Op, a.number, b.number)
	case a.text != nil && b.text != nil:
		v.truth = compare(x.Op, a.text, b.text)
	}
	if v.truth == nil && v.number == nil {
		return value{}, wrongAt(x, "%s is not for %s and %s", x.Op, a.what(), b.what())
	}
	return v, nil
}

func logic(op syntax.Token, a, b Condition) Condition {
	switch op {
	case syntax.AND:
		return func(f *Facts) bool { return a(f) && b(f) }
	case syntax.OR:
		return func(f *Facts) bool { return a(f) || b(f) }
	case syntax.EQL:
		return func(f *Facts) bool { return a(f) == b(f) }
	case syntax.NEQ:
		return func(f *Facts) bool { return a(f) != b(f) }
	}
	return nil
}

func compare[T cmp.Ordered](op syntax.Token, a, b func(*Facts) T) Condition {
	switch op {
	case syntax.EQL:
		return func(f *Facts) bool { return a(f) == b(f) }
	case syntax.NEQ:
		return func(f *Facts) bool { return a(f) != b(f) }
	case syntax.LT:
		return func(f *Facts) bool { return a(f) < b(f) }
	case syntax.LE:
		return func(f *Facts) bool { return a(f) <= b(f) }
	case syntax.GT:
		return func(f *Facts) bool { return a(f) > b(f) }
	case syntax.GE:
		return func(f *Facts) bool { return a(f) >= b(f) }
	}
	return nil
}

func arithmetic(op syntax.Token, a, b func(*Facts) int) func(*Facts) int {
	switch op {
	case syntax.PLUS:
		return func(f *Facts) int { return a(f) + b(f) }
	case syntax.MINUS:
		return func(f *Facts) int { return a(f) - b(f) }
	case syntax.STAR:
		return func(f *Facts) int { return a(f) * b(f) }
	}
	return nil
}

// within is a in b: an item in a list, a key in the tags, a piece in a text.
func within(a, b value) Condition {
	switch {
	case a.text != nil && b.texts != nil:
		return func(f *Facts) bool { return slices.Contains(b.texts, a.text(f)) }
	case a.number != nil && b.numbers != nil:
		return func(f *Facts) bool { return slices.Contains(b.numbers, a.number(f)) }
	case a.text != nil && b.tags != nil:
		return func(f *Facts) bool { _, ok := b.tags(f)[a.text(f)]; return ok }
	case a.text != nil && b.text != nil:
		return func(f *Facts) bool { return strings.Contains(b.text(f), a.text(f)) }
	}
	return nil
}

// index is tags["key"], "" where there is no such tag.
func index(x *syntax.IndexExpr) (value, error) {
	of, err := build(x.X)
	if err != nil {
		return value{}, err
	}
	key, err := build(x.Y)
	switch {
	case err != nil:
		return value{}, err
	case of.tags == nil || key.text == nil:
		return value{}, wrongAt(x, "[…] is for the tags, as in tags[\"team\"]")
	}
	return value{text: func(f *Facts) string { return of.tags(f)[key.text(f)] }}, nil
}

// tag is tags.key, the same as tags["key"].
func tag(x *syntax.DotExpr) (value, error) {
	of, err := build(x.X)
	switch {
	case err != nil:
		return value{}, err
	case of.tags == nil:
		return value{}, wrongAt(x, "%s has no %q", of.what(), brief(x.Name.Name))
	}
	key := x.Name.Name
	return value{text: func(f *Facts) string { return of.tags(f)[key] }}, nil
}

// call is one of the two questions one may ask a text.
func call(x *syntax.CallExpr) (value, error) {
	method, ok := x.Fn.(*syntax.DotExpr)
	if !ok || len(x.Args) != 1 || method.Name.Name != "startswith" && method.Name.Name != "endswith" {
		return value{}, wrongAt(x, "the calls are TEXT.startswith(TEXT) and TEXT.endswith(TEXT)")
	}
	of, err := build(method.X)
	if err != nil {
		return value{}, err
	}
	part, err := build(x.Args[0])
	switch {
	case err != nil:
		return value{}, err
	case of.text == nil || part.text == nil:
		return value{}, wrongAt(x, "%s is for texts", method.Name.Name)
	case method.Name.Name == "startswith":
		return value{truth: func(f *Facts) bool { return strings.HasPrefix(of.text(f), part.text(f)) }}, nil
	}
	return value{truth: func(f *Facts) bool { return strings.HasSuffix(of.text(f), part.text(f)) }}, nil
}
