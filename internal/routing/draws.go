package routing

import "sync/atomic"

// draws counts, by candidate, who came first in the draws by weight of one router.
type draws map[string]*atomic.Int64

func newDraws(candidates []Candidate) draws {
	d := draws{}
	for i := range candidates {
		d[candidates[i].ID] = new(atomic.Int64)
	}
	return d
}

// add counts a draw; "" is none.
func (d draws) add(id string) {
	if n := d[id]; n != nil {
		n.Add(1)
	}
}

// shares fills in what each candidate has of the weights and of the draws of its priority.
func (d draws) shares(list []CandidateStatus) {
	type sum struct{ weight, draws float64 }
	drawn := make([]float64, len(list))
	all := map[int]sum{}
	for i := range list {
		c := &list[i].Candidate
		if c.Unlisted || c.Weight == 0 {
			continue
		}
		drawn[i] = float64(d[c.ID].Load())
		s := all[c.Priority]
		all[c.Priority] = sum{s.weight + float64(c.Weight), s.draws + drawn[i]}
	}
	for i := range list {
		c := &list[i].Candidate
		if c.Unlisted || c.Weight == 0 {
			continue
		}
		s := all[c.Priority]
		list[i].Share = float64(c.Weight) / s.weight
		if s.draws > 0 {
			list[i].Drawn = drawn[i] / s.draws
		}
	}
}
