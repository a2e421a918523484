package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/app"
)

const cacheTime = 15 * time.Minute // bounds the deletion of a full cache

func runCache(ctx context.Context, args []string, env environment) int {
	if len(args) == 0 || args[0] != "purge" && args[0] != "forget" {
		if len(args) > 0 && isHelp(args[0]) {
			fmt.Fprint(env.stdout, cacheHelp)
			return exitOK
		}
		return misuse("cache", env, errors.New("purge or forget has to be said"))
	}
	verb, flags := args[0], []string{"database-url", "tenant", "question", "key"}
	if verb == "purge" {
		flags = append(flags, "user")
	} else {
		flags = append(flags, "for")
	}
	p, status, ok := arguments("cache", args[1:], env, flags...)
	if !ok {
		return status
	}
	d, err := app.ForgetFor(p.duration)
	switch {
	case err != nil:
		return misuse("cache", env, fmt.Errorf("--for %w", err))
	case p.app.DatabaseURL == "":
		return misuse("cache", env, errors.New("which database? A cache in memory is forgotten when its process ends (--database-url, HOLDFAST_DATABASE_URL)"))
	}
	ctx, cancel := context.WithTimeout(ctx, cacheTime)
	defer cancel()
	deleted, err := changeCache(ctx, verb, p, d)
	if errors.Is(err, app.ErrCacheTarget) {
		return misuse("cache", env, err)
	}
	if err == nil || deleted > 0 {
		fmt.Fprintf(env.stdout, "%d deleted\n", deleted)
	}
	if err != nil {
		fmt.Fprintf(env.stderr, "holdfast cache %s: %v\n", verb, err)
		return exitFailed
	}
	return exitOK
}

func changeCache(ctx context.Context, verb string, p places, forgotten time.Duration) (deleted int, err error) {
	if verb == "purge" {
		return app.PurgeCache(ctx, p.app, p.target)
	}
	return app.ForgetCache(ctx, p.app, p.target, forgotten)
}
