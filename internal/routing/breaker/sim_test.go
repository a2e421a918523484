package breaker

import (
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// simEffort says how much of everything is simulated. Hours are of the fleet's time, of one mode at one error rate.
type simEffort struct {
	busyRuns  int           // at 500 requests a second, 2,000 to 5,000 processes
	busy      time.Duration // each
	quietRuns int           // at 1 to 10 requests a second
	quiet     time.Duration
	stormRuns int // with a store that fails in every way
}

// simEfforts: `make test`, `make sim`, `make sim-long`. The long one is 5 hours of busy fleets and 995 of quiet ones
// over the two modes that judge by the sample, and as much of the bare run beside each.
var simEfforts = map[string]simEffort{
	"":       {busyRuns: 1, busy: 16 * time.Second, quietRuns: 1, quiet: 12 * time.Minute, stormRuns: 1},
	"sample": {busyRuns: 4, busy: 2 * time.Minute, quietRuns: 5, quiet: 2 * time.Hour, stormRuns: 4},
	"long":   {busyRuns: 9, busy: 250 * time.Second, quietRuns: 25, quiet: 4*time.Hour + 59*time.Minute, stormRuns: 16},
}

// simLine is one line of the table: a mode at a rate of background errors.
type simLine struct {
	name        string
	settings    Settings
	errors      float64
	busy, quiet simFigures
	wrong       []string
	bare        bool // a bare run of 2: its figures are shown, not judged
}

func simLines() []*simLine {
	modes := []struct {
		name string
		mode Mode
		bare bool
	}{{"hybrid", ModeHybrid, false}, {"window", ModeWindow, false}, {"consecutive", ModeConsecutive, true}}
	var lines []*simLine
	for _, m := range modes {
		if m.bare && os.Getenv("SIM") == "" {
			continue // it is only shown, in the table of longer runs
		}
		for _, e := range []float64{0, 0.001, 0.02, 0.1} {
			s := Settings{Mode: m.mode}
			lines = append(lines, &simLine{name: m.name, settings: s, errors: e, bare: m.bare})
		}
	}
	return lines
}

// TestFleetSimulation plays fleets and judges the figures. SIM is the effort, SEED the seed; both are for longer
// runs by hand. What fails prints the seed it failed with.
func TestFleetSimulation(t *testing.T) {
	effort, ok := simEfforts[os.Getenv("SIM")]
	require.True(t, ok, "SIM is sample or long")
	seed, lines := simSeed(t), simLines()
	simPlay(t, lines, effort, seed)
	simTable(os.Stdout, lines, seed)
	for _, l := range lines {
		t.Run(fmt.Sprintf("%s at %g %%", l.name, 100*l.errors), func(t *testing.T) { l.judge(t, seed) })
	}
}

// simPlay plays all runs of all lines on two threads: each is a world of its own, so their order changes nothing.
func simPlay(t *testing.T, lines []*simLine, effort simEffort, seed uint64) {
	type run struct {
		line *simLine
		plan simPlan
		n    uint64
	}
	var runs []run
	for _, l := range lines {
		for i := range effort.busyRuns {
			runs = append(runs, run{l, l.busyPlan(i, effort.busy), uint64(i)})
		}
		for i := range effort.quietRuns {
			runs = append(runs, run{l, l.quietPlan(i, effort.quiet), 1000 + uint64(i)})
		}
	}
	work, began := make(chan run), time.Now()
	var mu sync.Mutex
	var done, calls int
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for r := range work {
				f := newSimFleet(r.plan, seed, r.n)
				f.play()
				mu.Lock()
				r.line.take(f)
				for _, w := range f.watch.wrong {
					fmt.Fprintf(os.Stderr, "sim: seed %d: %s\n", seed, w)
				}
				done++
				calls += f.calls
				if os.Getenv("SIM") != "" && done%10 == 0 {
					simProgress(os.Stderr, done, len(runs), calls, time.Since(began))
				}
				mu.Unlock()
			}
		})
	}
	for _, r := range runs {
		work <- r
	}
	close(work)
	wg.Wait()
	t.Logf("%d calls in %v", calls, time.Since(began))
}

func simProgress(out io.Writer, done, all, calls int, took time.Duration) {
	fmt.Fprintf(out, "sim: %d of %d runs, %d calls, %.0f s, %.0f calls/s\n",
		done, all, calls, took.Seconds(), float64(calls)/took.Seconds())
}

