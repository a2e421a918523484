//go:build unix

package lambdahttp

import (
	"os/exec"
	"syscall"
)

// detach keeps the terminal's interrupt from the process: the server tells it when to stop.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
