package routing

import (
	"errors"
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
	done    bool
}

// Next gives the held chunks, then the live ones. A failure after the commit ends the stream: nothing is switched.
func (l *live) Next() (providers.Chunk, error) {
	if len(l.held) > 0 {
		chunk := l.held[0]
		l.held = l.held[1:]
		l.note(chunk)
		return chunk, nil
	}
	if l.done || l.ended {
		l.finish(breaker.Outcome{Class: breaker.Success})
		return providers.Chunk{}, io.EOF
	}
	l.clocks.forChunk()
	chunk, err := l.read()
	l.clocks.pause()
	if err == nil {
		l.note(chunk)
		return chunk, nil
	}
	if l.finished || errors.Is(err, io.EOF) {
		l.finish(breaker.Outcome{Class: breaker.Success})
		return providers.Chunk{}, io.EOF
	}
	failure := blame(l.ctx, err)
	l.entry.Outcome, l.entry.Code = failure.Kind.String(), failure.Code
	l.entry.Status = failure.Status
	l.finish(outcome(failure, l.foreign))
	return providers.Chunk{}, failure
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
		l.finish(breaker.Outcome{Class: breaker.Success})
		return
	}
	if !l.done {
		l.entry.Outcome = providers.KindCanceled.String()
	}
	l.finish(breaker.Outcome{Class: breaker.Cancelled, Why: providers.KindCanceled.String()})
}

func (l *live) finish(o breaker.Outcome) {
	if l.done {
		return
	}
	l.done, l.held = true, nil
	if !l.entry.Ended {
		l.entry.Duration, l.entry.Ended = time.Since(l.clocks.start), true
	}
	l.close()
	l.permit.Done(o)
}
