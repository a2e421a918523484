// Package breaker keeps callers away from models that fail, together with the whole fleet.
//
// Its one idea: the state of a candidate is one small item in a store that every process shares; every change of
// it is one conditional write that carries a generation, so that any number of processes agree without a lock and
// at most one of them tries a half-open model at a time. Results of an older generation change nothing. When the
// store is slow or away, each process goes on with a breaker of its own: the store never refuses a call.
//
// The package imports nothing else of Holdfast.
package breaker
