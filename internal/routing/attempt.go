package routing

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"holdfast/internal/providers"
	"holdfast/internal/routing/breaker"
)

// What may be held back before the commit; an attempt that says more is malformed.
const (
	maxHeldStream = 256 << 10 // before a stream's first token
	maxHeldJSON   = 16 << 20  // of a whole JSON answer, without what each chunk has around it
	maxHeldChunks = 64 << 20  // of its chunks: 200,000 tokens of some 300 bytes each
)

// attempt is one call of one candidate, from its start to its end.
type attempt struct {
	ctx    context.Context //nolint:containedctx // it lives exactly as long as the attempt
	cancel context.CancelCauseFunc
	clocks *clocks
	stream providers.Stream
	permit breaker.Permit

	held       []providers.Chunk // copies, until they are replayed
	heldSize   int               // bytes of all of them
	answerSize int               // bytes of their deltas
	started    bool              // the first token came
	finished   bool              // a finish reason came: nothing changes any more
	ended      bool              // io.EOF came
	ttft       time.Duration     // from the start to the first token
	bill       bill
}

// begin opens the candidate's stream and holds it back until the commit point. The error is the failure; nothing
// of the attempt is left then but what it cost.
func (r *Router) begin(ctx context.Context, c *Candidate, req *Request, b budget, p breaker.Permit) (*attempt, *providers.Error) {
	a := &attempt{permit: p, bill: newBill(c, req, &r.settings)}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.clocks = startClocks(c.Timeouts, r.settings.ThinkingTimeout, b.models, a.cancel)
	err := a.open(c, req)
	if err == nil {
		err = a.probe(req.Hold)
	}
	if err != nil {
		failure := blame(a.ctx, err)
		a.close()
		return a, failure
	}
	a.clocks.committed()
	a.clocks.pause()
	return a, nil
}

func (a *attempt) open(c *Candidate, req *Request) (err error) {
	defer caught(&err)
	a.clocks.forHeaders()
	a.stream, err = c.Client.Stream(a.ctx, c.call(req))
	if err == nil {
		a.clocks.forFirstToken()
	}
	return err
}

// probe holds chunks back until the commit point: the first token of a stream, the completion of a JSON answer.
func (a *attempt) probe(hold Hold) error {
	for {
		chunk, err := a.read()
		if err != nil && a.over(err) {
			return nil // the provider's adapter has judged that this is an answer
		}
		if err != nil {
			return err
		}
		a.keep(chunk)
		if a.started && hold == HoldFirstToken {
			return nil
		}
		if a.full(hold) {
			return &providers.Error{Kind: providers.KindMalformed, Err: errors.New("more before the commit than may be held")}
		}
	}
}

// read takes one chunk from the provider and notes what it means.
func (a *attempt) read() (chunk providers.Chunk, err error) {
	defer caught(&err)
	chunk, err = a.stream.Next()
	if err != nil {
		a.ended = errors.Is(err, io.EOF)
		return chunk, err
	}
	a.clocks.heard(chunk.Signal)
	if chunk.Signal != providers.SignalNone && !a.started {
		a.started, a.ttft = true, time.Since(a.clocks.start)
		a.permit.Started()
	}
	if chunk.Finish != "" {
		a.finished = true
	}
	if chunk.Usage != nil {
		a.bill.usage = append(a.bill.usage[:0], chunk.Usage...)
	}
	if a.started {
		a.clocks.forChunk()
	}
	return chunk, nil
}

// over says whether an error is the end of a whole answer: after one that has said something and finished, whatever
// comes changes nothing.
func (a *attempt) over(err error) bool { return errors.Is(err, io.EOF) || a.started && a.finished }

// keep copies a chunk, as it is valid only until the next one.
func (a *attempt) keep(c providers.Chunk) {
	a.heldSize += len(c.Data) + len(c.Usage)
	a.answerSize += providers.DeltaSize(c.Data)
	c.Data, c.Usage = bytes.Clone(c.Data), bytes.Clone(c.Usage)
	a.held = append(a.held, c)
}

// full says that more is held back than may be.
func (a *attempt) full(hold Hold) bool {
	if hold == HoldFirstToken {
		return a.heldSize > maxHeldStream
	}
	return a.answerSize > maxHeldJSON || a.heldSize > maxHeldChunks
}

func (a *attempt) close() {
	a.clocks.stop()
	a.cancel(context.Canceled)
	if a.stream != nil {
		_ = a.stream.Close() // nothing of the stream matters any more
	}
}
