package lambdahttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	initLimit     = 10 * time.Second // of a function's start, as on Lambda
	startAttempts = 3                // failed starts in a row before the server gives up
	restartAfter  = 100 * time.Millisecond
	restartCap    = 5 * time.Second
	drainLimit    = 10 * time.Second // for requests in flight when the server is told to stop
	finishLimit   = 6 * time.Second  // for work after their responses
	termGrace     = 2 * time.Second  // between SIGTERM and SIGKILL; Lambda gives 0.5 s
)

// Server is a local Function URL: it runs a deployed bootstrap unchanged and streams what it answers. It is Lambda's
// side of the runtime API, with Lambda's limits: one request at a time an instance, bodies up to 6 MB, a deadline after
// which the instance is killed, and no word to the function of a caller who left.
type Server struct {
	Bootstrap string        // the function's program
	Timeout   time.Duration // of one invocation, work after the response included; 0: 30 s
	Instances int           // processes; 0: 1
	Env       []string      // of the processes, before Lambda's own variables; nil: this process's
	Stdout    io.Writer     // of the processes; nil: this process's
	Stderr    io.Writer
	Log       *slog.Logger // nil: slog.Default()
}

// StartError says that the function doesn't start, and a further attempt wouldn't help.
type StartError struct {
	Bootstrap string
	Attempts  int
	ExitCode  int // of the last attempt; -1 where there was none
	Reason    string
}

func (e *StartError) Error() string {
	return fmt.Sprintf("%s doesn't start (%d attempts): %s", e.Bootstrap, e.Attempts, e.Reason)
}

// Run serves l until ctx ends, then lets requests in flight end, asks the processes to stop, and returns nil once they
// are gone. It returns a [*StartError] when the function doesn't come up. It closes l.
func (s Server) Run(ctx context.Context, l net.Listener) error {
	s.fill()
	f := &front{queue: make(chan *invocation), gone: make(chan struct{}), timeout: s.Timeout, log: s.Log}
	public := &http.Server{Handler: f, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	instances, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var all errgroup.Group
	for n := range s.Instances {
		all.Go(func() error {
			err := s.keep(instances, n, f.queue)
			if err != nil {
				stop()
			}
			return err
		})
	}
	served := make(chan error, 1)
	go func() { served <- public.Serve(l) }()
	var err error
	select {
	case <-ctx.Done():
	case <-instances.Done():
	case err = <-served:
	}
	if instances.Err() != nil {
		close(f.gone)
	}
	drain(public)
	stop()
	return cmp.Or(all.Wait(), ignoreClosed(err))
}

func (s *Server) fill() {
	s.Timeout = cmp.Or(s.Timeout, 30*time.Second)
	s.Instances = max(s.Instances, 1)
	if abs, err := filepath.Abs(s.Bootstrap); err == nil {
		s.Bootstrap = abs // exec would look for a bare name in PATH
	}
	s.Log = Options{Log: s.Log}.log()
	if s.Env == nil {
		s.Env = os.Environ()
	}
	if s.Stdout == nil {
		s.Stdout = os.Stdout
	}
	if s.Stderr == nil {
		s.Stderr = os.Stderr
	}
}

// keep has one instance running until ctx ends.
func (s *Server) keep(ctx context.Context, n int, queue <-chan *invocation) error {
	failed, pause := 0, restartAfter
	for ctx.Err() == nil {
		end := s.live(ctx, n, queue)
		switch {
		case ctx.Err() != nil:
			continue // to the end of the loop: it was stopped
		case end.served:
			failed, pause = 0, restartAfter
		default:
			failed++
		}
		if end.hopeless || !end.ready && failed >= startAttempts {
			return &StartError{Bootstrap: s.Bootstrap, Attempts: failed, ExitCode: end.code, Reason: end.reason}
		}
		s.Log.Warn("function ended, starting it again", "instance", n, "reason", end.reason, "after", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, restartCap)
	}
	return nil
}

// drain lets requests in flight end, and cuts those that don't.
func drain(public *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	if public.Shutdown(ctx) != nil {
		_ = public.Close()
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
