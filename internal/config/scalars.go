package config

import (
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

var (
	idPattern  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	envPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	ssmPattern = regexp.MustCompile(`^ssm:/[A-Za-z0-9_./-]+$`)
	shaPattern = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
)

// secretPrefix begins a value that stands in a parameter store.
const secretPrefix = "ssm:"

// scalar gives the text of a plain value, its environment references replaced. plain says that none was in it.
func (d *decoder) scalar(n *yaml.Node, path string) (value string, plain, ok bool) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		d.fail(n, "%s wants a value, not %s", path, what(n))
		return "", false, false
	}
	value, missing, err := d.expand(n.Value)
	switch {
	case err != "":
		d.fail(n, "%s: %s", path, err)
	case missing != "":
		d.fail(n, "%s: the environment variable %s is not set", path, missing)
	default:
		return value, value == n.Value, true
	}
	return "", false, false
}

// expand replaces ${NAME}. An empty variable counts as unset: that is how compose files hand on what they lack.
func (d *decoder) expand(s string) (value, missing, problem string) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		out.WriteString(before)
		if !found {
			return out.String(), missing, ""
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !envPattern.MatchString(name) {
			return "", "", "${…} wants the name of an environment variable"
		}
		if v, ok := d.lookup(name); ok && v != "" {
			out.WriteString(v)
		} else if missing == "" {
			missing = name
		}
		s = after
	}
}

// words reads a text that may not stand in a parameter store.
func (d *decoder) words(n *yaml.Node, path string) (string, bool) {
	if tag := n.ShortTag(); n.Kind == yaml.ScalarNode && tag != "!!str" && tag != "!!timestamp" && !isNull(n) {
		d.fail(n, "%s wants text, not %s (put it in quotes)", path, what(n))
		return "", false
	}
	value, _, ok := d.scalar(n, path)
	if ok && strings.HasPrefix(value, secretPrefix) {
		d.fail(n, "%s can't be an ssm: reference (those are for providers and auth.keys)", path)
		return "", false
	}
	return value, ok
}

func (d *decoder) text(into *string) reader {
	return func(n *yaml.Node, path string) {
		if s, ok := d.words(n, path); ok {
			*into = s
		}
	}
}

// needed reads a text that says something.
func (d *decoder) needed(into *string) reader {
	return func(n *yaml.Node, path string) {
		s, ok := d.words(n, path)
		if ok && strings.TrimSpace(s) == "" {
			d.fail(n, "%s is empty", path)
			return
		}
		*into = s
	}
}

// id reads a name of the user's.
func (d *decoder) id(into *string) reader {
	return func(n *yaml.Node, path string) {
		s, ok := d.words(n, path)
		if !ok {
			return
		}
		if !idPattern.MatchString(s) {
			d.fail(n, "%s: %q is no id: 1 to 64 of A-Z a-z 0-9 . _ -", path, brief(n.Value))
			return
		}
		*into = s
	}
}

// ids reads a list of names, at least one, each once.
func (d *decoder) ids(into *[]string) reader {
	return func(n *yaml.Node, path string) {
		*into = []string{}
		d.list(func(_ int, n *yaml.Node, at string) {
			var s string
			if d.id(&s)(n, at); slices.Contains(*into, s) {
				d.fail(n, "%s: %q is listed twice", path, brief(n.Value))
			}
			*into = append(*into, s)
		})(n, path)
		if n.Kind == yaml.SequenceNode && len(n.Content) == 0 || isNull(n) {
			d.fail(n, "%s is empty", path)
		}
	}
}

func (d *decoder) oneOf(into *string, words ...string) reader {
	return func(n *yaml.Node, path string) {
		s, ok := d.words(n, path)
		if !ok {
			return
		}
		if !slices.Contains(words, s) {
			d.fail(n, "%s: %q is none of %s", path, brief(n.Value), choices(words))
			return
		}
		*into = s
	}
}

func (d *decoder) boolean(into *bool) reader {
	return func(n *yaml.Node, path string) {
		s, plain, ok := d.scalar(n, path)
		if !ok {
			return
		}
		if s != "true" && s != "false" || plain && n.ShortTag() != "!!bool" {
			d.fail(n, "%s: %q is neither true nor false", path, brief(n.Value))
			return
		}
		*into = s == "true"
	}
}

func (d *decoder) optionalBool(into **bool) reader {
	return func(n *yaml.Node, path string) {
		*into = new(bool)
		d.boolean(*into)(n, path)
	}
}

func (d *decoder) integer(into *int, least, most int) reader {
	return func(n *yaml.Node, path string) {
		s, plain, ok := d.scalar(n, path)
		if !ok {
			return
		}
		v, err := strconv.Atoi(s)
		switch {
		case err != nil || plain && n.ShortTag() != "!!int":
			d.fail(n, "%s: %q is no whole number", path, brief(n.Value))
		case v < least || v > most:
			d.fail(n, "%s: %s is not between %d and %d", path, brief(n.Value), least, most)
		default:
			*into = v
		}
	}
}

func (d *decoder) optionalInt(into **int, least, most int) reader {
	return func(n *yaml.Node, path string) {
		*into = new(int)
		d.integer(*into, least, most)(n, path)
	}
}

