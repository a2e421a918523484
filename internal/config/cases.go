package config

import (
	"context"
	"fmt"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Case is one test of a team's own rules: what a request is, and who must be asked.
type Case struct {
	Name       string
	Line       int
	Facts      Facts    // tenant "anonymous" unless it says otherwise
	Rule       *string  // the rule that must choose, "" for none; nil: any
	Candidates []string // those that must come first, in this order; nil: any
}

// LoadCases reads a file of cases. The error is [Errors].
func LoadCases(ctx context.Context, path string) ([]Case, error) {
	got, err := readFile(ctx, path)
	if err != nil {
		return nil, Errors{{File: path, Reason: err.Error()}}
	}
	d := &decoder{file: path, lookup: os.LookupEnv, nodes: map[string]*yaml.Node{}}
	var cases []Case
	if root := d.document(got.data); root != nil {
		d.visit(root, "", d.mapping(fields{"cases": d.list(d.oneCase(&cases))}))
		if len(cases) == 0 && len(d.problems) == 0 {
			d.fail(root, "there is no case")
		}
	}
	if len(d.problems) > 0 {
		return nil, Errors(inOrder(d.problems))
	}
	return cases, nil
}

func (d *decoder) oneCase(into *[]Case) func(int, *yaml.Node, string) {
	return func(_ int, n *yaml.Node, path string) {
		c := Case{Line: n.Line, Facts: Facts{Tenant: "anonymous", Messages: 1}}
		var rule string
		d.mapping(fields{
			"name":    d.text(&c.Name),
			"request": d.facts(&c.Facts),
			"want":    d.mapping(fields{"rule": d.text(&rule), "candidates": d.ids(&c.Candidates)}),
		})(n, path)
		d.require(n, path, "name", "want")
		if d.given(path + ".want.rule") {
			c.Rule = &rule
		}
		if n.Kind == yaml.MappingNode && c.Rule == nil && c.Candidates == nil {
			d.fail(n, "%s wants nothing: give want a rule or candidates", path)
		}
		*into = append(*into, c)
	}
}

func (d *decoder) facts(f *Facts) reader {
	return d.mapping(fields{
		"tokens": d.integer(&f.Tokens, 0, maxTokens), "messages": d.integer(&f.Messages, 0, maxCount),
		"tools": d.integer(&f.Tools, 0, maxCount), "images": d.integer(&f.Images, 0, maxCount), "hour": d.integer(&f.Hour, 0, 23),
		"thinking": d.boolean(&f.Thinking), "stream": d.boolean(&f.Stream),
		"task": d.text(&f.Task), "tenant": d.text(&f.Tenant), "model": d.text(&f.Model),
		"tags": d.entries(func(name string, n *yaml.Node, path string) {
			if f.Tags == nil {
				f.Tags = map[string]string{}
			}
			var value string
			d.text(&value)(n, path)
			f.Tags[name] = value
		}),
	})
}

// Miss says what is wrong with the choice that a configuration makes for the case; "" if nothing is.
func (c *Case) Miss(rule string, candidates []string) string {
	if c.Rule != nil && *c.Rule != rule {
		return fmt.Sprintf("the rule is %q, not %q", rule, *c.Rule)
	}
	if first := candidates[:min(len(candidates), len(c.Candidates))]; !slices.Equal(first, c.Candidates) {
		return fmt.Sprintf("the candidates are %s, not %s first", choices(candidates), choices(c.Candidates))
	}
	return ""
}
