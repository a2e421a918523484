package main

import (
	"context"
	"fmt"
)

const lambdaHelp = `usage: holdfast lambda BOOTSTRAP
`

func runLambda(_ context.Context, _ []string, env environment) int {
	fmt.Fprintln(env.stderr, "holdfast lambda: not there yet")
	return exitFailed
}
