package breaker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Breakers is the Gate over a Store: one breaker for each candidate that is asked for.
type Breakers struct {
	settings Settings
	*knowledge
}

// knowledge is what a process knows of its candidates and its store, whatever the settings.
type knowledge struct {
	world world
	made  time.Time
	link  *link
	log   *slog.Logger

	grow    sync.Mutex // for those who add an entry
	entries atomic.Pointer[map[string]*entry]
	work    sync.WaitGroup // store calls in flight
}

var _ Gate = (*Breakers)(nil)

// New gives the gate of one process. Gates that share a store are a fleet.
func New(s Settings, store Store, log *slog.Logger) *Breakers { return newIn(machine{}, s, store, log) }

func newIn(w world, s Settings, store Store, log *slog.Logger) *Breakers {
	b := &Breakers{s.withDefaults(), &knowledge{world: w, made: w.now(), link: &link{world: w, store: store, log: log}, log: log}}
	b.entries.Store(&map[string]*entry{})
	return b
}

// With gives the same process's gate under other settings. The two know the same: runs, openings that the store hasn't
// heard of, trials. Calls that b admitted end by b's settings. Closing one closes both.
func (b *Breakers) With(s Settings) *Breakers { return &Breakers{s.withDefaults(), b.knowledge} }

// Enter implements Gate. It waits at most 50 ms for the copy, and 300 ms to become the trial, but never beyond ctx.
func (b *Breakers) Enter(ctx context.Context, candidate string, lease time.Duration) (Permit, error) {
	if b.settings.Disabled {
		return free{}, nil
	}
	e := b.entry(candidate)
	if p, refusal := b.quick(e, lease); p != nil {
		return b.begin(p), nil
	} else if refusal != nil {
		return nil, refusal
	}
	b.Refresh(ctx, candidate)
	b.await(ctx, e)
	return b.decide(ctx, e, lease)
}

// quick answers a call from a fresh copy, if no trial is due: neither a read nor a write.
func (b *Breakers) quick(e *entry, lease time.Duration) (*permit, *Refusal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := b.world.now()
	now := at.UnixMilli()
	if !e.fresh(now, &b.settings) {
		return nil, nil
	}
	switch v := e.judge(now); {
	case v == admit, v == refuse && b.settings.Observe:
		return b.admit(e, lease, at), nil
	case v == refuse:
		return nil, b.refuse(e)
	default:
		return nil, nil
	}
}

func (b *Breakers) decide(ctx context.Context, e *entry, lease time.Duration) (Permit, error) {
	e.mu.Lock()
	v := e.judge(unixMilli(b.world))
	e.acquiring = e.acquiring || v == try
	e.mu.Unlock()
	if v == try {
		if t := b.acquire(ctx, e, lease); t != nil {
			return b.permit(e, t), nil
		}
	}
	e.mu.Lock()
	at := b.world.now()
	if e.judge(at.UnixMilli()) == admit || b.settings.Observe {
		p := b.admit(e, lease, at)
		e.mu.Unlock()
		return b.begin(p), nil
	}
	defer e.mu.Unlock()
	return nil, b.refuse(e)
}

func (b *Breakers) refuse(e *entry) *Refusal {
	r := e.refusal()
	r.gate, r.entry = b, e
	return r
}

// insist admits a call beside an opening that still runs.
func (b *Breakers) insist(e *entry) Permit {
	e.mu.Lock()
	at := b.world.now()
	v, state := e.judge(at.UnixMilli()), e.rec.State
	if v != admit && (v == try || e.acquiring || state != Open && state != Closed) {
		e.mu.Unlock()
		return nil
	}
	p := b.admit(e, 0, at)
	e.mu.Unlock()
	return b.begin(p)
}

// admit gives an ordinary permit. The caller holds e.mu.
func (b *Breakers) admit(e *entry, lease time.Duration, at time.Time) *permit {
	p := &permit{gate: b, entry: e, era: e.era}
	if b.settings.Mode == ModeConsecutive {
		return p
	}
	now := at.UnixMilli()
	e.lease = max(e.lease, orDefault(lease, defaultLease))
	if b.settings.Sample.SlowAfter > 0 {
		p.began = at.Sub(b.made)
	}
	if e.rec.State == Closed && e.shut > 0 && !e.isShut(now) {
		p.first, e.shut = true, now+trialLease(lease).Milliseconds()
	}
	if b.settings.sampling(e, now) {
		p.ticket = &ticket{gen: e.rec.Gen, window: e.rec.Window.Start}
	}
	return p
}

// begin has the call take its ticket, beside the call itself.
func (b *Breakers) begin(p *permit) *permit {
	if p.ticket != nil {
		b.mark(p.entry, p.ticket)
	}
	return p
}

