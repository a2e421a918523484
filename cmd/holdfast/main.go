// Command holdfast is Holdfast on one machine: it serves, checks a configuration, prepares the stores, and runs a
// Lambda bootstrap behind a local Function URL.
//
// Its one idea: a command is a function of its arguments and its surroundings, so that the tests run what people run.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// Exit statuses.
const (
	exitOK      = 0
	exitFailed  = 1
	exitRefused = 2 // wrong use, or a configuration that isn't right: nothing was started
)

// environment is what surrounds a command.
type environment struct {
	stdout, stderr io.Writer
	lookup         func(string) (string, bool) // as os.LookupEnv
}

// command is one of holdfast's commands.
type command struct {
	name string
	line string // what it does, in one line
	help string // how it is used
	run  func(ctx context.Context, args []string, env environment) int
}

// commands is the dispatch table, in the order of the help.
func commands() []command {
	return []command{
		{"serve", "serve the chat API on this machine", serveHelp, runServe},
		{"lambda", "run a Lambda bootstrap behind a local Function URL", lambdaHelp, runLambda},
		{"check", "say whether a configuration is right, and show what it means", checkHelp, runCheck},
		{"breaker", "show the fleet's breakers, force one open or closed", breakerHelp, runBreaker},
		{"migrate", "prepare the database and the table that the environment names", migrateHelp, runMigrate},
		{"cache", "purge answers, or forget a question, in the database", cacheHelp, runCache},
		{"version", "print the version", versionHelp, runVersion},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], environment{os.Stdout, os.Stderr, os.LookupEnv}))
}

// run runs the command that the arguments name and gives its exit status.
func run(ctx context.Context, args []string, env environment) int {
	if len(args) == 0 {
		fmt.Fprint(env.stderr, usage())
		return exitRefused
	}
	name, rest := args[0], args[1:]
	switch {
	case isHelp(name):
		return runHelp(rest, env)
	case slices.Contains([]string{"-version", "--version", "-v"}, name):
		name = "version"
	}
	c, ok := find(name)
	if !ok {
		fmt.Fprintf(env.stderr, "holdfast: there is no command %q\n\n%s", name, usage())
		return exitRefused
	}
	return c.run(ctx, rest, env)
}

func find(name string) (command, bool) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}
