package app

import (
	"fmt"

	"holdfast/internal/config"
	"holdfast/internal/routing"
)

// Try asks a configuration the cases of a team's own rule tests, without starting anything. It gives what is wrong
// with each, by the case's place; nothing if all hold.
func Try(c *config.Config, cases []config.Case) map[int]string {
	settings := routingSettings(c, nil)
	wrong := map[int]string{}
	for i := range cases {
		rule, candidates, known := settings.Choose((*routing.Facts)(&cases[i].Facts))
		miss := cases[i].Miss(rule, candidates)
		if !known {
			miss = fmt.Sprintf("there is no model %q for the tenant %q", cases[i].Facts.Model, cases[i].Facts.Tenant)
		}
		if miss != "" {
			wrong[i] = miss
		}
	}
	return wrong
}
