package providers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// heard is what a stream said, and how it ended.
type heard struct {
	text, reasoning, finish string
	usage                   string
	chunks                  int
	err                     error
}

// listen reads a stream to its end and closes it.
func listen(s Stream) heard {
	defer s.Close()
	var h heard
	for {
		c, err := s.Next()
		if err != nil {
			h.err = err
			return h
		}
		h.chunks++
		d := gjson.GetBytes(c.Data, "choices.0.delta")
		h.text += d.Get("content").Str
		h.reasoning += d.Get("reasoning_content").Str
		h.finish += gjson.GetBytes(c.Data, "choices.0.finish_reason").Str
		if c.Usage != nil {
			h.usage = string(c.Usage)
		}
	}
}

func asks(text string) *Request { return &Request{Messages: []Message{{Role: "user", Text: text}}} }

func TestScriptPlaysItsModel(t *testing.T) {
	tests := []struct {
		name, model string
		want        heard
		kind        Kind
		took        time.Duration
	}{
		{"echo", "echo", heard{text: "Hello! You said: hi there", finish: "stop"}, KindNone, 0},
		{"slow echo", "echo,first=300ms,gap=30ms", heard{text: "Hello! You said: hi there", finish: "stop"}, KindNone, 420 * time.Millisecond},
		{"text with commas", "gap=1s,text=One, two=2, three", heard{text: "One, two=2, three", finish: "stop"}, KindNone, 2 * time.Second},
		{"reasoning", "text=four,reasoning=2 and 2", heard{text: "four,reasoning=2 and 2", finish: "stop"}, KindNone, 0},
		{"reasoning first", "reasoning=2 and 2,text=four", heard{text: "four", reasoning: "2 and 2", finish: "stop"}, KindNone, 0},
		{"cut", "cut,text=a b c d", heard{text: "a b "}, KindTruncated, 0},
		{"cut echo", "cut", heard{text: "Hello! You said: "}, KindTruncated, 0},
		{"empty", "empty,first=1s", heard{finish: "stop"}, KindEmpty, time.Second},
		{"hang", "hang", heard{}, KindCanceled, time.Minute},
		{"hang after text", "hang,text=a b", heard{text: "a b"}, KindCanceled, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("mine"))
				defer cancel()
				start := time.Now()
				s, err := NewScript(Settings{}).Stream(ctx, Call{Request: asks("hi there"), Model: tt.model})
				require.NoError(t, err)
				got := listen(s)
				if tt.kind == KindNone {
					require.ErrorIs(t, got.err, io.EOF)
					require.Positive(t, gjson.Get(got.usage, "completion_tokens").Int())
				} else {
					require.Equal(t, tt.kind, AsError(got.err).Kind)
				}
				if tt.kind == KindCanceled {
					require.ErrorContains(t, got.err, "mine")
				}
				require.Equal(t, tt.took, time.Since(start))
				got.err, got.usage, got.chunks = nil, "", 0
				require.Equal(t, tt.want, got)
			})
		})
	}
}

func TestScriptRefuses(t *testing.T) {
	for status, kind := range map[int]Kind{503: KindOverloaded, 500: KindServerError, 429: KindRateLimited, 401: KindAuth, 400: KindBadRequest} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			model := fmt.Sprintf("status=%d,first=1s,retry_after=3s", status)
			_, err := NewScript(Settings{}).Stream(t.Context(), Call{Request: asks("hi"), Model: model})
			e := AsError(err)
			require.Equal(t, kind, e.Kind)
			require.Equal(t, status, e.Status)
			require.Equal(t, 3*time.Second, e.RetryAfter)
			require.Equal(t, time.Second, time.Since(start))
		})
	}
}

func TestScriptStopsWhenTheCallerLeaves(t *testing.T) {
	for _, model := range []string{"echo,first=1h", "echo,gap=1h", "hang", "status=500,first=1h", "empty,first=1h"} {
		synctest.Test(t, func(t *testing.T) {
			gone := errors.New("gone")
			ctx, leave := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { leave(gone) })
			start := time.Now()
			s, err := NewScript(Settings{}).Stream(ctx, Call{Request: asks("hi there"), Model: model})
			if err == nil {
				err = listen(s).err
			}
			require.ErrorIs(t, err, gone, model)
			require.Equal(t, time.Second, time.Since(start), model)
		})
	}
}

func TestScriptOutage(t *testing.T) {
	s := NewScript(Settings{})
	s.SetOutage(true)
	_, err := s.Stream(t.Context(), Call{Request: asks("hi"), Model: "echo"})
	require.Equal(t, &Error{Kind: KindOverloaded, Status: 503, Code: "outage"}, AsError(err))
	s.SetOutage(false)
	up, err := s.Stream(t.Context(), Call{Request: asks("hi"), Model: "echo"})
	require.NoError(t, err)
	require.ErrorIs(t, listen(up).err, io.EOF)
}

func TestCheckScript(t *testing.T) {
	tests := map[string]string{
		"echo":                   "",
		"echo,first=1s,gap=20ms": "",
		"echo, gap=20ms":         "",
		"status=503":             "",
		"cut,text=a,b":           "",
		"":                       "does one of",
		"gap=1s":                 "does one of",
		"gpt-4o":                 `unknown setting "gpt-4o"`,
		"echo=1":                 "takes no value",
		"echo,hang":              "both echo and hang",
		"echo,text=a":            "both echo and text",
		"status=200":             "not between",
		"status=x":               "not between",
		"echo,gap=3":             "not a duration",
		"echo,gap=-1s":           "not a duration",
		"echo,gap=1s,gap=2s":     "gap twice",
		"text=":                  "says nothing",
	}
	for model, want := range tests {
		err := CheckScript(model)
		if want == "" {
			require.NoError(t, err, model)
			continue
		}
		require.ErrorContains(t, err, want, model)
		_, err = NewScript(Settings{}).Stream(t.Context(), Call{Request: asks("hi"), Model: model})
		require.Equal(t, KindModelMissing, AsError(err).Kind)
	}
}

func FuzzWords(f *testing.F) {
	for _, s := range []string{"", "a b", "  lead", "你好世界你好世界你好世界", "tail  ", "\xff\xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := words(s)
		require.Equal(t, s, strings.Join(out, ""))
		require.NotContains(t, out, "")
	})
}
