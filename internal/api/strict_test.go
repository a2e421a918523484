package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// events is a stream as a strict client reads it.
type events struct {
	chunks   []chunkShape
	raw      []string
	comments int
	text     string
	finish   string
	usage    map[string]any
	meta     map[string]any // the last holdfast object
	failure  map[string]any // the error event
	done     bool
}

type chunkShape struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created *int64 `json:"created"`
	Model   *string
	Choices []struct {
		Index int `json:"index"`
		Delta *struct {
			Role    string  `json:"role"`
			Content *string `json:"content"`
		} `json:"delta"`
		Finish *string `json:"finish_reason"`
	} `json:"choices"`
	Usage    map[string]any `json:"usage"`
	Holdfast map[string]any `json:"holdfast"`
	Error    map[string]any `json:"error"`
}

// strict reads a stream and says which rule of the contract it breaks. A stream that ends in an error event is
// judged as such.
func strict(body string, askedUsage bool) (*events, error) {
	e := &events{}
	if !strings.HasSuffix(body, "\n\n") {
		return e, errors.New("the last event isn't ended")
	}
	for _, event := range strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if err := e.read(event); err != nil {
			return e, err
		}
	}
	if e.failure == nil != e.done {
		return e, fmt.Errorf("done is %t, error event is %v", e.done, e.failure)
	}
	if e.failure != nil && e.finish != "" {
		return e, errors.New("a finish reason in a broken stream")
	}
	return e, e.judge(askedUsage)
}

func (e *events) read(event string) error {
	switch {
	case strings.HasPrefix(event, ":"):
		e.comments++
		return nil
	case e.done || e.failure != nil:
		return errors.New("an event after the end: " + event)
	case event == "data: [DONE]":
		e.done = true
		return nil
	case !strings.HasPrefix(event, "data: ") || strings.ContainsAny(event, "\r\n"):
		return errors.New("not one data line: " + event)
	}
	raw := strings.TrimPrefix(event, "data: ")
	if strings.Count(raw, `"holdfast":`) > 1 {
		return errors.New("two holdfast objects in one chunk")
	}
	var c chunkShape
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		return fmt.Errorf("%w: %s", err, raw)
	}
	if c.Holdfast != nil {
		e.meta = c.Holdfast
	}
	if c.Error != nil {
		e.failure = c.Error
		return nil
	}
	e.chunks, e.raw = append(e.chunks, c), append(e.raw, raw)
	return e.take(c)
}

func (e *events) take(c chunkShape) error {
	switch first := e.chunks[0]; {
	case c.Object != "chat.completion.chunk", c.ID == "", c.Created == nil, c.Model == nil, c.Choices == nil:
		return errors.New("a field is missing in " + e.raw[len(e.raw)-1])
	case c.ID != first.ID, *c.Created != *first.Created, *c.Model != *first.Model:
		return errors.New("id, created or model changes")
	case e.usage != nil:
		return errors.New("a chunk after the usage")
	case c.Usage != nil && len(c.Choices) > 0:
		return errors.New("usage beside choices")
	case c.Usage == nil && len(c.Choices) != 1:
		return fmt.Errorf("%d choices", len(c.Choices))
	}
	e.usage = c.Usage
	for _, choice := range c.Choices {
		if e.finish != "" {
			return errors.New("a choice after the finish reason")
		}
		if choice.Delta == nil {
			return errors.New("no delta")
		}
		if choice.Delta.Content != nil {
			e.text += *choice.Delta.Content
		}
		if choice.Finish != nil {
			e.finish = *choice.Finish
		}
	}
	return nil
}

func (e *events) judge(askedUsage bool) error {
	if len(e.chunks) == 0 {
		return nil
	}
	first, last := e.chunks[0], e.chunks[len(e.chunks)-1]
	if len(first.Choices) == 0 || first.Choices[0].Delta.Role != "assistant" {
		return errors.New("no role in the first chunk")
	}
	if first.Holdfast == nil {
		return errors.New("no metadata in the first chunk")
	}
	if !e.done {
		return nil
	}
	if e.finish == "" {
		return errors.New("no finish reason")
	}
	if last.Holdfast == nil {
		return errors.New("no metadata in the last chunk")
	}
	if (e.usage != nil) != askedUsage {
		return fmt.Errorf("usage asked %t, came %v", askedUsage, e.usage)
	}
	for _, name := range []string{"prompt_tokens", "completion_tokens", "total_tokens"} {
		if n, ok := e.usage[name].(float64); askedUsage && (!ok || n != float64(int64(n))) {
			return errors.New("usage lacks " + name)
		}
	}
	return nil
}

func requireStrict(t *testing.T, body string, askedUsage bool) *events {
	t.Helper()
	e, err := strict(body, askedUsage)
	require.NoError(t, err, body)
	return e
}

// TestStrictIsStrict shows that the checker can fail: each case breaks one rule of a good stream.
func TestStrictIsStrict(t *testing.T) {
	meta := func(c string) string { return strings.TrimSuffix(c, "}") + `,"holdfast":{}}` }
	first, mid := meta(chunkJSON(`{"role":"assistant","content":"a"}`, "")), chunkJSON(`{"content":"b"}`, "")
	last, done := meta(chunkJSON(`{}`, "stop")), "[DONE]"
	usageChunk := `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m-1","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"holdfast":{}}`
	join := func(parts ...string) string { return "data: " + strings.Join(parts, "\n\ndata: ") + "\n\n" }
	for name, c := range map[string]struct {
		body  string
		usage bool
		good  bool
	}{
		"good":                   {join(first, mid, last, done), false, true},
		"good with usage":        {join(first, mid, last, usageChunk, done), true, true},
		"good broken":            {join(first, mid, `{"error":{"message":"x"},"holdfast":{}}`), false, true},
		"usage unasked":          {join(first, mid, last, usageChunk, done), false, false},
		"usage missing":          {join(first, mid, last, done), true, false},
		"usage twice":            {join(first, last, usageChunk, usageChunk, done), true, false},
		"no done":                {join(first, mid, last), false, false},
		"done after error":       {join(first, `{"error":{"message":"x"}}`, done), false, false},
		"finish before error":    {join(first, last, `{"error":{"message":"x"}}`), false, false},
		"no finish":              {join(first, mid, done), false, false},
		"two finishes":           {join(first, last, last, done), false, false},
		"no role":                {join(meta(mid), last, done), false, false},
		"id changes":             {join(first, strings.Replace(mid, "chatcmpl-1", "chatcmpl-2", 1), last, done), false, false},
		"no metadata first":      {join(chunkJSON(`{"role":"assistant"}`, ""), last, done), false, false},
		"no metadata last":       {join(first, chunkJSON(`{}`, "stop"), done), false, false},
		"two metadata":           {join(meta(first), last, done), false, false},
		"no choices":             {join(first, strings.Replace(mid, `"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]`, `"choices":[]`, 1), last, done), false, false},
		"not JSON":               {join(first, `{"a"`, last, done), false, false},
		"a line end in an event": {join(first, strings.Replace(mid, ",", ",\n", 1), last, done), false, false},
		"cut event":              {strings.TrimSuffix(join(first, last, done), "\n"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := strict(c.body, c.usage)
			require.Equal(t, c.good, err == nil, "%v", err)
		})
	}
}
