package api

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"holdfast/internal/providers"
	"holdfast/internal/routing"
)

// stream writes the answer as server-sent events, each chunk as it comes.
func (x *exchange) stream() {
	tellHeaders(x.w.Header(), &x.answer.Trace)
	out := openSink(x.w, x.cancel)
	defer out.close()
	var head identity
	err := x.forward(out, &head)
	x.settle()
	if err == nil && x.draft.usage {
		err = out.send(x.usageChunk(head))
	}
	switch {
	case err == nil:
		_ = out.send([]byte("[DONE]")) // he has it all but this
	case x.done.Err != nil && x.done.Err.Kind != providers.KindCanceled:
		_ = out.send(broken(x.done.Err, describeTrace(&x.answer.Trace))) // nothing is left to say otherwise
	}
}

// errBroken ends a stream that can't be complete any more.
var errBroken = errors.New("stream broke off")

// forward sends all chunks, none later than the next wait. An error says that the answer isn't complete or the caller
// has left.
func (x *exchange) forward(out *sink, head *identity) error {
	for first := true; x.tally.finish == ""; {
		chunk, err := x.next(out)
		if err != nil {
			return err
		}
		x.tally.add(chunk)
		if chunk.Data == nil {
			continue
		}
		if first && x.draft.usage {
			*head = identify(chunk.Data)
		}
		if err := x.pass(out, chunk, first); err != nil {
			return err
		}
		first = false
	}
	if err := out.flush(); err != nil {
		return err
	}
	x.drain()
	return nil
}

// next takes a chunk. What was put is sent off before a wait: in a burst one flush does for many chunks.
func (x *exchange) next(out *sink) (providers.Chunk, error) {
	if !x.answer.Buffered() {
		if err := out.flush(); err != nil {
			return providers.Chunk{}, err
		}
	}
	chunk, err := x.answer.Next()
	if err != nil {
		x.broke(err)
		return chunk, errBroken
	}
	return chunk, nil
}

// drain takes what comes after the finish reason: it can only be usage, and only a bounded time.
func (x *exchange) drain() {
	limit := trailingQuick
	if x.draft.usage {
		limit = trailing
	}
	defer time.AfterFunc(limit, x.cancel).Stop()
	for {
		chunk, err := x.answer.Next()
		if err != nil {
			return
		}
		x.tally.add(chunk)
	}
}

// pass puts one chunk: with the metadata if it is the first or the last with choices, else as it came.
func (x *exchange) pass(out *sink, chunk providers.Chunk, first bool) error {
	last := chunk.Finish != "" && !x.draft.usage
	if !first && !last {
		return out.put(without(chunk.Data, x.tally.ours))
	}
	if last && chunk.Usage != nil { // else it is still to come
		x.charge()
	}
	return out.putSpliced(chunk.Data, describeTrace(&x.answer.Trace), x.tally.ours)
}

// identity is what all chunks of a stream have in common.
type identity struct{ id, created, model string } // as JSON

func identify(chunk []byte) identity {
	found := gjson.GetManyBytes(bytes.Clone(chunk), "id", "created", "model")
	return identity{found[0].Raw, found[1].Raw, found[2].Raw}
}

// usageChunk is the last chunk of a stream whose caller asked for usage.
func (x *exchange) usageChunk(head identity) []byte {
	meta := describeTrace(&x.answer.Trace)
	meta.UsageEstimated = x.done.UsageEstimated
	return fmt.Appendf(nil, `{"id":%s,"object":"chat.completion.chunk","created":%s,"model":%s,"choices":[],"usage":%s,"holdfast":%s}`,
		or(head.id, `""`), or(head.created, "0"), or(head.model, `""`), flat(x.done.Usage), meta.bytes())
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

var _ Router = (*routing.Router)(nil)
