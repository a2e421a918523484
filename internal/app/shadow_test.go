package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/cache"
	"holdfast/internal/config"
	"holdfast/internal/providers"
	"holdfast/internal/providers/providertest"
	"holdfast/internal/routing"
)

// chats are the events of all requests so far.
func (l *lab) chats() (events []map[string]any) {
	for line := range strings.Lines(l.log.String()) {
		var e map[string]any
		require.NoError(l.t, json.Unmarshal([]byte(line), &e))
		if e["msg"] == "chat" {
			events = append(events, e)
		}
	}
	return events
}

// shadowed are the shadow's words of the last request.
func (l *lab) shadowed() (out []any) {
	events := l.chats()
	e := events[len(events)-1]
	for _, name := range []string{"shadow_rule", "shadow_agree", "shadow_how", "shadow_similarity", "shadow_overlap"} {
		out = append(out, e[name])
	}
	return out
}

func TestShadowComparesWhatTheCacheHas(t *testing.T) {
	eachStore(t, func(t *testing.T, p Places) {
		for _, mode := range []string{"fallback", "front"} {
			first := lookFirst(t, "cache: {mode: "+mode+", shadow: 1}\n", p, "an oracle")
			q, none := fresh(), []any{nil, nil, nil, nil, nil}
			ask := func(members string, headers ...string) []any {
				require.Equal(t, "model", first.body(q, members, headers...).meta.Tier)
				return first.shadowed()
			}
			require.Equal(t, []any{"miss", nil, nil, nil, nil}, ask(""))
			require.Equal(t, []any{"exact", 1.0, "text", 1.0, 1.0}, ask(`,"seed":1`))
			q = strings.ToLower(q)
			first.up[0].Play(providertest.Says("No cheese ", "melts so well."))
			require.Equal(t, []any{"canonical", 0.0, "words", 1.0, 0.0}, ask(`,"seed":2`))
			require.Equal(t, none, ask(`,"seed":3`, "Cache-Control", "no-cache"), "not looked up in any tier")
			first.up[0].Play(down())
			require.Equal(t, "No cheese melts so well.", first.body(q, `,"seed":9`).text, "the newer answer took the older one's place")
			require.Equal(t, none, first.shadowed(), "no model answered")
			for _, text := range []string{"cheese", "oracle", "bridges"} {
				require.NotContains(t, first.log.String(), text)
			}
		}
	})
}

func TestNoShadow(t *testing.T) {
	for _, cached := range []string{"mode: fallback", "mode: fallback, shadow: 0", `mode: "off", shadow: 1`} {
		l, q := lookFirst(t, "cache: {"+cached+"}\n", Places{}, "a"), fresh()
		for range 3 {
			l.body(q, "")
			require.Nil(t, l.shadowed()[0])
		}
	}
}

func TestShadowIsAShareOfTheRequests(t *testing.T) {
	l := lookFirst(t, "cache: {shadow: 0.5}\n", Places{}, "a")
	for range 60 {
		l.body(fresh(), "")
	}
	n := strings.Count(l.log.String(), `"shadow_rule"`)
	require.Greater(t, n, 5)
	require.Less(t, n, 55)
}

// What differs between two answers to one request.
var mustDiffer = regexp.MustCompile(`"(id|route_id|config|created|ms|ttft_ms)":("[^"]*"|\d+)`)

// A shadow changes no byte of an answer, whatever the cache's store does.
func TestShadowChangesNothing(t *testing.T) {
	bytes := func(t *testing.T, shadow string, p Places, stream bool) (all []string) {
		l := lookFirst(t, "cache: {shadow: "+shadow+"}\n", p, "a")
		for range 3 {
			start := time.Now()
			res, err := l.post(t.Context(), stream, "How do bridges carry heavy loads?")
			require.NoError(t, err)
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Less(t, time.Since(start), 1400*time.Millisecond, "a lookup takes longer")
			require.NoError(t, l.app.after.wait(t.Context()))
			for _, h := range []string{"Date", "Holdfast-Route-Id", "Content-Length"} {
				res.Header.Del(h)
			}
			all = append(all, fmt.Sprint(res.Header), mustDiffer.ReplaceAllString(string(body), ""))
		}
		return all
	}
	for name, p := range map[string]Places{"memory": {}, "refused": {DatabaseURL: "postgres://u@127.0.0.1:1/x"}, "silent": {DatabaseURL: "postgres://u@" + silent(t) + "/x?sslmode=disable"}} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " stream=", stream), func(t *testing.T) {
				t.Parallel() // waiting for who is silent takes long
				require.Equal(t, bytes(t, "0", p, stream), bytes(t, "1", p, stream))
			})
		}
	}
}

// A cache that panics or fails is no news of what it has; the event is written all the same.
func TestShadowOfABrokenCache(t *testing.T) {
	log := &locked{}
	a := &App{log: slog.New(slog.NewJSONHandler(log, nil))}
	req := &routing.Request{Request: &providers.Request{Raw: json.RawMessage(`{}`)}}
	for _, c := range []cache.Service{panicking{}, failing{}} {
		s := &state{cache: c, config: &config.Config{Cache: config.Cache{Shadow: 1}}}
		require.Nil(t, a.shadow(t.Context(), s, req, "a fresh answer"))
	}
	require.NotContains(t, log.String(), "PROMPT-word")
}

type failing struct{ cache.Service }

func (failing) Lookup(context.Context, cache.Question) (h cache.Hit, found bool, err error) {
	return h, false, cache.ErrAway
}
