package breaker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// fleet is two processes over one store, their permits in flight, and what must hold whatever happens.
type fleet struct {
	store   *Memory
	paths   [2]*faulty
	gates   [2]*Breakers
	permits []*inFlight
	last    Record
}

type inFlight struct {
	Permit
	began   time.Time
	started bool
	alone   bool // a trial of its process only, which held the store for away
}

func newFleet(t *rapid.T) *fleet {
	f := &fleet{store: NewMemory()}
	s := Settings{
		OpenDuration: time.Second, MaxOpenDuration: 10 * time.Second,
		HalfOpenSuccesses: rapid.IntRange(1, 2).Draw(t, "successes"),
		Mode:              Mode(rapid.IntRange(0, int(ModeHybrid)).Draw(t, "mode")),
		Sample:            Sampling{Size: 4, MinCalls: 2, SlowAfter: 20 * time.Second},
	}
	for i := range f.gates {
		f.paths[i] = &faulty{Store: f.store}
		f.gates[i] = New(s, f.paths[i], slog.New(slog.DiscardHandler))
	}
	return f
}

func (f *fleet) record() Record {
	synctest.Wait() // for the writes of samples, which no call waits for
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	return f.store.records[model]
}

// enter asks one process. A refusal is a *Refusal and nothing else, store or no store.
func (f *fleet) enter(t *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(t, "process")
	p, err := f.gates[i].Enter(context.Background(), model, lease)
	var r *Refusal
	if err != nil && !errors.As(err, &r) {
		t.Fatalf("refused with %v", err)
	}
	if err == nil {
		t := p.(*permit).trial
		f.permits = append(f.permits, &inFlight{
			Permit: p, began: time.Now(), alone: t != nil && t.nonce != f.record().Holder,
		})
	}
}

func (f *fleet) start(t *rapid.T) {
	if len(f.permits) > 0 {
		p := f.permits[rapid.IntRange(0, len(f.permits)-1).Draw(t, "permit")]
		p.Started()
		p.started = true
	}
}

func (f *fleet) end(t *rapid.T) {
	if len(f.permits) == 0 {
		return
	}
	i := rapid.IntRange(0, len(f.permits)-1).Draw(t, "permit")
	p := f.permits[i]
	f.permits = append(f.permits[:i:i], f.permits[i+1:]...)
	before := f.record()
	class := Class(rapid.IntRange(0, int(Cancelled)).Draw(t, "class"))
	p.Done(Outcome{Class: class, RetryAfter: time.Duration(rapid.IntRange(0, 5).Draw(t, "after")) * time.Second})
	after := f.record()
	neutral := class == Excluded || class == Cancelled || class == Sample && f.gates[0].settings.Mode == ModeConsecutive
	if neutral && (after.State != before.State || after.Gen != before.Gen || after.OpenUntil != before.OpenUntil) {
		t.Fatalf("outcome %d changed %+v to %+v", class, before, after)
	}
}

// lose forgets a permit: its process died, or its goroutine did.
func (f *fleet) lose(t *rapid.T) {
	if len(f.permits) > 0 {
		i := rapid.IntRange(0, len(f.permits)-1).Draw(t, "permit")
		f.permits = append(f.permits[:i:i], f.permits[i+1:]...)
	}
}

func (f *fleet) cut(t *rapid.T) {
	path := f.paths[rapid.IntRange(0, 1).Draw(t, "process")]
	path.set(func(p *faulty) {
		if p.err = nil; rapid.Bool().Draw(t, "away") {
			p.err = errors.New("away")
		}
	})
}

func (f *fleet) check(t *rapid.T) {
	r := f.record()
	if r.Gen < f.last.Gen || r.Token < f.last.Token {
		t.Fatalf("%+v fell to %+v", f.last, r)
	}
	if r.State == Open && r.Gen == f.last.Gen && r.OpenUntil < f.last.OpenUntil {
		t.Fatalf("deadline fell from %+v to %+v", f.last, r)
	}
	if r.State == Closed && (r.Opens != 0 || r.Holder != "") {
		t.Fatalf("closed with a past: %+v", r)
	}
	f.last = r
	trials := 0
	for _, p := range f.permits {
		if p.Trial() && !p.started && !p.alone && time.Since(p.began) < lease+leaseMargin {
			trials++
		}
	}
	if trials > 1 {
		t.Fatalf("%d trials at once", trials)
	}
}

// converge: the store is back. Both processes come to agree, and from whatever state a call gets through again.
func (f *fleet) converge(t *rapid.T) {
	for _, p := range f.paths {
		p.set(func(p *faulty) { p.err = nil })
	}
	ctx := context.Background()
	for range 4 { // away for up to 30 s, then told of what happened alone
		pass(longestPause + ageOpen*time.Millisecond)
		for _, g := range f.gates {
			g.Snapshot(ctx, model)
			pass(time.Second)
		}
	}
	one, two := f.gates[0].Snapshot(ctx, model)[0], f.gates[1].Snapshot(ctx, model)[0]
	if one.State != two.State || one.Generation != two.Generation || one.Generation != f.record().Gen {
		t.Fatalf("no agreement: %+v, %+v, %+v", one, two, f.record())
	}
	p, err := f.gates[0].Enter(ctx, model, lease)
	if err != nil {
		t.Fatalf("%+v lets nobody through: %v", f.record(), err)
	}
	p.Done(Outcome{Class: Cancelled})
}

func TestFleetModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			f := newFleet(t)
			second := time.Second
			t.Repeat(map[string]func(*rapid.T){
				"":      f.check,
				"enter": f.enter, "enter too": f.enter, "enter again": f.enter,
				"start": f.start, "end": f.end, "end too": f.end, "lose": f.lose, "cut": f.cut,
				"wait":  func(t *rapid.T) { pass(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond) },
				"sleep": func(t *rapid.T) { pass(time.Duration(rapid.IntRange(1, 60).Draw(t, "s")) * second) },
			})
			f.converge(t)
			for _, g := range f.gates {
				if err := g.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
}
