// Package lambdahttp turns Lambda events into HTTP requests for a plain http.Handler, and its answers back.
//
// Its one idea: the handler does not know where it runs. [Streamed] serves a Function URL with response streaming,
// [Buffered] every caller that wants one whole answer, and [Server] is a local Function URL that runs the deployed
// binary unchanged. [AfterResponse] registers work for after the last byte, before Lambda may freeze the process.
package lambdahttp
