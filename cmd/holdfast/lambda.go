package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"holdfast/internal/lambdahttp"
)

const lambdaHelp = `usage: holdfast lambda BOOTSTRAP [flags]

Runs a Lambda bootstrap, such as bin/stream/bootstrap, behind a local Function URL. It is the deployed binary, unchanged,
and its streams arrive as they are produced. The function gets this process's environment and Lambda's own variables. As
on Lambda it needs a configuration: HOLDFAST_CONFIG, or holdfast.yaml beside the bootstrap. A function that crashes or
overruns its time is started again. One that doesn't start ends the command, with its status where it refuses its
configuration (2).

  --listen HOST:PORT   HOLDFAST_LISTEN  where to listen; 127.0.0.1:8080
  --timeout DURATION                    of one invocation; 30s
  --instances N                         processes, each with one request at a time; 1
`

const maxInstances = 100

// lambdaCommand is what a call of holdfast lambda asks for.
type lambdaCommand struct {
	listen string
	server lambdahttp.Server
}

func runLambda(ctx context.Context, args []string, env environment) int {
	c, err := parseLambda(args, env)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(env.stdout, lambdaHelp)
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(env.stderr, "holdfast lambda: %v\n\n%s", err, lambdaHelp)
		return exitRefused
	}
	err = c.serve(ctx, env)
	var start *lambdahttp.StartError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &start) && start.ExitCode == exitRefused:
		return exitRefused // the function has told why
	}
	fmt.Fprintf(env.stderr, "holdfast lambda: %v\n", err)
	return exitFailed
}

// parseLambda reads the arguments; flags may stand before and after the bootstrap.
func parseLambda(args []string, env environment) (lambdaCommand, error) {
	var c lambdaCommand
	listen := defaultListen
	if value, ok := env.lookup("HOLDFAST_LISTEN"); ok && value != "" {
		listen = value
	}
	set := flag.NewFlagSet("lambda", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&c.listen, "listen", listen, "")
	set.DurationVar(&c.server.Timeout, "timeout", 30*time.Second, "")
	set.IntVar(&c.server.Instances, "instances", 1, "")
	var words []string
	for rest := args; len(rest) > 0; {
		if err := set.Parse(rest); err != nil {
			return c, err
		}
		if rest = set.Args(); len(rest) > 0 {
			words, rest = append(words, rest[0]), rest[1:]
		}
	}
	if len(words) != 1 {
		return c, fmt.Errorf("want one bootstrap, got %d", len(words))
	}
	c.server.Bootstrap = words[0]
	return c, c.judge()
}

func (c lambdaCommand) judge() error {
	if c.server.Timeout < time.Second || c.server.Timeout > 15*time.Minute {
		return fmt.Errorf("--timeout %s: want 1s to 15m, as on Lambda", c.server.Timeout)
	}
	if c.server.Instances < 1 || c.server.Instances > maxInstances {
		return fmt.Errorf("--instances %d: want 1 to %d", c.server.Instances, maxInstances)
	}
	info, err := os.Stat(c.server.Bootstrap)
	switch {
	case err != nil:
		return fmt.Errorf("no bootstrap at %s: make build makes bin/{chat,stream,upkeep}/bootstrap", c.server.Bootstrap)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is no program", c.server.Bootstrap)
	}
	return nil
}

func (c lambdaCommand) serve(ctx context.Context, env environment) error {
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "Function URL http://%s runs %s (%s an invocation, instances: %d). Try:\n\n  curl -N http://%s/healthz\n\n",
		listener.Addr(), c.server.Bootstrap, c.server.Timeout, c.server.Instances, listener.Addr())
	c.server.Stdout, c.server.Stderr, c.server.Log = env.stdout, env.stderr, env.logger()
	return c.server.Run(ctx, listener)
}
