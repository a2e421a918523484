package breaker

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// simSeed is the run's seed: SEED, 1 without.
func simSeed(t *testing.T) uint64 {
	s := os.Getenv("SEED")
	if s == "" {
		return 1
	}
	seed, err := strconv.ParseUint(s, 10, 64)
	require.NoError(t, err)
	return seed
}

func simMedium(name string, s Settings) simPlan {
	return simPlan{
		name: name, settings: s, length: 200 * time.Second, processes: 150, rate: 25, skew: 5 * time.Second,
		trialDies: 0.3, callDies: 0.001,
		model: simModel{
			errors: 0.02, late: 0.1, share: 1, leave: 0.01, patience: 10 * time.Second, length: 3 * time.Second,
			outages: []span{{60 * time.Second, 100 * time.Second}},
		},
		trouble: simTrouble{stale: 100 * time.Millisecond},
	}
}

// The same seed gives the same run, to the last record.
func TestSimulationIsDeterministic(t *testing.T) {
	play := func(seed uint64) (Record, simFigures) {
		p := simMedium("again", Settings{Mode: ModeHybrid})
		p.trouble = simSmallTrouble
		f := newSimFleet(p, seed, 7)
		f.play()
		return f.store.record, f.watch.simFigures
	}
	record, figures := play(3)
	again, same := play(3)
	require.Equal(t, record, again)
	require.Equal(t, figures, same)
	_, other := play(4)
	require.NotEqual(t, figures, other)
}

// A store that loses, delays and refuses a tenth of everything and is away for minutes: the promises that don't need it
// hold, and afterwards all agree.
func TestSimulatedStorms(t *testing.T) {
	seed, effort := simSeed(t), simEfforts[os.Getenv("SIM")]
	for _, mode := range []Mode{ModeConsecutive, ModeWindow, ModeHybrid} {
		for i := range effort.stormRuns {
			p := simMedium(fmt.Sprintf("storm of mode %d", mode), Settings{Mode: mode})
			p.trouble = simTrouble{
				stale: 2 * time.Second, slow: 0.05, throttled: 0.02, lostBefore: 0.02, lostAfter: 0.02,
				away:     []span{{50 * time.Second, 80 * time.Second}, {95 * time.Second, 110 * time.Second}},
				refusing: i%2 == 1,
			}
			f := newSimFleet(p, seed, 2000+uint64(i))
			f.play()
			require.Empty(t, f.watch.wrong, "seed %d", seed)
			require.NotZero(t, f.watch.refused)
		}
	}
}

// Models that fail in other ways than at once and wholly.
func TestSimulatedOutages(t *testing.T) {
	seed := simSeed(t)
	tests := []struct {
		name   string
		change func(*simPlan)
		within float64 // seconds until it is noticed
	}{
		{"time-outs of 10 s", func(p *simPlan) { p.model.hangs = true }, 24}, // two, where the first sample was half well
		{"60 % fail", func(p *simPlan) { p.model.share = 0.6 }, 25},
		{"time-outs, and a call every five seconds", func(p *simPlan) {
			p.model.hangs, p.processes, p.rate, p.length = true, 4, 0.2, 20*time.Minute
			p.model.outages = []span{{time.Minute, 11 * time.Minute}}
		}, 120},
		{"every error breaks a stream that began", func(p *simPlan) { p.model.late = 1 }, 3},
		{"a quarter of the callers leaves", func(p *simPlan) { p.model.leave = 0.25 }, 24}, // the age of a sample most of which left
		{"a twentieth of the processes dies in each call", func(p *simPlan) { p.callDies = 0.05 }, 4},
	}
	for i, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := simMedium(tc.name, Settings{Mode: []Mode{ModeWindow, ModeHybrid}[i%2]})
			tc.change(&p)
			f := newSimFleet(p, seed, 3000)
			f.play()
			require.Empty(t, f.watch.wrong, "seed %d", seed)
			require.Zero(t, f.watch.falseTrips, "seed %d", seed)
			require.Zero(t, f.watch.missed, "seed %d", seed)
			require.LessOrEqual(t, f.watch.detection.max, tc.within, "seed %d", seed)
		})
	}
}

