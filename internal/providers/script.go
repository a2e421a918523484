package providers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
)

// Script is the scripted provider: no network, only time. What a candidate does stands in its model:
//
//	echo                       greets, and repeats the last user message word by word
//	text=Hello, world          says this instead; takes the rest of the line, so it comes last
//	hang                       opens the stream and says nothing more; with text, after it
//	cut                        breaks off half way, without a terminal marker
//	empty                      ends properly and says nothing
//	status=503                 refuses the call
//
// with settings after commas: first=300ms (until the first token or the refusal), gap=30ms (between two words),
// reasoning=words (before the answer), retry_after=30s (beside a status).
//
// It is safe for concurrent use.
type Script struct{ down atomic.Bool }

// NewScript makes a scripted provider. It needs nothing of the settings.
func NewScript(Settings) *Script { return &Script{} }

// SetOutage switches an outage on or off: during one, every new call fails as overloaded, with status 503.
func (s *Script) SetOutage(on bool) { s.down.Store(on) }

// Outage says whether there is an outage.
func (s *Script) Outage() bool { return s.down.Load() }

// CheckScript says why a model is no script, nil if it is one.
func CheckScript(model string) error {
	_, err := parseScene(model)
	return err
}

// Stream plays the script in the call's model.
func (s *Script) Stream(ctx context.Context, call Call) (Stream, error) {
	if s.Outage() {
		return nil, &Error{Kind: KindOverloaded, Status: 503, Code: "outage"}
	}
	sc, err := parseScene(call.Model)
	if err != nil {
		return nil, &Error{Kind: KindModelMissing, Status: 404, Err: err}
	}
	if sc.status != 0 {
		if err := pause(ctx, sc.first); err != nil {
			return nil, err
		}
		return nil, &Error{Kind: kindOfStatus(sc.status), Status: sc.status, RetryAfter: sc.retryAfter, Code: "scripted"}
	}
	if ctx.Err() != nil {
		return nil, ended(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	return &scriptStream{
		ctx: ctx, cancel: cancel, scene: sc, steps: sc.steps(call.Request), maker: newChunkMaker(call.Model),
		usage: sc.usage(call.Request),
	}, nil
}

// scene is a parsed script.
type scene struct {
	act        string // echo, text, hang, cut, empty, status
	text       string
	reasoning  string
	status     int
	first, gap time.Duration
	retryAfter time.Duration
}

var errNoAct = errors.New("a script does one of echo, text=, hang, cut, empty, status=")

func parseScene(model string) (scene, error) {
	var sc scene
	seen := map[string]bool{}
	for rest := model; rest != ""; {
		var field string
		field, rest = cutField(rest)
		name, value, given := strings.Cut(field, "=")
		name = strings.TrimSpace(name)
		if seen[name] {
			return scene{}, fmt.Errorf("script: %s twice", name)
		}
		seen[name] = true
		if err := sc.set(name, value, given); err != nil {
			return scene{}, err
		}
	}
	if sc.act == "" {
		return scene{}, errNoAct
	}
	return sc, nil
}

// cutField takes the first setting off a script; text takes all of it.
func cutField(s string) (field, rest string) {
	if strings.HasPrefix(strings.TrimSpace(s), "text=") {
		return s, ""
	}
	field, rest, _ = strings.Cut(s, ",")
	return field, rest
}

func (sc *scene) set(name, value string, given bool) error {
	switch name {
	case "echo", "hang", "cut", "empty":
		if given {
			return fmt.Errorf("script: %s takes no value", name)
		}
		return sc.do(name)
	case "status":
		n, err := strconv.Atoi(value)
		if err != nil || n < 400 || n > 599 {
			return fmt.Errorf("script: status %q is not between 400 and 599", value)
		}
		sc.status = n
		return sc.do(name)
	case "text":
		if sc.text = value; value == "" {
			return errors.New("script: text says nothing; empty does")
		}
		if sc.act == "hang" || sc.act == "cut" {
			return nil
		}
		return sc.do(name)
	case "reasoning":
		sc.reasoning = value
		return nil
	}
	return sc.setDuration(name, value)
}

// do sets what the script does, which is one thing.
func (sc *scene) do(act string) error {
	if sc.act != "" {
		return fmt.Errorf("script: both %s and %s", sc.act, act)
	}
	sc.act = act
	return nil
}

func (sc *scene) setDuration(name, value string) error {
	field, ok := map[string]*time.Duration{"first": &sc.first, "gap": &sc.gap, "retry_after": &sc.retryAfter}[name]
	if !ok {
		return fmt.Errorf("script: unknown setting %q; %w", name, errNoAct)
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return fmt.Errorf("script: %s %q is not a duration", name, value)
	}
	*field = d
	return nil
}

// steps is what is said, word by word.
func (sc scene) steps(r *Request) []delta {
	var out []delta
	if sc.act == "empty" {
		return nil
	}
	for _, w := range words(sc.reasoning) {
		out = append(out, delta{Reasoning: w})
	}
	said := words(sc.says(r))
	if sc.act == "cut" {
		said = said[:(len(said)+1)/2]
	}
	for _, w := range said {
		out = append(out, delta{Text: w})
	}
	return out
}

func (sc scene) says(r *Request) string {
	if sc.text != "" || sc.act == "hang" || sc.act == "text" {
		return sc.text
	}
	if asked := lastUserText(r); asked != "" {
		return "Hello! You said: " + asked
	}
	return "Hello! What can I do for you?"
}

func lastUserText(r *Request) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "user" {
			return r.Messages[i].Text
		}
	}
	return ""
}

