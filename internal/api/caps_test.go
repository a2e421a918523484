package api

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"holdfast/internal/routing"
)

// caps says of each tenant whether he has spent what he may.
type caps struct {
	reached  map[string]bool
	asked    []string
	prepared int
}

func (c *caps) Prepare(context.Context, string) { c.prepared++ }

func (c *caps) Reached(_ context.Context, tenant string) (time.Time, bool) {
	c.asked = append(c.asked, tenant)
	return time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC), c.reached[tenant]
}

func capped(f *fake, c Caps) http.Handler {
	return New(Settings{Keys: []Key{key("team-a", "a"), key("team-b", "b")}}, Deps{Router: f, Caps: c, Finished: func(_ context.Context, r *routing.Request, t routing.Trace, d Done) {
		f.finished <- finish{r, t, d}
	}})
}

func TestCapReached(t *testing.T) {
	for name, body := range map[string]string{"JSON": ask(""), "stream": ask(streaming), "named": ask(`"model":"nobody"`)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(90*time.Minute + time.Second/2) //nolint:forbidigo // virtual time
				f := &fake{steps: hello(), finished: make(chan finish, 1)}
				h := capped(f, &caps{reached: map[string]bool{"team-a": true}})
				w := post(h, body, "Authorization", "Bearer a")
				require.Equal(t, 429, w.Code, w.Body.String())
				require.JSONEq(t, `{"error":{"type":"insufficient_quota","code":"insufficient_quota","param":null,"message":`+
					`"The tenant team-a has reached its own daily limit of spending at this gateway. No model was asked; the limit begins anew at 2000-01-02T00:00:00Z (midnight UTC)."}}`,
					w.Body.String())
				for header, want := range map[string]string{
					"Retry-After": strconv.Itoa(22*3600 + 30*60), "X-Should-Retry": "false", "Content-Type": "application/json", "Holdfast-Tier": "",
				} {
					require.Equal(t, want, w.Header().Get(header), header)
				}
				require.NotEmpty(t, w.Header().Get("Holdfast-Route-Id"))
				require.Empty(t, f.requests, "nobody was asked")
				require.Empty(t, f.finished)
				require.Equal(t, 200, post(h, body, "Authorization", "Bearer b").Code, "the other's day is not over")
			})
		})
	}
}

// A cap is looked at for requests that could be answered, and only there.
func TestWhenACapIsLookedAt(t *testing.T) {
	for _, test := range []struct {
		name, body, key string
		status          int
		prepared        int
	}{
		{"unknown key", ask(""), "x", 401, 0},
		{"no message", `{}`, "a", 400, 1},
		{"right", ask(""), "b", 200, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, c := &fake{steps: hello(), finished: make(chan finish, 1)}, &caps{reached: map[string]bool{"team-a": true}}
			w := post(capped(f, c), test.body, "Authorization", "Bearer "+test.key)
			require.Equal(t, test.status, w.Code)
			require.Equal(t, test.prepared, c.prepared)
			require.Equal(t, test.status == 200, len(c.asked) == 1)
			require.NotEqual(t, "insufficient_quota", gjson.Get(w.Body.String(), "error.code").Str)
		})
	}
	c := &caps{reached: map[string]bool{"team-a": true}}
	require.Equal(t, 200, call(capped(&fake{}, c), http.MethodGet, "/v1/models", "", "Authorization", "Bearer a").Code)
	require.Empty(t, c.asked, "what costs nothing stays")
}

// The day may end between the decision and the answer.
func TestCapAtMidnight(t *testing.T) {
	w := post(capped(&fake{}, &caps{reached: map[string]bool{"team-a": true}}), ask(""), "Authorization", "Bearer a") // its day ended long ago
	require.Equal(t, 429, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Equal(t, "false", w.Header().Get("X-Should-Retry"))
}