func (b *Breakers) permit(e *entry, t *trial) *permit {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &permit{gate: b, entry: e, trial: t, era: e.era}
}

// acquire tries to become the fleet's one trial, or this process's own if the store is dead, or dead to its writes:
// reads that are answered say nothing of those. While it is merely slow nobody knows who has the trial: the candidate
// stays open, and the next call asks again in the same name. The caller has set e.acquiring. nil: the trial is
// another's, not to be had, or no longer needed.
func (b *Breakers) acquire(ctx context.Context, e *entry, lease time.Duration) *trial {
	now := unixMilli(b.world)
	c := Change{Op: Acquire, Now: now, Until: now + trialLease(lease).Milliseconds()}
	e.mu.Lock()
	c.Gen, c.Holder = e.rec.Gen, cmp.Or(e.unanswered, b.world.nonce())
	tries := e.silence + 1
	e.mu.Unlock()

	r, applied, err := b.askTrial(ctx, e, c)
	e.mu.Lock()
	e.acquiring, e.unanswered, e.silence = false, "", 0
	var next Change
	var more bool
	switch {
	case errors.Is(err, errLost):
		e.readAt, e.triedAt = 0, 0
	case err != nil && (b.link.dead() || tries >= missesToAway):
		applied = b.acquireHere(e, c)
		r = e.rec
	case err != nil:
		e.unanswered, e.silence = c.Holder, tries
	case applied:
		e.read(now, now)
		e.base, e.dirty = r.Gen, false
		e.take(r, now)
	default:
		e.read(now, now)
		next, more = e.meet(r, now)
	}
	e.mu.Unlock()
	if more {
		b.deliver(e, next, 0, Failure)
	}
	if !applied {
		return nil
	}
	b.log.Info("breaker trial", "candidate", e.id, "generation", r.Gen)
	return &trial{gen: r.Gen, token: r.Token, nonce: c.Holder}
}

// acquireHere makes the call this process's trial; the store is away. The fence of its result is its nonce.
func (b *Breakers) acquireHere(e *entry, c Change) bool {
	_, ok := e.make(c)
	if ok {
		e.writes--
	}
	return ok
}

// askTrial sends the one write that is waited for to its end, because the promise of one trial hangs on it; but a
// dead store gets no more than a read's patience, and that only when it is to be tried again.
func (b *Breakers) askTrial(ctx context.Context, e *entry, c Change) (Record, bool, error) {
	if !b.link.ready(c.Now) {
		return Record{}, false, errAway
	}
	limit := storeDeadline
	if b.link.dead() {
		limit = patience
	}
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, end.Sub(b.world.now()))
	}
	ctx, cancel := b.world.within(context.WithoutCancel(ctx), limit)
	defer cancel()
	return b.link.update(ctx, e.id, c)
}

var errAway = errors.New("breaker: store is away")

func trialLease(lease time.Duration) time.Duration {
	return orDefault(lease, defaultLease) + leaseMargin
}

// Refresh implements Gate.
func (b *Breakers) Refresh(ctx context.Context, candidates ...string) {
	if b.settings.Disabled {
		return
	}
	now := unixMilli(b.world)
	var old []*entry
	for _, id := range candidates {
		e := b.entry(id)
		e.mu.Lock()
		if !e.fresh(now, &b.settings) && !e.asked(now) {
			old = append(old, e)
		}
		e.mu.Unlock()
	}
	if len(old) > 0 {
		b.refresh(ctx, old, now)
	}
}

// refresh starts one read for those entries that are still too old and not being read.
func (b *Breakers) refresh(ctx context.Context, entries []*entry, now int64) {
	wait := b.link.wait()
	if !b.link.ready(now) {
		return
	}
	r := &reading{done: make(chan struct{}), at: now, until: b.world.now().Add(wait)}
	var claimed []*entry
	for _, e := range entries {
		e.mu.Lock()
		if !e.asked(now) && !e.fresh(now, &b.settings) {
			e.reading = r
			claimed = append(claimed, e)
		}
		e.mu.Unlock()
	}
	if len(claimed) > 0 {
		b.spawn(func() { b.read(context.WithoutCancel(ctx), r, claimed) })
	}
}

func (b *Breakers) read(ctx context.Context, r *reading, entries []*entry) {
	defer close(r.done)
	ctx, cancel := b.world.within(ctx, storeDeadline)
	defer cancel()
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.id
	}
	records, err := b.link.load(ctx, ids)
	for _, e := range entries {
		rec, found := records[e.id]
		b.learn(e, r, rec, err == nil && found)
	}
}