// A model that limits its callers is left alone until it said, and that is no failure.
func TestSimulatedRateLimits(t *testing.T) {
	p := simMedium("limits", Settings{Mode: ModeHybrid})
	p.model.outages, p.model.limits = nil, []span{{60 * time.Second, 90 * time.Second}}
	f := newSimFleet(p, simSeed(t), 4000)
	f.play()
	require.Empty(t, f.watch.wrong)
	require.Zero(t, f.watch.falseTrips)
	require.NotZero(t, f.watch.refused)
	require.Equal(t, Closed, f.store.record.State)
}

// An operator's word holds in the whole fleet until its end, whatever the model does, and nothing else changes it.
func TestSimulatedOperator(t *testing.T) {
	for _, mode := range []Mode{ModeConsecutive, ModeWindow, ModeHybrid} {
		p := simMedium(fmt.Sprintf("operator of mode %d", mode), Settings{Mode: mode})
		f := newSimFleet(p, simSeed(t), 5000)
		force := func(at time.Duration, state State, until time.Duration) {
			f.at(at, func() {
				f.store.apply(Change{
					Op: Force, State: state, Now: simEpoch.Add(at).UnixMilli(), Until: simEpoch.Add(until).UnixMilli(),
				})
			})
		}
		force(10*time.Second, ForcedOpen, 30*time.Second)
		force(50*time.Second, ForcedClosed, 80*time.Second) // the model fails from 60 s on
		force(140*time.Second, ForcedOpen, 400*time.Second)
		force(180*time.Second, Closed, 0)
		f.play()
		require.Empty(t, f.watch.wrong)
		require.Equal(t, 1, f.watch.detection.n)
		require.InDelta(t, 21, f.watch.detection.max, 6) // when the forced time is over
		require.False(t, f.store.record.forced())
	}
}

// One trial at a time, also when trials last as long as they may, clocks are 5 s wrong and a third of those who hold
// a trial die: the next one waits for the end of the lease.
func TestSimulatedTrials(t *testing.T) {
	seed, effort := simSeed(t), simEfforts[os.Getenv("SIM")]
	for _, mode := range []Mode{ModeConsecutive, ModeWindow, ModeHybrid} {
		for i := range effort.stormRuns {
			p := simMedium(fmt.Sprintf("trials of mode %d", mode), Settings{Mode: mode, MaxOpenDuration: 30 * time.Second})
			p.length, p.model.hangs = time.Hour, true
			p.processes, p.rate = []int{20, 300, 50, 4}[i%4], []float64{2, 50, 10, 1}[i%4]
			p.model.outages = []span{{time.Minute, 55 * time.Minute}}
			f := newSimFleet(p, seed, 6000+uint64(i))
			f.play()
			require.Empty(t, f.watch.wrong, "seed %d", seed)
			require.Equal(t, 1, f.watch.trialsAtOnce)
			require.Greater(t, f.store.record.Token, int64(40))
			require.Greater(t, f.watch.dead, 5)
		}
	}
}

// Processes that stand still tell old news: of trials whose lease has gone to another, of calls that a closed breaker
// let through before it opened and closed again. None of it changes anything.
func TestSimulatedOldNews(t *testing.T) {
	for _, mode := range []Mode{ModeConsecutive, ModeWindow, ModeHybrid} {
		s := Settings{Mode: mode, OpenDuration: time.Second, MaxOpenDuration: 2 * time.Second}
		p := simMedium(fmt.Sprintf("old news of mode %d", mode), s)
		p.length, p.stalls, p.model.leave, p.model.outages = 10*time.Minute, 0.2, 0.1, nil
		for from := 20 * time.Second; from < p.length; from += 20 * time.Second {
			p.model.outages = append(p.model.outages, span{from, from + 8*time.Second})
		}
		f := newSimFleet(p, simSeed(t), 7000)
		f.play()
		require.Empty(t, f.watch.wrong)
		require.Greater(t, f.store.record.Gen, int64(20))
	}
}
