package api

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// misuse is a field that is not what it has to be. Its param is put together on the way out, so that a good request
// pays nothing for it.
type misuse struct {
	param, text, code string
}

func (m *misuse) Error() string {
	if m.param == "" {
		return m.text
	}
	return "`" + shorten(m.param) + "` " + m.text
}

// at puts the place of a field before what is known of its error's place.
func at(place string, err error) error {
	m, ok := err.(*misuse) //nolint:errorlint // never wrapped on its way out
	if !ok {
		return err
	}
	switch {
	case m.param == "":
		m.param = place
	case m.param[0] == '[':
		m.param = place + m.param
	default:
		m.param = place + "." + m.param
	}
	return m
}

func wrong(v gjson.Result, want string) error {
	return &misuse{text: "must be " + want + ", got " + typeName(v) + "."}
}

func typeName(v gjson.Result) string {
	switch {
	case v.IsObject():
		return "an object"
	case v.IsArray():
		return "an array"
	}
	return map[gjson.Type]string{
		gjson.Null: "null", gjson.False: "a boolean", gjson.True: "a boolean", gjson.Number: "a number", gjson.String: "a string",
	}[v.Type]
}

func missing(name, what string) error {
	return &misuse{param: name, text: "is missing: " + what}
}

// walk calls f for each field of an object that isn't null: null is absent. It refuses a name that comes twice, as
// two readers of the same object could take two different values for it.
func walk(v gjson.Result, f func(name string, v gjson.Result) error) (err error) {
	if !v.IsObject() {
		return wrong(v, "an object")
	}
	var seen names
	v.ForEach(func(key, value gjson.Result) bool {
		switch {
		case seen.twice(key.Str):
			err = at(key.Str, &misuse{text: "is given twice in one object: leave one out."})
		case value.Type != gjson.Null:
			if err = f(key.Str, value); err != nil {
				err = at(key.Str, err)
			}
		}
		return err == nil
	})
	return err
}

// each calls f for each item of an array.
func each(v gjson.Result, f func(v gjson.Result) error) (err error) {
	if !v.IsArray() {
		return wrong(v, "an array")
	}
	i := 0
	v.ForEach(func(_, item gjson.Result) bool {
		if err = f(item); err != nil {
			err = at("["+strconv.Itoa(i)+"]", err)
		}
		i++
		return err == nil
	})
	return err
}

// names are the field names of one object; few as a rule, but nothing says so.
type names struct {
	few  []string
	many map[string]struct{}
}

func (n *names) twice(name string) bool {
	if n.many == nil && len(n.few) < 24 {
		if slices.Contains(n.few, name) {
			return true
		}
		n.few = append(n.few, name)
		return false
	}
	if n.many == nil {
		n.many = make(map[string]struct{})
		for _, s := range n.few {
			n.many[s] = struct{}{}
		}
	}
	_, found := n.many[name]
	n.many[name] = struct{}{}
	return found
}

func isText(v gjson.Result) error {
	if v.Type != gjson.String {
		return wrong(v, "a string")
	}
	return nil
}

func isBool(v gjson.Result) error {
	if !v.IsBool() {
		return wrong(v, "true or false")
	}
	return nil
}

func isObject(v gjson.Result) error {
	if !v.IsObject() {
		return wrong(v, "an object")
	}
	return nil
}

func text(v gjson.Result, into *string) error {
	*into = v.Str
	return isText(v)
}

func boolean(v gjson.Result, into *bool) error {
	*into = v.Bool()
	return isBool(v)
}

// number takes a number in a range.
func number(low, high float64) func(gjson.Result) error {
	want := fmt.Sprintf("a number from %g to %g", low, high)
	return func(v gjson.Result) error {
		if v.Type != gjson.Number {
			return wrong(v, want)
		}
		if v.Num < low || v.Num > high {
			return &misuse{text: "must be " + want + ", got " + shorten(v.Raw) + "."}
		}
		return nil
	}
}

// integer takes a whole number of at least low, of any size: it travels as it is written.
func integer(low float64) func(gjson.Result) error {
	return func(v gjson.Result) error {
		if v.Type != gjson.Number || strings.ContainsAny(v.Raw, ".eE") {
			return wrong(v, "an integer")
		}
		if v.Num < low {
			return &misuse{text: fmt.Sprintf("must be an integer of at least %g, got %s.", low, shorten(v.Raw))}
		}
		return nil
	}
}

// count takes a positive whole number that fits into 32 bits: more tokens than that nobody has.
func count(v gjson.Result) error {
	if err := integer(1)(v); err != nil {
		return err
	}
	return number(1, math.MaxInt32)(v)
}

// stringsOnly takes an array of at most so many strings.
func stringsOnly(v gjson.Result, most int) error {
	n := 0
	return each(v, func(item gjson.Result) error {
		if n++; n > most {
			return &misuse{text: fmt.Sprintf("is one too many: %d are allowed.", most)}
		}
		return isText(item)
	})
}
