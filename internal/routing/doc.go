// Package routing takes a request down a chain of candidates until one answers.
//
// Its one idea: a well-formed request always gets an [Answer]. The [Router] orders the candidates with a pure
// function, asks them one after another in the only retry loop there is, and holds back what a candidate says
// until the commit point: the first token of a stream, the completion of a JSON answer. Before that point a dead
// candidate is switched and nothing of it leaks; after it nothing is switched any more. When every candidate has
// failed, the cache answers, and when that misses, the fixed message does. All three come as the same [Answer].
//
// routing imports only providers and breaker. What it needs of the cache it states as small interfaces of its own.
package routing
