package providers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// openAI calls a provider of OpenAI's dialect, or Azure, which is the same behind other URLs.
type openAI struct {
	client  *client
	base    string
	way     string // how thinking is asked for
	version string // Azure's api-version; "" for OpenAI
}

func newOpenAI(s Settings) Provider {
	return &openAI{client: newClient(s, "Authorization"), base: s.BaseURL, way: s.Thinking}
}

func newAzure(s Settings) Provider {
	return &openAI{client: newClient(s, "Api-Key"), base: s.BaseURL, way: s.Thinking, version: s.APIVersion}
}

// Check refuses http image URLs towards a private base URL: the provider would fetch them from inside its network.
func (p *openAI) Check(call Call) error { return checkFetch(call, p.base) }

// Stream posts the request. It returns with the response's headers; what a 200 holds is for Next to find out.
func (p *openAI) Stream(ctx context.Context, call Call) (Stream, error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	if call.Options.NoStream {
		header.Set("Accept", "application/json")
	}
	body := openAIBody(call, p.way, baseURL(call, p.base))
	resp, err := p.client.post(ctx, p.url(call), body, header, call.Connect)
	if err != nil {
		return nil, err
	}
	return newOpenAIStream(resp.Body, call.Model, p.client), nil
}

// url is where a call goes. Azure names the deployment in the path, unless the base URL is that of its v1 API.
func (p *openAI) url(call Call) string {
	base := strings.TrimSuffix(baseURL(call, p.base), "/")
	if p.version == "" || strings.HasSuffix(base, "/v1") {
		return base + "/chat/completions"
	}
	return base + "/openai/deployments/" + url.PathEscape(call.Model) + "/chat/completions?api-version=" + url.QueryEscape(p.version)
}

// takesStreamOptions is false for Mistral, which answers 422 to them, and sends usage unasked.
func takesStreamOptions(base string) bool {
	return hostOf(base) != "api.mistral.ai"
}

func baseURL(call Call, own string) string {
	if call.BaseURL != "" {
		return call.BaseURL
	}
	return own
}

// openAIStream reads a response of OpenAI's dialect, whatever its Content-Type says it is.
type openAIStream struct {
	body   io.ReadCloser
	client *client
	sse    *sseReader
	mend   mender
	ahead

	begun bool  // the first byte was looked at
	whole bool  // the body was one JSON answer, and is read
	done  error // how the stream ended
	chat  bool  // a chunk with a choice came
	grace *time.Timer
}

func newOpenAIStream(body io.ReadCloser, model string, c *client) *openAIStream {
	sse := newSSE(body)
	return &openAIStream{body: body, client: c, sse: sse, mend: mender{asked: model}, ahead: ahead{more: sse.buffered}}
}

// afterFinish is how long a provider may take, after its finish reason, to send usage and the end.
const afterFinish = 5 * time.Second

// Next gives the next chunk.
func (s *openAIStream) Next() (Chunk, error) {
	for s.done == nil {
		c, err := s.step()
		if err != nil {
			s.end(err)
		}
		if c.Data != nil || c.Usage != nil || s.done == nil && s.spent() {
			return c, nil
		}
	}
	return Chunk{}, s.done
}

// step reads one event, or the one body. A chunk without Data and Usage is nothing to pass on.
func (s *openAIStream) step() (Chunk, error) {
	if s.whole {
		return s.marker()
	}
	if !s.begun {
		s.begun = true
		if one, err := s.sniff(); err != nil || one {
			return s.one(err)
		}
	}
	ev, err := s.sse.next()
	if err != nil {
		return Chunk{}, err
	}
	data := bytes.TrimSpace(ev.data)
	switch {
	case string(data) == "[DONE]":
		return s.marker()
	case string(ev.name) == "error":
		return Chunk{}, s.client.scrub(classify(ev.status, nil, data))
	case len(data) == 0, string(data) == "null":
		return Chunk{}, nil
	case validObject(data):
		return s.take(data)
	case ev.open: // cut in the middle: the reader says why
		_, err := s.sse.next()
		return Chunk{}, err
	}
	return Chunk{}, undecodable(false)
}

func (s *openAIStream) take(data []byte) (Chunk, error) {
	c, err := s.mend.take(data)
	if err != nil {
		return Chunk{}, s.client.scrub(err)
	}
	s.chat = s.chat || c.Data != nil
	if c.Finish != "" {
		s.grace = time.AfterFunc(afterFinish, func() { s.body.Close() })
	}
	return c, nil
}

// sniff looks at the first byte: a body that is JSON is read whole, a page is malformed.
func (s *openAIStream) sniff() (one bool, err error) {
	first, err := s.sse.first()
	switch {
	case err != nil:
		return false, err
	case first == '<':
		return false, &Error{Kind: KindMalformed, Code: "html"}
	}
	return first == '{' || first == '[', nil
}

// one reads one JSON body as a stream: a completion, or an error inside a 200.
func (s *openAIStream) one(err error) (Chunk, error) {
	if err != nil {
		return Chunk{}, err
	}
	data, err := s.sse.rest()
	if err != nil {
		return Chunk{}, err
	}
	data = bytes.TrimSpace(data)
	if !valid(data) {
		return Chunk{}, undecodable(cutOff(data))
	}
	if isArray(data) { // Google's errors come in one
		w := walk(data)
		data, _ = w.element()
	}
	v := look(data)
	if v.choice.raw == nil && !s.mend.failed(&v) {
		return Chunk{}, &Error{Kind: KindMalformed, Code: "no_choices"}
	}
	s.whole = true
	return s.take(data)
}

// cutOff says whether data is JSON as far as it goes.
func cutOff(data []byte) bool {
	var value json.RawMessage
	return errors.Is(json.NewDecoder(bytes.NewReader(data)).Decode(&value), io.ErrUnexpectedEOF)
}

// marker is what [DONE] means: the end, and a finish reason where the provider left it out.
func (s *openAIStream) marker() (Chunk, error) {
	p := &s.mend.progress
	switch {
	case p.finish != "":
		return Chunk{}, io.EOF
	case !s.chat:
		return Chunk{}, &Error{Kind: KindMalformed, Code: "only_done"}
	case p.signal == SignalNone:
		return Chunk{}, &Error{Kind: KindEmpty}
	}
	return s.mend.finishing(), nil
}

// end settles how the stream ended: what comes after a finish reason changes nothing.
func (s *openAIStream) end(err error) {
	s.done = s.mend.progress.end(err)
	if errors.Is(err, io.EOF) && AsError(s.done).Kind == KindTruncated && !s.chat && s.sse.alien {
		s.done = undecodable(false)
	}
	s.stop()
}

func (s *openAIStream) stop() {
	if s.grace != nil {
		s.grace.Stop()
	}
}

// Close ends the call.
func (s *openAIStream) Close() error {
	s.stop()
	switch {
	case s.done == nil:
		s.done = &Error{Kind: KindCanceled, Err: context.Canceled}
	case errors.Is(s.done, io.EOF):
		drain(s.body)
	}
	return s.body.Close()
}
