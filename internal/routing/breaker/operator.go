package breaker

import "time"

// FleetSees is how long a serving process may go on by what it knew before an operator's word: the age from which the
// copy of an open breaker is read again.
const FleetSees = ageOpen * time.Millisecond

// Status is what the record says at a time.
func (r Record) Status(candidate string, now time.Time) Status {
	r = r.at(now.UnixMilli())
	s := Status{Candidate: candidate, State: r.State, Cooling: r.cooling(), Generation: r.Gen, Why: r.Why}
	if r.State != Closed && r.State != HalfOpen && r.OpenUntil > 0 {
		s.Until = time.UnixMilli(r.OpenUntil)
	}
	return s
}
