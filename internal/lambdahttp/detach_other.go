//go:build !unix

package lambdahttp

import "os/exec"

func detach(*exec.Cmd) {}
