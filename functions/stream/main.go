// Command stream is the streaming Lambda function, for Function URLs with InvokeMode RESPONSE_STREAM: server-sent
// events as they come, and JSON answers for clients with one base URL.
package main

import (
	"holdfast/functions"
	"holdfast/internal/lambdahttp"
)

// version is set by the linker (-X main.version=…).
var version string

func main() {
	f := functions.Open(version)
	f.Start(lambdahttp.Streamed(f.App.Handler(), lambdahttp.Options{Log: f.Log}))
}
