// Command chat is the buffered Lambda function: every answer is one whole response, for Function URLs with InvokeMode
// BUFFERED, HTTP and REST APIs, Invoke and sam local.
package main

import (
	"holdfast/functions"
	"holdfast/internal/lambdahttp"
)

// version is set by the linker (-X main.version=…).
var version string

func main() {
	f := functions.Open(version)
	f.Start(lambdahttp.Buffered(f.App.Handler(), lambdahttp.Options{Log: f.Log}))
}
