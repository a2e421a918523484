package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"holdfast/internal/app"
	"holdfast/internal/config"
)

func runCheck(ctx context.Context, args []string, env environment) int {
	p, status, ok := arguments("check", args, env, "config", "cases")
	if !ok {
		return status
	}
	c, warnings, err := config.Load(ctx, p.source(env))
	if err != nil {
		fmt.Fprintln(env.stderr, err)
		return exitRefused
	}
	var b bytes.Buffer
	picture{&b, c}.draw(warnings)
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(env.stdout, strings.TrimRight(line, " \n")) // an empty last column leaves its padding
	}
	if p.cases != "" {
		return runCases(ctx, c, p.cases, env)
	}
	return exitOK
}

// runCases tells which of a team's own rule tests hold.
func runCases(ctx context.Context, c *config.Config, path string, env environment) int {
	cases, err := config.LoadCases(ctx, path)
	if err != nil {
		fmt.Fprintln(env.stderr, err)
		return exitRefused
	}
	wrong := app.Try(c, cases)
	for i, one := range cases {
		if why := wrong[i]; why != "" {
			fmt.Fprintf(env.stderr, "%s:%d: %s: %s\n", path, one.Line, one.Name, why)
		}
	}
	fmt.Fprintf(env.stdout, "\nCases      %d of %d hold\n", len(cases)-len(wrong), len(cases))
	if len(wrong) > 0 {
		return exitFailed
	}
	return exitOK
}

// picture shows people what a configuration means. It has no secrets in it.
type picture struct {
	out io.Writer
	c   *config.Config
}

func (p picture) draw(warnings []config.Warning) {
	fmt.Fprintf(p.out, "%s is right (version %s).\n\n", p.c.Source, p.c.Version)
	p.candidates()
	p.chains()
	p.rules()
	p.rest()
	if len(warnings) > 0 {
		fmt.Fprintf(p.out, "\nWarnings\n")
	}
	for _, w := range warnings {
		fmt.Fprintf(p.out, "  %s\n", w)
	}
}

// candidates shows the default order; equal priorities share by weight.
func (p picture) candidates() {
	list := slices.Clone(p.c.Candidates)
	slices.SortStableFunc(list, func(a, b config.Candidate) int { return cmp.Compare(a.Priority, b.Priority) })
	fmt.Fprintf(p.out, "Candidates, in the order they are asked\n")
	t := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  PRIORITY\tWEIGHT\tID\tPROVIDER\tMODEL\tAFTER IT\tREMARKS\n")
	for _, x := range list {
		fmt.Fprintf(t, "  %d\t%d\t%s\t%s\t%s\t%s\t%s\n", x.Priority, x.Weight, x.ID, x.Provider, x.Model, p.after(x.ID), p.remarks(x))
	}
	t.Flush()
}

// after says what follows a candidate that stands first.
func (p picture) after(id string) string {
	i := slices.IndexFunc(p.c.Chains, func(c config.Chain) bool { return c.Primary == id })
	if i < 0 {
		return "the order above"
	}
	return fallbacks(p.c.Chains[i])
}

func fallbacks(c config.Chain) string {
	switch n := len(c.Fallbacks); n {
	case 0:
		return "no fallback"
	case 1:
		return "1 fallback"
	default:
		return fmt.Sprintf("%d fallbacks", n)
	}
}

func (p picture) remarks(x config.Candidate) string {
	denied := slices.IndexFunc(p.c.Deny, func(e config.Deny) bool { return e.Candidate == x.ID })
	keyless := slices.ContainsFunc(p.c.Providers, func(r config.Provider) bool { return r.Name == x.Provider && r.NoClient })
	var all []string
	add := func(when bool, remark string) {
		if when {
			all = append(all, remark)
		}
	}
	add(x.ID == p.c.Chat.DefaultModel, "default")
	add(x.ID == p.c.Chat.DeepThinkingModel, "deep thinking")
	add(!x.Enabled, "disabled")
	add(denied >= 0, "denied")
	add(keyless, "no key")
	add(p.c.Embedded && x.Provider == "script" && anyKey(p.c), "left out, as there is a key")
	add(!x.Listed, "not listed")
	add(x.Weight == 0, "drained")
	add(len(x.Tenants) > 0, "for "+strings.Join(x.Tenants, ", "))
	return strings.Join(all, "; ")
}

// anyKey says whether a real provider has its key.
func anyKey(c *config.Config) bool {
	return slices.ContainsFunc(c.Providers, func(r config.Provider) bool { return r.Dialect != "script" && !r.NoClient })
}

