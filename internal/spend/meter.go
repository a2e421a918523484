package spend

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	renewAfter   = 2 * time.Second        // a copy this old is read again, beside the request
	waitAfter    = 4 * time.Second        // and a copy this old is waited for
	patience     = 50 * time.Millisecond  // that long at most
	readDeadline = 300 * time.Millisecond // of a read
	addDeadline  = time.Second            // of an addition, which nobody waits for
	firstPause   = time.Second            // in which a store that failed is left alone; it doubles
	longestPause = 30 * time.Second
)

// Meter counts what tenants spend, for as long as the process lives. Caps are drawn from it.
type Meter struct {
	store Store
	log   *slog.Logger
	work  sync.WaitGroup // reads in flight

	mu       sync.Mutex
	accounts map[string][]*account // by tenant: today's last, before it yesterday's at most
	pause    time.Duration         // 0: the store is there
	until    time.Time             // the end of the pause
}

// New gives the meter of one process. Meters that share a store share its caps.
func New(store Store, log *slog.Logger) *Meter {
	return &Meter{store: store, log: log, accounts: map[string][]*account{}}
}

// Caps are the caps of one configuration. Tenants without one are not counted.
type Caps struct {
	meter  *Meter
	limits map[string]int64
}

// Caps gives the caps of tenants, in nano-dollars a day.
func (m *Meter) Caps(limits map[string]int64) *Caps { return &Caps{meter: m, limits: limits} }

// Prepare starts reading what a tenant has spent, if the copy is old. It doesn't wait.
func (c *Caps) Prepare(ctx context.Context, tenant string) {
	if limit, ok := c.limits[tenant]; !ok || limit == 0 || !c.meter.ready() {
		return
	}
	a := c.meter.today(tenant)
	amount, flusher, ok := a.begin()
	if !ok {
		return
	}
	ctx = context.WithoutCancel(ctx)
	c.meter.work.Go(func() {
		if flusher {
			c.meter.settle(ctx, a, amount)
			return
		}
		_ = c.meter.send(ctx, a, amount) // it was noted
	})
}

// Reached says whether a tenant has spent what he may today, and until when. It waits at most 50 ms for the copy.
func (c *Caps) Reached(ctx context.Context, tenant string) (until time.Time, reached bool) {
	limit, ok := c.limits[tenant]
	if !ok {
		return time.Time{}, false
	}
	a := c.meter.today(tenant)
	if limit > 0 && a.spent() < limit && a.older(waitAfter) {
		a.await(ctx)
	}
	spent := a.spent()
	if spent < limit {
		return time.Time{}, false
	}
	if a.tell() {
		c.meter.log.Warn("a tenant's daily cap is reached", "tenant", tenant, "day", string(a.day),
			"usd_per_day", float64(limit)/1e9, "spent_usd", float64(spent)/1e9)
	}
	return a.day.End(), true
}

// Spend counts what a tenant has spent and tells the store. It is meant for after the answer: it waits for the store, at
// most until ctx ends. What the store can't take now is added with a later amount.
func (c *Caps) Spend(ctx context.Context, tenant string, nanos int64) {
	if limit, ok := c.limits[tenant]; !ok || limit == 0 || nanos <= 0 {
		return
	}
	c.meter.today(tenant).owe(nanos)
	c.meter.flush(ctx, tenant)
}

// today is a tenant's account of today. Accounts from before yesterday are forgotten, with what they may owe.
func (m *Meter) today(tenant string) *account {
	now := time.Now()
	day := DayOf(now)
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.accounts[tenant]
	if n := len(all); n > 0 && all[n-1].day == day {
		return all[n-1]
	}
	var keep []*account
	for _, a := range all {
		if a.day == DayOf(now.AddDate(0, 0, -1)) {
			keep = append(keep, a)
		}
	}
	a := &account{tenant: tenant, day: day}
	m.accounts[tenant] = append(keep, a)
	return a
}

// flush adds what a tenant's accounts owe.
func (m *Meter) flush(ctx context.Context, tenant string) {
	m.mu.Lock()
	all := m.accounts[tenant]
	m.mu.Unlock()
	for _, a := range all {
		if !m.ready() || !a.claim() {
			continue
		}
		if amount, more := a.next(ctx); more {
			m.settle(ctx, a, amount)
		}
	}
}

// settle makes the flusher's calls, until nothing is owed or the store fails.
func (m *Meter) settle(ctx context.Context, a *account, amount int64) {
	for more := true; more; {
		if err := m.send(ctx, a, amount); err != nil {
			a.give()
			return
		}
		amount, more = a.next(ctx)
	}
}

// send makes the call that was claimed: it adds an amount, or reads where that is 0.
func (m *Meter) send(ctx context.Context, a *account, amount int64) error {
	asked, deadline := time.Now(), addDeadline
	if amount == 0 {
		deadline = readDeadline
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	if amount == 0 {
		sum, err := m.store.Load(ctx, a.tenant, a.day)
		m.note(err)
		a.loaded(sum, err, asked)
		return err
	}
	sum, err := m.store.Add(ctx, a.tenant, a.day, amount)
	m.note(err)
	a.added(sum, err, asked)
	return err
}

// ready says whether the store may be asked: not during the pause after a failure.
func (m *Meter) ready() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pause == 0 || m.over()
}

// over says whether the pause is, by the wall clock. The lock is held.
func (m *Meter) over() bool {
	left := m.until.Sub(time.Now().Round(0))
	return left <= 0 || left > longestPause // or the clock was set back
}

// note counts a failure or a success, and says once that the store is away and once that it is back.
func (m *Meter) note(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil && m.pause > 0:
		m.pause = 0
		m.log.Info("the store of what tenants spend is back")
	case err == nil:
	case m.pause == 0:
		m.pause = firstPause
		m.log.Warn("the store of what tenants spend is away, caps hold for this process alone", "reason", err.Error())
	case m.over(): // of several calls at once only the first makes it longer
		m.pause = min(2*m.pause, longestPause)
	}
	if err != nil {
		m.until = time.Now().Round(0).Add(m.pause)
	}
}

// Close adds what is owed, trying a store that was left alone once more, and waits for the calls in flight, until ctx ends. No call may be made afterwards.
func (m *Meter) Close(ctx context.Context) error {
	m.mu.Lock()
	m.until = time.Time{}
	var tenants []string
	for tenant := range m.accounts {
		tenants = append(tenants, tenant)
	}
	m.mu.Unlock()
	for _, tenant := range tenants {
		m.flush(ctx, tenant)
	}
	done := make(chan struct{})
	go func() { // ends with the reads, which have a deadline
		m.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
