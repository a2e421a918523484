package main

import (
	"context"
	"fmt"
	"time"

	"holdfast/internal/app"
)

// migrateTime bounds a migration; building an index on a full cache takes minutes.
const migrateTime = 15 * time.Minute

func runMigrate(ctx context.Context, args []string, env environment) int {
	p, status, ok := arguments("migrate", args, env, "database-url", "table")
	if !ok {
		return status
	}
	if p.app.DatabaseURL == "" && p.app.Table == "" {
		fmt.Fprintln(env.stdout, "Nothing to do: neither HOLDFAST_DATABASE_URL nor HOLDFAST_TABLE names anything.")
		return exitOK
	}
	ctx, cancel := context.WithTimeout(ctx, migrateTime)
	defer cancel()
	err := app.Migrate(ctx, p.app, func(line string) { fmt.Fprintln(env.stdout, line) })
	if err != nil {
		fmt.Fprintf(env.stderr, "holdfast migrate: %v\n", err)
		return exitFailed
	}
	return exitOK
}