// number reads a number from least to most; above leaves least itself out.
func (d *decoder) number(into *float64, least, most float64, above bool) reader {
	return func(n *yaml.Node, path string) {
		s, plain, ok := d.scalar(n, path)
		if !ok {
			return
		}
		v, err := strconv.ParseFloat(s, 64)
		numeric := n.ShortTag() == "!!int" || n.ShortTag() == "!!float"
		switch {
		case err != nil || plain && !numeric || math.IsNaN(v) || math.IsInf(v, 0):
			d.fail(n, "%s: %q is no number", path, brief(n.Value))
		case v < least || v > most || above && v == least:
			d.fail(n, "%s: %s is out of range", path, brief(n.Value))
		default:
			*into = v
		}
	}
}

// duration reads a Go duration above 0.
func (d *decoder) duration(into *time.Duration) reader {
	return d.clock(into, func(v time.Duration) bool { return v > 0 }, "must be more than 0")
}

// optionalDuration reads a Go duration, 0 included.
func (d *decoder) optionalDuration(into *time.Duration) reader {
	return d.clock(into, func(v time.Duration) bool { return v >= 0 }, "can't be negative")
}

// limit reads a Go duration above 0, or none.
func (d *decoder) limit(into *time.Duration) reader {
	read := d.optionalDuration(into)
	return func(n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode && n.Value == "none" {
			*into = 0
			return
		}
		read(n, path)
	}
}

func (d *decoder) clock(into *time.Duration, allowed func(time.Duration) bool, rule string) reader {
	return func(n *yaml.Node, path string) {
		s, _, ok := d.scalar(n, path)
		if !ok {
			return
		}
		v, err := time.ParseDuration(s)
		switch {
		case err != nil:
			d.fail(n, "%s: %q is no duration (such as 500ms, 30s, 2m)", path, brief(n.Value))
		case !allowed(v):
			d.fail(n, "%s: %s %s", path, brief(n.Value), rule)
		default:
			*into = v
		}
	}
}

// size reads a number of bytes with its unit.
func (d *decoder) size(into *int64) reader {
	return func(n *yaml.Node, path string) {
		s, _, ok := d.scalar(n, path)
		if !ok {
			return
		}
		v, ok := parseSize(s)
		if !ok || v <= 0 {
			d.fail(n, "%s: %q is no size (such as 512KiB, 10MiB, 5MB)", path, brief(n.Value))
			return
		}
		*into = v
	}
}

// parseSize reads a number with the unit B, KB, MB, GB, KiB, MiB or GiB, up to 1 TiB.
func parseSize(s string) (int64, bool) {
	digits := strings.TrimRight(s, "BGKMi")
	factor, ok := unit(s[len(digits):])
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if !ok || err != nil || math.IsNaN(v) || v*factor > 1<<40 {
		return 0, false
	}
	return int64(v * factor), true
}

func unit(name string) (float64, bool) {
	switch name {
	case "B":
		return 1, true
	case "KB":
		return 1e3, true
	case "MB":
		return 1e6, true
	case "GB":
		return 1e9, true
	case "KiB":
		return 1 << 10, true
	case "MiB":
		return 1 << 20, true
	case "GiB":
		return 1 << 30, true
	}
	return 0, false
}

// moment reads a time of day and date, or a date (its start, UTC).
func (d *decoder) moment(into *time.Time) reader {
	return func(n *yaml.Node, path string) {
		s, ok := d.words(n, path)
		if !ok {
			return
		}
		for _, layout := range []string{time.RFC3339, time.DateOnly} {
			if t, err := time.Parse(layout, s); err == nil {
				*into = t
				return
			}
		}
		d.fail(n, "%s: %q is no time (such as 2026-01-31T18:00:00Z)", path, brief(n.Value))
	}
}

// deferred reads a text that may also stand in a parameter store; check judges it where it doesn't.
func (d *decoder) deferred(into *string, check func(string) (problem string)) reader {
	return func(n *yaml.Node, path string) {
		s, _, ok := d.scalar(n, path)
		if !ok {
			return
		}
		problem := ""
		switch {
		case strings.HasPrefix(s, secretPrefix) && !ssmPattern.MatchString(s):
			problem = "wants ssm:/ and the path of a parameter"
		case !strings.HasPrefix(s, secretPrefix):
			problem = check(s)
		}
		if problem != "" {
			d.fail(n, "%s %s", path, problem)
			return
		}
		*into = s
	}
}

// What is wrong with a value; "" for nothing. The values themselves are never repeated.

// wrongLink says what is wrong with a base URL. It doesn't repeat it: there may be credentials in it.
func wrongLink(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "is no http or https URL"
	}
	if u.Fragment != "" {
		return "can't have a fragment"
	}
	return ""
}

func wrongKey(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "has a space or a character that no key has"
	}
	return ""
}

func wrongHeader(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return "has a line break or another control character"
	}
	return ""
}

func anything(string) string { return "" }

func wrongHash(s string) string {
	if !shaPattern.MatchString(s) {
		return "wants 64 hex digits: the SHA-256 of the key, never the key itself"
	}
	return ""
}
