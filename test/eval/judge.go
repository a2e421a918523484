package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"holdfast/internal/cache"
)

// ladder are the rules in the order in which the cache tries them: each serves what those before it serve, and more.
var ladder = []string{"exact", "canonical", "similar"}

// wanted is the precision that is enough: to ask more of the cosine because a small set showed no fault would be unfair.
const wanted = 0.99

// judge prints a line a rule for one embedder. What needs no embedder is printed with the first one only.
func (s *set) judge(out io.Writer, e embedder, first bool, show shown) error {
	strict, err := s.served(out, e, "strict", shown{wrong: show.wrong && first})
	if err != nil {
		return err
	}
	if first {
		s.line(out, "–", "exact only", strict, 1)
		s.line(out, "–", "and canonical", strict, 2)
	}
	s.line(out, e.name, "strict", strict, 3)
	if first {
		show.wrong = show.wrong && strict.sum(3).all == 0
	}
	similar, err := s.served(out, e, "similar", show)
	if err != nil {
		return err
	}
	s.line(out, e.name, "similar", similar, 3)
	c := strict.sum(3)
	return s.cosineOnly(out, e, min(wanted, float64(c.right)/float64(max(c.all, 1))))
}

// counts are what was served, by rule.
type counts map[string]*count

// sum adds up what the first n rules of the ladder served.
func (c counts) sum(n int) (total count) {
	for _, rule := range ladder[:n] {
		if one := c[rule]; one != nil {
			total.right += one.right
			total.all += one.all
		}
	}
	return total
}

func (s *set) served(out io.Writer, e embedder, accept string, show shown) (counts, error) {
	c := counts{}
	for _, p := range s.pairs {
		rule, err := ask(e.open(accept, 1), p)
		if err != nil {
			return nil, err
		}
		switch {
		case rule == "" && p.Same && show.missed:
			fmt.Fprintf(out, "missed: %s | %s\n", p.A, p.B)
		case rule != "" && !p.Same && show.wrong:
			fmt.Fprintf(out, "wrong (%s, %s): %s | %s\n", accept, rule, p.A, p.B)
		}
		if rule == "" {
			continue
		}
		if c[rule] == nil {
			c[rule] = &count{}
		}
		c[rule].add(p.Same)
	}
	return c, nil
}

func (s *set) line(out io.Writer, embedder, name string, c counts, rules int) {
	var parts []string
	for _, rule := range ladder[:rules] {
		if one := c[rule]; one != nil {
			parts = append(parts, fmt.Sprintf("%s %d/%d", rule, one.right, one.all))
		}
	}
	s.row(out, embedder, name, c.sum(rules), strings.Join(parts, ", "))
}

func (s *set) row(out io.Writer, embedder, name string, c count, note string) {
	precision := "–"
	if c.all > 0 {
		low, high := wilson(c.right, c.all)
		precision = fmt.Sprintf("%.4f [%.3f, %.3f]", float64(c.right)/float64(c.all), low, high)
	}
	fmt.Fprintf(out, "| %s | %s | %d / %d | %s | %.3f | %s |\n", embedder, name, c.right, c.all, precision,
		float64(c.right)/float64(max(s.same(), 1)), note)
}

// wilson is the interval of a share that a sample speaks for, with 95 % confidence.
func wilson(right, all int) (low, high float64) {
	const z = 1.959964
	n, p := float64(all), float64(right)/float64(all)
	middle, half := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return (middle - half) / (1 + z*z/n), (middle + half) / (1 + z*z/n)
}

// cosineOnly serves whatever is similar enough, with the threshold that serves most at a precision.
func (s *set) cosineOnly(out io.Writer, e embedder, precision float64) error {
	type scored struct {
		cosine float64
		same   bool
	}
	all := make([]scored, 0, len(s.pairs))
	for _, p := range s.pairs {
		cosine, err := e.cosine(p)
		if err != nil {
			return err
		}
		all = append(all, scored{cosine, p.Same})
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Compare(b.cosine, a.cosine) })
	var best, c count
	threshold := math.Inf(1)
	for i, one := range all {
		c.add(one.same)
		last := i+1 == len(all) || all[i+1].cosine < one.cosine
		if last && float64(c.right) >= precision*float64(c.all) {
			best, threshold = c, one.cosine
		}
	}
	note := "at no threshold as precise as strict"
	if best.all > 0 {
		note = fmt.Sprintf("from %.4f", threshold)
	}
	s.row(out, e.name, "cosine only", best, note)
	return nil
}

func (e embedder) cosine(p pair) (float64, error) {
	a, err := e.Embed(context.Background(), p.A)
	if err != nil {
		return 0, err
	}
	b, err := e.Embed(context.Background(), p.B)
	if err != nil || a.Values == nil || b.Values == nil {
		return 0, err
	}
	var sum float64
	for i, x := range a.Values {
		sum += float64(x) * float64(b.Values[i])
	}
	return sum, nil
}

// refused counts the questions to which no answer is ever stored: what is found with its own words was.
func (s *set) refused() (int, error) {
	n := 0
	for _, p := range s.pairs {
		for _, text := range []string{p.A, p.B} {
			rule, err := ask(embedder{"", cache.NewHashed()}.open("strict", 1), pair{A: text, B: text})
			if err != nil {
				return 0, err
			}
			if rule == "" {
				n++
			}
		}
	}
	return n, nil
}

func percent(n, all int) float64 { return 100 * float64(n) / float64(max(all, 1)) }