// usage counts words as tokens.
func (sc scene) usage(r *Request) usage {
	u := usage{Completion: len(sc.steps(r)), Cached: -1, Reasoning: len(words(sc.reasoning))}
	for _, m := range r.Messages {
		u.Prompt += len(words(m.Text))
	}
	return u
}

// wordLimit is the longest word said at once, in characters: languages without spaces stream too.
const wordLimit = 8

// words cuts a text into words with the space after them; joined they are the text again.
func words(s string) []string {
	var out []string
	from, n, space := 0, 0, false
	for i, r := range s {
		now := unicode.IsSpace(r)
		if n == wordLimit || space && !now {
			out = append(out, s[from:i])
			from, n = i, 0
		}
		space = now
		n++
	}
	if from < len(s) {
		out = append(out, s[from:])
	}
	return out
}

// scriptStream plays a scene. Its first chunk has only the role, as with most providers.
type scriptStream struct {
	ctx    context.Context //nolint:containedctx // it lives exactly as long as the stream
	cancel context.CancelFunc
	scene  scene
	steps  []delta
	maker  *chunkMaker
	usage  usage
	next   int // 0: the role; then the steps, the end, usage
	progress
}

func (s *scriptStream) Next() (Chunk, error) {
	at := s.next
	s.next++
	switch said := len(s.steps); {
	case at == 0:
		return s.maker.chunk(delta{}), s.alive()
	case at <= said:
		return s.say(at)
	case s.scene.act == "cut":
		return Chunk{}, s.end(nil)
	case s.scene.act == "hang":
		<-s.ctx.Done()
		return Chunk{}, ended(s.ctx)
	case at == said+1:
		return s.finished()
	case at == said+2:
		return s.maker.usageChunk(s.usage), nil
	}
	return Chunk{}, s.end(nil)
}

// say waits, then says the next word.
func (s *scriptStream) say(at int) (Chunk, error) {
	wait := s.scene.gap
	if at == 1 {
		wait = s.scene.first
	}
	if err := pause(s.ctx, wait); err != nil {
		return Chunk{}, err
	}
	c := s.maker.chunk(s.steps[at-1])
	s.note(c)
	return c, nil
}

func (s *scriptStream) finished() (Chunk, error) {
	if len(s.steps) == 0 {
		if err := pause(s.ctx, s.scene.first); err != nil {
			return Chunk{}, err
		}
	}
	c := s.maker.chunk(delta{Finish: "stop"})
	s.note(c)
	return c, s.alive()
}

func (s *scriptStream) alive() error {
	if s.ctx.Err() != nil {
		return ended(s.ctx)
	}
	return nil
}

func (s *scriptStream) Close() error {
	s.cancel()
	return nil
}

// pause waits, or says that ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ended(ctx)
	case <-timer.C:
		return nil
	}
}
