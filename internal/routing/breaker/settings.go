package breaker

import "time"

// Mode says what opens a closed breaker.
type Mode uint8

const (
	// ModeConsecutive: a run of FailureThreshold failures in one process opens the candidate for the whole fleet.
	ModeConsecutive Mode = iota
	// ModeWindow: the fleet's sample decides.
	ModeWindow
	// ModeHybrid: the fleet's sample decides, and a process in which FailureThreshold calls in a row have failed stops
	// calling for 2 s, then lets one call through first.
	ModeHybrid
)

// String is the mode's name in the configuration and in /v1/status: consecutive, window, hybrid.
func (m Mode) String() string { return [...]string{"consecutive", "window", "hybrid"}[m] }

// Settings are the breaker's share of the configuration. The zero value of every field is its default.
type Settings struct {
	Mode              Mode          // ModeConsecutive
	FailureThreshold  int           // failures in a row that open; 2
	OpenDuration      time.Duration // the first open time, doubled by each failed trial; 30 s
	MaxOpenDuration   time.Duration // the longest open time, and that of a hard open; 2 min, OpenDuration at least
	HalfOpenSuccesses int           // trials that must pass to close; 1
	Sample            Sampling      // for ModeWindow and ModeHybrid
	Disabled          bool          // every call is admitted, nothing is counted, the store is never asked
	Observe           bool          // count and change states, but never refuse
}

// The clocks that are not configurable. Shares are of the named duration.
const (
	defaultCool   = 10 * time.Second       // a cool-down where the provider named no time
	longestCool   = 24 * time.Hour         // no Retry-After counts for more
	defaultLease  = 60 * time.Second       // of a trial whose caller named none
	leaseMargin   = 11 * time.Second       // twice what a clock may be wrong by, 5 s, and a second; also of a sample's age
	openJitter    = 0.1                    // of the open time: so that processes don't all try at once
	readJitter    = 0.2                    // of a copy's age: read early by up to this, waited for never early
	patience      = 50 * time.Millisecond  // what a call waits for the store
	storeDeadline = 300 * time.Millisecond // what one store call may take; enough for the first, cold one
	lag           = 2 * time.Second        // how far an eventually consistent read may be behind
)

// Ages, in milliseconds, from which a copy is read again.
const (
	ageClosed = 2000
	ageSample = 30   // a sample runs: its tickets go fast, and nobody opens the next one on an older copy
	ageOpen   = 5000 // so that an operator is heard before the open time ends
	ageDue    = 500  // a trial is due or runs: others may have settled it
)

func (s Settings) withDefaults() Settings {
	s.FailureThreshold = orDefault(s.FailureThreshold, 2)
	s.OpenDuration = orDefault(s.OpenDuration, 30*time.Second)
	s.MaxOpenDuration = max(orDefault(s.MaxOpenDuration, 2*time.Minute), s.OpenDuration)
	s.HalfOpenSuccesses = orDefault(s.HalfOpenSuccesses, 1)
	s.Sample = s.Sample.withDefaults()
	return s
}

func orDefault[T int | time.Duration](v, d T) T {
	if v <= 0 {
		return d
	}
	return v
}

// openFor is the open time of the n-th consecutive opening, n from 1.
func (s Settings) openFor(n int64) time.Duration {
	d := s.OpenDuration
	for ; n > 1 && d < s.MaxOpenDuration; n-- {
		d *= 2
	}
	return min(d, s.MaxOpenDuration)
}
