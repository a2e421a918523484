// Package api is the HTTP surface: it lets requests in and writes answers out.
//
// Its one idea: nothing is written before it is true. A request is authenticated, read whole and checked field by
// field before anything is asked of a model; status and headers go out once the answer is committed; a stream ends
// with [DONE] only if the answer is complete. Chunks that are right already travel as bytes: the metadata is
// spliced into the first and the last, the others are forwarded as they came.
package api
