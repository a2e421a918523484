package providers

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzWalk holds the walker to encoding/json, on any valid JSON.
func FuzzWalk(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":[1,{"c":"]}\\\""}],"d":{}}`, ` [ 1 , "x" , null ] `, `{}`, `"a"`, `{"":"\u00e9"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		require.Equal(t, json.Valid(data), valid(data))
		if !valid(data) {
			return
		}
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil && list != nil {
			for w := walk(data); len(list) > 0; list = list[1:] {
				value, ok := w.element()
				require.True(t, ok)
				require.Equal(t, string(list[0]), string(value))
			}
			return
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(data, &object) != nil {
			return
		}
		got := map[string]json.RawMessage{}
		for w := walk(data); ; {
			key, value, ok := w.member()
			if !ok {
				break
			}
			got[decodeKey(key)] = bytes.Clone(value)
		}
		require.Len(t, got, len(object))
		for k, v := range object {
			require.Equal(t, string(v), string(got[k]))
		}
	})
}

func TestValidHasABound(t *testing.T) {
	require.False(t, valid([]byte(strings.Repeat("[", 8<<20))), "deep nesting ends in no stack overflow")
	require.True(t, valid([]byte(`"`+strings.Repeat("x", 1<<20)+`"`)))
}

func TestNumber(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "12": 12, "-3": -3, "1.9": 1, "1e3": 1000, `"7"`: 7, `"7.0"`: 7, "9007199254740991": 1<<53 - 1,
	} {
		n, ok := number([]byte(in))
		require.True(t, ok, in)
		require.Equal(t, want, n, in)
	}
	for _, in := range []string{"", "null", "true", `"x"`, `"NaN"`, `"Infinity"`, "1e300", "{}", "[1]"} {
		_, ok := number([]byte(in))
		require.False(t, ok, in)
	}
}

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{`"a"`: "a", `"\u00e9\n"`: "é\n", `"\ud800"`: "\ufffd", "null": "", "1": "", `""`: ""} {
		require.Equal(t, want, unquote([]byte(in)))
	}
}