func (b *Breakers) learn(e *entry, r *reading, rec Record, found bool) {
	e.mu.Lock()
	if e.reading == r {
		e.reading, e.triedAt = nil, r.at
	}
	var c Change
	var more bool
	if found {
		c, more = e.learn(rec, r.at, unixMilli(b.world))
	}
	e.mu.Unlock()
	if more {
		b.spawn(func() { b.deliver(e, c, 0, Failure) })
	}
}

// await waits for the reading in flight, if the copy is too old to go by.
func (b *Breakers) await(ctx context.Context, e *entry) {
	e.mu.Lock()
	r := e.reading
	needed := r != nil && e.tooOld(unixMilli(b.world), &b.settings)
	e.mu.Unlock()
	if needed {
		b.world.wait(ctx, r.done, r.until.Sub(b.world.now()))
	}
}

// spawn runs store work beside the caller. Close waits for it.
func (b *Breakers) spawn(work func()) {
	b.work.Add(1)
	b.world.spawn(func() {
		defer b.work.Done()
		work()
	})
}

// Warm reads the candidates' items once, at the start of a process, and waits for them 300 ms at most.
func (b *Breakers) Warm(ctx context.Context, candidates ...string) {
	ctx, cancel := b.world.within(ctx, storeDeadline)
	defer cancel()
	b.Refresh(ctx, candidates...)
	for _, id := range candidates {
		e := b.entry(id)
		e.mu.Lock()
		r := e.reading
		e.mu.Unlock()
		if r != nil {
			b.world.wait(ctx, r.done, storeDeadline)
		}
	}
}

// status is the entry as these settings have it: one that is switched off is closed. The caller holds e.mu.
func (b *Breakers) status(e *entry) Status {
	if b.settings.Disabled {
		return Status{Candidate: e.id, Mode: b.settings.Mode}
	}
	now := unixMilli(b.world)
	s := e.status(now)
	s.Mode, s.Refuses = b.settings.Mode, !b.settings.Observe && e.judge(now) == refuse
	return s
}

// Snapshot implements Gate.
func (b *Breakers) Snapshot(ctx context.Context, candidates ...string) []Status {
	b.Refresh(ctx, candidates...)
	all := make([]Status, len(candidates))
	for i, id := range candidates {
		e := b.entry(id)
		b.await(ctx, e)
		e.mu.Lock()
		all[i] = b.status(e)
		e.mu.Unlock()
	}
	return all
}

// Close waits for the store calls in flight, until ctx ends. No call may be made afterwards.
func (b *Breakers) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() { b.work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send tells the store of a change that holds here already. The caller waits for the answer no longer than for a
// read; the write itself goes on to its own deadline.
func (b *Breakers) send(e *entry, c Change, seq uint64, class Class) {
	done, patient := make(chan struct{}), b.link.wait()
	b.spawn(func() {
		defer close(done)
		b.deliver(e, c, seq, class)
	})
	b.world.wait(context.Background(), done, patient)
}

// deliver writes the change, and once more if the answer asks for it.
func (b *Breakers) deliver(e *entry, c Change, seq uint64, class Class) {
	for range 2 {
		a := b.write(e, c)
		if a.applied || a.err != nil {
			b.tell(e, c, class, a.err)
		}
		e.mu.Lock()
		next, more := e.answered(seq, a, unixMilli(b.world))
		e.mu.Unlock()
		if !more {
			return
		}
		c = next
	}
	e.mu.Lock()
	e.writes-- // a store that contradicts itself: the next read settles it
	e.mu.Unlock()
}

func (b *Breakers) write(e *entry, c Change) told {
	a := told{at: unixMilli(b.world), err: errAway}
	if b.link.ready(a.at) {
		ctx, cancel := b.world.within(context.Background(), storeDeadline)
		defer cancel()
		a.rec, a.applied, a.err = b.link.update(ctx, e.id, c)
	}
	return a
}

// tell logs a change of state: once in the fleet, by the process that made it; with the store away, once in each.
func (b *Breakers) tell(e *entry, c Change, class Class, err error) {
	state := Open
	switch c.Op {
	case Trip, Reopen:
	case Close:
		state = Closed
	default:
		return
	}
	attrs := []any{
		"candidate", e.id, "state", state.String(), "generation", c.Gen + 1, "why", c.Why,
		"open_ms", max(c.Until-c.Now, 0), "local", err != nil,
	}
	if class == Hard {
		b.log.Warn("breaker alarm", attrs...)
		return
	}
	b.log.Info("breaker", attrs...)
}

func (b *Breakers) entry(id string) *entry {
	if e := (*b.entries.Load())[id]; e != nil {
		return e
	}
	b.grow.Lock()
	defer b.grow.Unlock()
	known := *b.entries.Load()
	if e := known[id]; e != nil {
		return e
	}
	more := maps.Clone(known)
	e := &entry{id: id, world: b.world}
	more[id] = e
	b.entries.Store(&more)
	return e
}
