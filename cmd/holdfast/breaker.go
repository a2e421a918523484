package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"holdfast/internal/app"
	"holdfast/internal/config"
	"holdfast/internal/routing/breaker"
)

const (
	operatorTime = 15 * time.Second    // for all that is asked of the table
	shortestFor  = time.Second         // of an order
	longestFor   = 30 * 24 * time.Hour // one that is forgotten should end some day, or be meant to have no end
)

func runBreaker(ctx context.Context, args []string, env environment) int {
	p, status, ok := wordsAndFlags("breaker", args, env, "config", "table", "for", "why")
	if !ok {
		return status
	}
	c, err := p.candidates(ctx, env)
	if err != nil {
		fmt.Fprintln(env.stderr, err)
		return exitRefused
	}
	r, err := p.request(c, time.Now())
	if err != nil {
		return misuse("breaker", env, err)
	}
	if p.app.Table == "" {
		return misuse("breaker", env, errors.New("which table? Breakers in memory are their process's own: there is nobody to tell (--table, HOLDFAST_TABLE)"))
	}
	ctx, cancel := context.WithTimeout(ctx, operatorTime)
	defer cancel()
	o, err := app.NewOperator(ctx, p.app)
	if err == nil {
		err = r.carryOut(ctx, o, env)
	}
	if err != nil {
		fmt.Fprintf(env.stderr, "holdfast breaker: %v\n", err)
		return exitFailed
	}
	if r.order != nil {
		fmt.Fprint(env.stdout, p.reach(c))
	}
	return exitOK
}

// candidates is the configuration, nil where none is named.
func (p places) candidates(ctx context.Context, env environment) (*config.Config, error) {
	if p.config == "" {
		return nil, nil //nolint:nilnil // none is an answer
	}
	c, _, err := config.Load(ctx, p.source(env))
	return c, err
}

// request is what the words ask for.
type request struct {
	order      *breaker.Order // nil: only show
	candidates []string
}

// request reads the words. Whatever is wrong with them is found before anything is asked of the table.
func (p places) request(c *config.Config, now time.Time) (r request, err error) {
	verb := "list"
	if len(p.words) > 0 {
		verb, r.candidates = p.words[0], p.words[1:]
	}
	switch verb {
	case "open":
		r.order = &breaker.Order{To: breaker.ForcedOpen}
	case "close":
		r.order = &breaker.Order{To: breaker.ForcedClosed}
	case "reset":
		r.order = &breaker.Order{To: breaker.Closed}
	case "list":
		return p.list(c, r)
	default:
		return r, fmt.Errorf("%q is none of list, open, close, reset", verb)
	}
	if len(r.candidates) != 1 {
		return r, fmt.Errorf("%s is for one candidate", verb)
	}
	if r.order.Until, err = end(p.duration, now); err != nil {
		return r, err
	}
	if r.order.Why = "operator"; p.why != "" {
		r.order.Why += ": " + p.why
	}
	if err := r.order.Check(now); err != nil {
		return r, err
	}
	return r, check(c, r.candidates)
}

func (p places) list(c *config.Config, r request) (request, error) {
	if p.duration+p.why != "" {
		return r, errors.New("list takes neither --for nor --why")
	}
	if len(r.candidates) == 0 && c != nil {
		for _, candidate := range c.Candidates {
			r.candidates = append(r.candidates, candidate.ID)
		}
	}
	if len(r.candidates) == 0 {
		return r, errors.New("of which candidates? Name them, or a configuration that does (--config, HOLDFAST_CONFIG)")
	}
	return r, check(c, r.candidates)
}

func check(c *config.Config, candidates []string) error {
	for _, id := range candidates {
		err := config.CheckID(id)
		if err == nil && c != nil {
			err = c.CheckCandidate(id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// end of an order; zero for none.
func end(duration string, now time.Time) (time.Time, error) {
	if duration == "" {
		return time.Time{}, nil
	}
	d, err := time.ParseDuration(duration)
	if err != nil || d < shortestFor || d > longestFor {
		return time.Time{}, fmt.Errorf("--for %q: a time such as 90s, 10m or 2h, at most %.0fh", duration, longestFor.Hours())
	}
	return now.Add(d), nil
}

// carryOut does what was asked and shows it.
func (r request) carryOut(ctx context.Context, o *app.Operator, env environment) error {
	if r.order != nil {
		before, after, err := o.Force(ctx, r.candidates[0], *r.order)
		if err != nil {
			return err
		}
		fmt.Fprintf(env.stdout, "%s was %s, and is %s now.\n", after.Candidate, describe(before), describe(after))
		return nil
	}
	states, err := o.States(ctx, r.candidates...)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	for _, s := range states {
		fmt.Fprintf(table, "%s\t%s\n", s.Candidate, describe(s))
	}
	return table.Flush()
}

// describe tells a state, its end and its reason.
func describe(s breaker.Status) string {
	var b strings.Builder
	b.WriteString(s.State.String())
	if s.Cooling {
		b.WriteString(" (cooling)")
	}
	if !s.Until.IsZero() {
		fmt.Fprintf(&b, " until %s", s.Until.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	if s.Why != "" && s.State != breaker.Closed {
		fmt.Fprintf(&b, " (%s)", s.Why)
	}
	return b.String()
}

// reach says who hears of an order, and who doesn't care.
func (p places) reach(c *config.Config) string {
	text := fmt.Sprintf("Every process that serves with the table %s sees it within %s.\n", p.app.Table, breaker.FleetSees)
	switch {
	case c == nil:
	case !c.Breaker.Enabled:
		text += "But those with this configuration don't look: breaker.enabled is false there.\n"
	case c.Breaker.Observe:
		text += "But those with this configuration refuse nothing: breaker.observe is true there.\n"
	}
	return text
}