// busyPlan is a large fleet whose model is away once or twice. Every second run has a store that is not quite well.
func (l *simLine) busyPlan(i int, length time.Duration) simPlan {
	p := l.plan(length)
	p.name += " busy"
	p.processes, p.rate = []int{5000, 2000, 3000, 4000}[i%4], 500
	from := length/4 + time.Duration(i)*777*time.Millisecond
	p.model.outages = []span{{from, from + max(4*time.Second, min(30*time.Second, length/8))}}
	if again := from + length/2; length > time.Minute {
		p.model.outages = append(p.model.outages, span{again, again + 30*time.Second})
	}
	if i%2 == 1 {
		p.trouble = simSmallTrouble
	}
	return p
}

// quietPlan is a small fleet whose model is away for five minutes of each hour.
func (l *simLine) quietPlan(i int, length time.Duration) simPlan {
	p := l.plan(length)
	p.name += " quiet"
	p.processes, p.rate = []int{40, 10, 25, 100, 60}[i%5], []float64{4, 1, 2, 10, 7}[i%5]
	for from := length / 3; from < length-10*time.Minute; from += time.Hour {
		p.model.outages = append(p.model.outages, span{from, from + 5*time.Minute})
	}
	if i%2 == 1 {
		p.trouble = simSmallTrouble
	}
	return p
}

func (l *simLine) plan(length time.Duration) simPlan {
	return simPlan{
		name: l.name, settings: l.settings, length: length, skew: 5 * time.Second, trialDies: 0.3, callDies: 0.001,
		model: simModel{
			errors: l.errors, late: 0.1, share: 1, leave: 0.01, patience: 10 * time.Second, length: 3 * time.Second,
		},
		trouble: simTrouble{stale: 100 * time.Millisecond},
	}
}

// simSmallTrouble is what a table in the cloud does to its callers on an ordinary day.
var simSmallTrouble = simTrouble{stale: time.Second, slow: 0.005, throttled: 0.001, lostBefore: 0.001, lostAfter: 0.001}

func (l *simLine) take(f *simFleet) {
	if f.rate >= 100 {
		l.busy.join(f.watch.simFigures)
	} else {
		l.quiet.join(f.watch.simFigures)
	}
	l.wrong = append(l.wrong, f.watch.wrong...)
}

// judge holds the figures that the breaker has to reach.
func (l *simLine) judge(t *testing.T, seed uint64) {
	require.Empty(t, l.wrong, "seed %d", seed)
	require.LessOrEqual(t, max(l.busy.trialsAtOnce, l.quiet.trialsAtOnce), 1)
	if l.errors == 0 {
		require.Zero(t, l.busy.idle+l.quiet.idle, "writes while nothing fails")
	}
	if l.bare {
		return
	}
	require.Zero(t, l.busy.falseTrips+l.quiet.falseTrips, "false trips; seed %d", seed)
	require.Zero(t, l.busy.missed+l.quiet.missed, "outages missed; seed %d", seed)
	require.LessOrEqual(t, l.busy.detection.max, 2.5)
	if l.busy.detection.n > 4 {
		require.LessOrEqual(t, l.busy.detection.mean(), 1.5)
	}
	require.LessOrEqual(t, l.busy.peak, 70, "writes a second")
}

// simTable prints the figures, a line a mode and error rate.
func simTable(out io.Writer, lines []*simLine, seed uint64) {
	var busy, quiet time.Duration
	for _, l := range lines {
		if !l.bare {
			busy += l.busy.lasted
			quiet += l.quiet.lasted
		}
	}
	fmt.Fprintf(out, "seed %d; %.2f h of hybrid and window at 500 requests/s, 2,000 to 5,000 processes:\n", seed, busy.Hours())
	for _, l := range lines {
		l.print(out, l.busy)
	}
	fmt.Fprintf(out, "seed %d; %.1f h of hybrid and window at 1 to 10 requests/s, 10 to 100 processes:\n", seed, quiet.Hours())
	for _, l := range lines {
		l.print(out, l.quiet)
	}
}

func (l *simLine) print(out io.Writer, f simFigures) {
	fmt.Fprintf(out, "%-11s  errors %3g %%  false trips %-4d  detection mean %.2f s max %.2f s  writes/s healthy %.1f peak %d  "+
		"trials at once %d (%d died)  recovery mean %.0f s max %.0f s  refused while well %.2f %%\n",
		l.name, 100*l.errors, f.falseTrips, f.detection.mean(), f.detection.max, f.healthy.mean(), f.peak,
		f.trialsAtOnce, f.dead, f.recovery.mean(), f.recovery.max, 100*float64(f.denied)/float64(max(f.well, 1)))
}
