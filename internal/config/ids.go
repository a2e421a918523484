package config

import (
	"fmt"
	"iter"
)

// CheckID says what is wrong with an id that a person has typed.
func CheckID(id string) error {
	if !idPattern.MatchString(id) {
		return fmt.Errorf("%q is no id: 1 to 64 letters, digits, dots, dashes, underscores", brief(id))
	}
	return nil
}

// CheckCandidate says that there is no candidate of this id, and which one was probably meant.
func (c *Config) CheckCandidate(id string) error {
	for known := range c.ids() {
		if known == id {
			return nil
		}
	}
	return fmt.Errorf("%s has no candidate %q%s", c.Source, brief(id), suggest(id, c.ids()))
}

func (c *Config) ids() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, candidate := range c.Candidates {
			if !yield(candidate.ID) {
				return
			}
		}
	}
}
