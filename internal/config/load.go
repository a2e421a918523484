package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Clocks of a candidate that says nothing of its own.
const (
	connectTimeout = 3 * time.Second
	headerTimeout  = 30 * time.Second
	idleTimeout    = 30 * time.Second
)

//go:embed holdfast.yaml
var embedded []byte

// embeddedName is what people know the built-in configuration as.
const embeddedName = "embedded holdfast.yaml"

// Source says where a configuration is.
type Source struct {
	// Location is a path or an http(s) URL; "" is the embedded configuration.
	Location string
	// Lookup finds environment variables; nil: the process's own.
	Lookup func(string) (string, bool)
	// MoreKeys says that callers' keys come from elsewhere too (HOLDFAST_KEYS): a file without any is no mistake.
	MoreKeys bool
}

// Load reads, completes and judges a configuration. The error is [Errors] wherever the file itself is at fault or
// can't be read; then there is no Config, while the warnings may still be told.
func Load(ctx context.Context, s Source) (*Config, []Warning, error) { return NewFeed(s).Next(ctx) }

// parse makes a configuration out of a file's bytes.
func (s Source) parse(name string, data []byte) (*Config, []Warning, error) {
	d := &decoder{file: name, lookup: s.Lookup, moreKeys: s.MoreKeys, nodes: map[string]*yaml.Node{}}
	if d.lookup == nil {
		d.lookup = os.LookupEnv
	}
	c := defaults()
	if root := d.document(data); root != nil {
		d.visit(root, "", d.mapping(d.sections(c)))
		d.complete(c)
		d.judge(c)
	}
	warnings := inOrder(d.warnings)
	if len(d.problems) > 0 {
		return nil, warnings, Errors(inOrder(d.problems))
	}
	c.Version, c.Source = version(data), name
	return c, warnings, nil
}

// document gives the top of the one YAML document in data, or notes why there is none.
func (d *decoder) document(data []byte) *yaml.Node {
	in := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := in.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		d.syntax(err)
		return nil
	}
	if doc.Kind == 0 || len(doc.Content) == 0 || isNull(doc.Content[0]) {
		d.fail(nil, "the configuration is empty")
		return nil
	}
	switch err := in.Decode(&second); {
	case err == nil:
		d.fail(&second, "a second document begins here; there may be only one")
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(err)
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		d.fail(root, "the configuration is a mapping of keys to values, not %s", what(root))
		return nil
	}
	return root
}

// yamlLine is how the YAML library begins what it says of a line.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// syntax notes what the YAML library has to say.
func (d *decoder) syntax(err error) {
	text := err.Error()
	line := 1
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits by the pattern
		text = text[len(m[0]):]
	}
	d.fail(&yaml.Node{Line: line}, "%s", strings.TrimPrefix(clip(text, 200), "yaml: "))
}

// version is a hash of the file as it stands: references are in it, what they stand for is not.
func version(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:4])
}
