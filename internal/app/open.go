package app

import (
	"context"

	"holdfast/internal/config"
)

// Open puts an App together out of a configuration and the places that the environment names.
func Open(ctx context.Context, c *config.Config, o Options) (*App, error) { return &App{}, nil }
