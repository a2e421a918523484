// Command upkeep is the Lambda function on a schedule: it deletes expired cache rows. Invoked with
// {"action":"migrate"} it prepares the database instead. It answers with a report of what it did.
package main

import (
	"context"
	"fmt"

	"holdfast/functions"
	"holdfast/internal/app"
)

// version is set by the linker (-X main.version=…).
var version string

func main() {
	f := functions.Open(version)
	f.Start(upkeep{f}.handle)
}

type upkeep struct{ functions.Function }

// task is what an event asks for. A schedule's own event names no action.
type task struct {
	Action string `json:"action"`
}

// report is what was done.
type report struct {
	Action  string   `json:"action"`
	Expired int      `json:"expired"`
	Steps   []string `json:"steps,omitempty"` // of a migration
}

func (u upkeep) handle(ctx context.Context, t task) (report, error) {
	switch t.Action {
	case "", "expire":
		expired, err := u.App.Upkeep(ctx)
		return report{Action: "expire", Expired: expired}, err
	case "migrate":
		r := report{Action: t.Action}
		err := app.Migrate(ctx, u.Places, func(step string) { r.Steps = append(r.Steps, step) })
		return r, err
	}
	return report{}, fmt.Errorf("unknown action %.40q: want expire (the default) or migrate", t.Action)
}
