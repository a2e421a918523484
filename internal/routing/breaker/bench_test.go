package breaker

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// closedCall is the whole part of a breaker in a healthy call, its copy warm.
func closedCall(g *Breakers, ids []string, tb testing.TB) {
	g.Refresh(context.Background(), ids...)
	p, err := g.Enter(context.Background(), model, lease)
	if err != nil {
		tb.Fatal(err)
	}
	p.Started()
	p.Done(passed)
}

func TestClosedCallAllocatesOnce(t *testing.T) {
	ids := []string{model, "model-b", "model-c"}
	for _, s := range []Settings{{}, window, hybrid, {Mode: ModeHybrid, Sample: Sampling{SlowAfter: time.Minute}}} {
		g := gateOn(t, s, NewMemory())
		g.Warm(t.Context(), ids...)
		require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { closedCall(g, ids, t) }), 1.0, "%+v", s)
	}
}

func BenchmarkClosedCall(b *testing.B) {
	ids := []string{model}
	for _, s := range []Settings{{}, hybrid} {
		b.Run(s.Mode.String(), func(b *testing.B) {
			g := gateOn(b, s, NewMemory())
			g.Warm(b.Context(), ids...)
			b.ReportAllocs()
			for b.Loop() {
				closedCall(g, ids, b)
			}
		})
	}
}

func BenchmarkClosedCallParallel(b *testing.B) {
	ids := []string{model}
	g := gateOn(b, Settings{}, NewMemory())
	g.Warm(b.Context(), ids...)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			closedCall(g, ids, b)
		}
	})
}

func BenchmarkEnter(b *testing.B) {
	g := gateOn(b, Settings{}, NewMemory())
	g.Warm(b.Context(), model)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Enter(context.Background(), model, lease); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefused(b *testing.B) {
	g := gateOn(b, Settings{}, NewMemory())
	call(b, g, failed, failed)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Enter(context.Background(), model, lease); err == nil {
			b.Fatal("admitted")
		}
	}
}

func BenchmarkDynamo(b *testing.B) {
	store, _, _ := dynamoTable(b)
	b.Run("load 1", func(b *testing.B) {
		for b.Loop() {
			if _, err := store.Load(b.Context(), "a"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("load 5", func(b *testing.B) {
		for b.Loop() {
			if _, err := store.Load(b.Context(), "a", "b", "c", "d", "e"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("condition failed, read again", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := store.Update(b.Context(), "a", Change{Op: Trip}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
