package main

import (
	"context"
	"fmt"
	"runtime/debug"
)

// version is set by the linker (-X main.version=…).
var version string

func runVersion(_ context.Context, args []string, env environment) int {
	if _, status, ok := arguments("version", args, env); !ok {
		return status
	}
	fmt.Fprintf(env.stdout, "holdfast %s\n", buildVersion())
	return exitOK
}

// buildVersion is what the linker was told, else dev and the commit, as far as the compiler knew it.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}
