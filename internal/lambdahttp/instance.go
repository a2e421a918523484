package lambdahttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// refused is the exit status of a function that doesn't accept its configuration: trying again changes nothing.
const refused = 2

// instance is one process of the function and the runtime API that it speaks to.
type instance struct {
	server  *Server
	queue   <-chan *invocation
	command *exec.Cmd
	ready   chan struct{} // closed at the first poll

	mu      sync.Mutex
	current *invocation // until the process asks for the next one
	polled  bool
	ended   bool
	served  bool   // at least one invocation was completed
	reason  string // why it was killed, or what it said of its failed start
}

// ending is how an instance ended.
type ending struct {
	ready, served bool // it polled; it completed an invocation
	hopeless      bool // it can't be started, or refused to
	code          int  // exit status, -1 where there is none
	reason        string
}

// live starts a process and returns when it is gone, with everything that was waiting for it.
func (s *Server) live(ctx context.Context, n int, queue <-chan *invocation) ending {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return ending{hopeless: true, code: -1, reason: err.Error()}
	}
	i := &instance{server: s, queue: queue, ready: make(chan struct{})}
	i.command = s.command(n, l.Addr().String())
	if err := i.command.Start(); err != nil {
		_ = l.Close()
		return ending{hopeless: true, code: -1, reason: err.Error()}
	}
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	api := &http.Server{Handler: i.api(), BaseContext: func(net.Listener) context.Context { return base }, ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = api.Serve(l) })
	exit := i.watch(ctx)
	stop()
	_ = api.Close() // breaks off what the process left unfinished
	serving.Wait()
	return i.end(exit)
}

func (s *Server) command(n int, api string) *exec.Cmd {
	c := exec.Command(s.Bootstrap)
	c.Env = append(s.Env[:len(s.Env):len(s.Env)], environment(s, n, api)...)
	c.Stdout, c.Stderr = s.Stdout, s.Stderr
	c.WaitDelay = termGrace // for output held open by the process's own children
	detach(c)
	return c
}

// environment is what Lambda sets: names that the user has set stay his, but for those that tie the process to us.
func environment(s *Server, n int, api string) []string {
	dir := filepath.Dir(s.Bootstrap)
	name := filepath.Base(dir)
	defaults := [][2]string{
		{"AWS_REGION", "us-east-1"},
		{"AWS_DEFAULT_REGION", "us-east-1"},
		{"AWS_EXECUTION_ENV", "AWS_Lambda_provided.al2023"},
		{"AWS_LAMBDA_FUNCTION_NAME", name},
		{"AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"},
		{"AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"},
		{"AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"},
		{"AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/" + name},
		{"LAMBDA_TASK_ROOT", dir},
		{"_HANDLER", "bootstrap"},
		{"TZ", ":UTC"},
	}
	var out []string
	for _, d := range defaults {
		if !has(s.Env, d[0]) {
			out = append(out, d[0]+"="+d[1])
		}
	}
	return append(out, fmt.Sprintf("AWS_LAMBDA_LOG_STREAM_NAME=local/%d", n), "AWS_LAMBDA_MAX_CONCURRENCY=1", "AWS_LAMBDA_RUNTIME_API="+api)
}

// watch waits for the process, kills it where its start takes too long, and stops it when ctx ends.
func (i *instance) watch(ctx context.Context) error {
	exited := make(chan error, 1)
	go func() { exited <- i.command.Wait() }()
	start := time.NewTimer(initLimit)
	defer start.Stop()
	ready := i.ready
	for {
		select {
		case err := <-exited:
			return err
		case <-ready:
			ready = nil
			start.Stop()
		case <-start.C:
			i.kill(fmt.Sprintf("it did not poll the runtime API within %s", initLimit))
		case <-ctx.Done():
			return i.stop(exited)
		}
	}
}

// stop lets the current invocation end, then asks the process to, then makes it.
func (i *instance) stop(exited <-chan error) error {
	ask := time.NewTimer(finishLimit)
	defer ask.Stop()
	select {
	case err := <-exited:
		return err
	case <-i.completed():
	case <-ask.C:
	}
	_ = i.command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-exited:
		return err
	case <-time.After(termGrace):
		i.kill("it did not stop when asked to")
		return <-exited
	}
}

// kill ends the process; why is told once it is gone.
func (i *instance) kill(why string) {
	i.mu.Lock()
	i.reason = cmp.Or(i.reason, why)
	i.mu.Unlock()
	_ = i.command.Process.Kill()
}

// completed is closed when no invocation is running any more.
func (i *instance) completed() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current != nil {
		return i.current.completed
	}
	none := make(chan struct{})
	close(none)
	return none
}

// end settles what the process left open.
func (i *instance) end(err error) ending {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	e := ending{ready: i.polled, served: i.served, code: exitCode(err), reason: i.reason}
	e.hopeless = !e.ready && e.code == refused
	if e.reason == "" {
		e.reason = "it exited: " + describeExit(err)
	}
	if i.current != nil {
		i.current.crash()
		i.current = nil
	}
	return e
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

func describeExit(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

func has(env []string, name string) bool {
	return slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}
