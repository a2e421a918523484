// Command upkeep is the Lambda function on a schedule: it deletes expired cache rows. Invoked with
// {"action":"migrate"} it prepares the database instead; with "purge" or "forget" it deletes cached answers, as
// holdfast cache does. It answers with a report of what it did.
package main

import (
	"context"
	"errors"
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
	Action   string `json:"action"`
	Tenant   string `json:"tenant"` // of purge and forget, as the flags of holdfast cache
	User     string `json:"user"`
	Question string `json:"question"`
	Key      string `json:"key"`
	For      string `json:"for"`
}

// report is what was done.
type report struct {
	Action  string   `json:"action"`
	Expired int      `json:"expired"`
	Deleted int      `json:"deleted,omitempty"` // by purge and forget
	Steps   []string `json:"steps,omitempty"`   // of a migration
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
	case "purge":
		deleted, err := app.PurgeCache(ctx, u.Places, t.target())
		return report{Action: t.Action, Deleted: deleted}, err
	case "forget":
		d, err := app.ForgetFor(t.For)
		if err != nil {
			return report{}, fmt.Errorf("for is a time: %w", err)
		}
		if t.User != "" {
			return report{}, errors.New("forget takes no user")
		}
		deleted, err := app.ForgetCache(ctx, u.Places, t.target(), d)
		return report{Action: t.Action, Deleted: deleted}, err
	}
	return report{}, fmt.Errorf("unknown action %.40q: want expire (the default), migrate, purge or forget", t.Action)
}

func (t task) target() app.CacheTarget {
	return app.CacheTarget{Tenant: t.Tenant, User: t.User, Question: t.Question, Key: t.Key}
}
