package cache

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Processes that keep and purge answers to what asks the same at one time don't wait for each other in a circle: nothing
// is lost, and nothing piles up.
func TestPostgresWritersOfTheSame(t *testing.T) {
	where := database(t)
	questions := []string{"怎么在网上选车牌号？", "如何在網上選車牌號", "网上怎么选车牌号", "网上如何选车牌号呢", "怎样在网上选车牌号", "网上选车牌号怎么选"}
	var all sync.WaitGroup
	errs := make(chan error, 2000)
	for writer := range 8 {
		p := openPostgres(t, where)
		c := New(Settings{Mode: modeFront}, p, sharedBuiltin(), slog.New(slog.DiscardHandler))
		all.Go(func() {
			for i := range 200 {
				p.known.clear()
				errs <- c.Store(t.Context(), text(questions[(writer+i)%len(questions)]), "Online.")
				if writer == 0 && i%10 == 0 {
					_, err := p.Purge(t.Context(), Selection{Tenant: tenantKey("t")}, batch)
					errs <- err
				}
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	c := New(Settings{Mode: modeFront}, openPostgres(t, where), sharedBuiltin(), slog.New(slog.DiscardHandler))
	store(t, c, text(questions[0]))
	require.Equal(t, ruleExact, rule(t, c, text(questions[0])))
}