func (p picture) chains() {
	if len(p.c.Chains) == 0 {
		return
	}
	fmt.Fprintf(p.out, "\nChains\n")
	for _, c := range p.c.Chains {
		fmt.Fprintf(p.out, "  %s: %s, %s\n", c.Name, c.Primary, fallbacks(c))
		for i, e := range c.Fallbacks {
			fmt.Fprintf(p.out, "    %d. %s %s\n", i+1, e.Model, trigger(e))
		}
	}
}

// trigger says when an entry is asked, and how often.
func trigger(e config.Entry) string {
	timeout := e.OnTimeout != nil && *e.OnTimeout
	var on []string
	if timeout {
		on = append(on, "a timeout")
	}
	switch {
	case len(e.OnStatus) > 0:
		on = append(on, "status "+strings.Trim(strings.ReplaceAll(fmt.Sprint(e.OnStatus), " ", ", "), "[]"))
	case e.OnStatus != nil, e.OnTimeout != nil && !timeout:
		on = append(on, "any status")
	case !timeout:
		on = append(on, "any failure")
	}
	text := "on " + strings.Join(on, " or ")
	if e.MaxRetries != nil {
		text += fmt.Sprintf(", retries: %d", *e.MaxRetries)
	}
	return text
}

// rules shows who is asked when, in the order in which they are asked.
func (p picture) rules() {
	if len(p.c.Rules) == 0 {
		return
	}
	fmt.Fprintf(p.out, "\nRules, of which the first that matches chooses\n")
	for i, r := range p.c.Rules {
		fmt.Fprintf(p.out, "  %d. %s: when %s\n", i+1, r.Name, strings.Join(strings.Fields(r.When), " "))
		fmt.Fprintf(p.out, "     use %s\n", choice(r))
	}
}

// choice says whom a rule asks.
func choice(r config.Rule) string {
	text := strings.Join(r.Use, ", ")
	switch {
	case r.UseChain != "":
		text = "the chain " + r.UseChain
	case !r.Only:
		text += ", then the default order"
	default:
		text += ", nobody else"
	}
	if r.Force {
		text += "; even where the request names a model"
	}
	if len(r.Message) > 0 {
		text += "; with a message of its own"
	}
	return text
}

// rest shows who may call and the last two tiers.
func (p picture) rest() {
	c := p.c
	callers := fmt.Sprintf("keys: %d", len(c.Auth.Keys))
	if c.Auth.Anonymous {
		callers += "; anyone without a key, as tenant anonymous"
	}
	fmt.Fprintf(p.out, "\nCallers    %s\n", callers)
	fmt.Fprintf(p.out, "Budget     %s, of which %s are kept for cache and message\n", c.Budget.Total, c.Budget.Reserve)
	fmt.Fprintf(p.out, "Breaker    %s\n", breakerLine(c.Breaker))
	fmt.Fprintf(p.out, "Cache      %s\n", cacheLine(c.Cache))
	fmt.Fprintf(p.out, "Message    status %d\n", c.Fallback.Status)
	for _, e := range c.Deny {
		fmt.Fprintf(p.out, "Denied     %s%s%s\n", e.Candidate, before(" until ", moment(e.Until)), before(": ", e.Reason))
	}
	for _, e := range c.Caps {
		fmt.Fprintf(p.out, "Cap        %s may spend %g USD a day\n", e.Tenant, e.USDPerDay)
	}
}

func cacheLine(c config.Cache) string {
	if c.Mode == "off" {
		return "off"
	}
	line := fmt.Sprintf("%s, %s, for %s", c.Mode, c.Accept, c.TTL)
	if c.Shadow > 0 {
		line += fmt.Sprintf("; %g%% of healthy requests are looked up to compare", 100*c.Shadow)
	}
	return line
}

func breakerLine(b config.Breaker) string {
	switch {
	case !b.Enabled:
		return "off"
	case b.Observe:
		return "counts, never refuses"
	}
	line := fmt.Sprintf("%s, opens after %d failures for %s", b.Mode, b.FailureThreshold, b.OpenDuration)
	if b.Mode != "consecutive" {
		line = fmt.Sprintf("%s, opens for %s when %g%% of %d calls of the fleet fail, judged from %d on",
			b.Mode, b.OpenDuration, 100*b.Sample.FailureRate, b.Sample.Size, b.Sample.MinCalls)
	}
	if b.SlowCall.After > 0 {
		line += fmt.Sprintf("; or %g%% have no first token by %s", 100*b.SlowCall.Rate, b.SlowCall.After)
	}
	if b.AllOpen == "earliest" {
		line += "; where all are open, the one that opens first is tried"
	}
	return line
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// before puts a prefix before a text that isn't empty.
func before(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}
