package routing

import (
	"io"
	"time"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

// live is a committed attempt as the source of an answer: what was held, then what still comes.
type live struct {
	*attempt
	entry   *Attempt // its line in the answer's trace
	foreign bool
	end     error // what Next gives from now on, io.EOF or a *providers.Error; nil while the answer goes on
}

// Next gives the held chunks, then the live ones. A failure after the commit ends the stream: nothing is switched.
func (l *live) Next() (providers.Chunk, error) {
	switch {
	case l.end != nil:
		return providers.Chunk{}, l.end
	case len(l.held) > 0:
		chunk := l.held[0]
		l.held = l.held[1:]
		l.note(chunk)
		return chunk, nil
	case l.ended:
		return providers.Chunk{}, l.finish(nil)
	}
	l.clocks.forChunk()
	chunk, err := l.read()
	l.clocks.pause()
	switch {
	case err == nil:
		l.note(chunk)
		return chunk, nil
	case l.over(err):
		return providers.Chunk{}, l.finish(nil)
	}
	return providers.Chunk{}, l.finish(blame(l.ctx, err))
}

// Buffered says that Next will not wait for the provider.
func (l *live) Buffered() bool {
	if len(l.held) > 0 {
		return true
	}
	stream, ok := l.stream.(providers.Buffering)
	return ok && l.end == nil && stream.Buffered()
}

// note keeps the trace true: from the finish reason on, the attempt's duration is final.
func (l *live) note(c providers.Chunk) {
	if c.Finish != "" && !l.entry.Ended {
		l.entry.Duration, l.entry.Ended = time.Since(l.clocks.start), true
	}
}

// Close ends the attempt. One that is left before its end was left by the caller: that counts for nothing.
func (l *live) Close() {
	if l.finished || l.ended {
		_ = l.finish(nil)
		return
	}
	_ = l.finish(&providers.Error{Kind: providers.KindCanceled})
}

// finish ends the attempt and reports it, once. nil: the answer is complete. It gives what Next gives.
func (l *live) finish(failure *providers.Error) error {
	if l.end != nil {
		return l.end
	}
	l.held, l.end = nil, io.EOF
	o := breaker.Outcome{Class: breaker.Success}
	if failure != nil {
		l.end, o = failure, outcome(failure, l.foreign)
		l.entry.Outcome, l.entry.Status = failure.Kind.String(), failure.Status
		l.entry.Code, l.entry.Stack = failure.Code, stackOf(failure)
	}
	if !l.entry.Ended {
		l.entry.Duration, l.entry.Ended = time.Since(l.clocks.start), true
	}
	l.close()
	l.permit.Done(o)
	return l.end
}
