package providers

import "strconv"

// MaxTokens is what no honest count of tokens exceeds.
const MaxTokens = 1_000_000_000

// tokens is a count of tokens, -1 where none is said: what is no number, negative or beyond all measure is no count.
func tokens(v []byte) int {
	if n, ok := number(v); ok && n >= 0 && n <= MaxTokens {
		return int(n)
	}
	return -1
}

// count is a count in an object, -1 where it isn't said.
func count(object []byte, name string) int { return tokens(field(object, name)) }

// together is the sum of the counts that are said, -1 where none is.
func together(counts ...int) int {
	sum := -1
	for _, n := range counts {
		if n >= 0 {
			sum = max(sum, 0) + n
		}
	}
	return sum
}

// mendUsage gives a usage object as OpenAI writes it: whole numbers, a total, cached input and reasoning inside
// their totals with the details objects beside. What is right stays the same bytes, a count that isn't said is left
// out; nil for what is no usage.
func mendUsage(raw []byte) []byte {
	if !isObject(raw) {
		return nil
	}
	u := lookUsage(raw)
	if tokens(u.prompt) < 0 && tokens(u.completion) < 0 {
		return nil
	}
	if u.right() {
		return raw
	}
	return u.rebuild(raw)
}

// usageView is where the counts stand.
type usageView struct {
	prompt, completion, total []byte
	reasoning, cached         []byte
	foreign                   bool // other names for the counts
	details                   bool // prompt_tokens_details is there
}

func lookUsage(raw []byte) usageView {
	var u usageView
	for w := walk(raw); ; {
		key, value, ok := w.member()
		if !ok {
			return u
		}
		switch string(key) {
		case "prompt_tokens":
			u.prompt = value
		case "completion_tokens":
			u.completion = value
		case "total_tokens":
			u.total = value
		case "input_tokens", "output_tokens":
			u.foreignCount(key, value)
		case "prompt_cache_hit_tokens", "cached_tokens":
			u.cached = value
		case "prompt_tokens_details":
			u.details = isObject(value)
		case "completion_tokens_details":
			u.reasoning = field(value, "reasoning_tokens")
		}
	}
}

func (u *usageView) foreignCount(key, value []byte) {
	if string(key) == "input_tokens" && u.prompt == nil {
		u.prompt, u.foreign = value, true
	}
	if string(key) == "output_tokens" && u.completion == nil {
		u.completion, u.foreign = value, true
	}
}

func (u *usageView) right() bool {
	whole := isInteger(u.prompt) && isInteger(u.completion) && isInteger(u.total)
	honest := tokens(u.prompt) >= 0 && tokens(u.completion) >= 0
	return whole && honest && !u.foreign && (u.details || u.cached == nil) && u.hidden() == 0
}

// hidden is reasoning that is in the total but not in the completion.
func (u *usageView) hidden() int {
	reasoning := tokens(u.reasoning)
	if reasoning > 0 && tokens(u.total) == tokens(u.prompt)+tokens(u.completion)+reasoning {
		return reasoning
	}
	return 0
}

// rebuild leaves out what the provider didn't say, so that whoever needs it estimates it, and says that he did.
func (u *usageView) rebuild(raw []byte) []byte {
	prompt, completion := tokens(u.prompt), tokens(u.completion)
	b := []byte{'{'}
	add := func(name string, n int) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, name...), int64(n), 10)
	}
	if prompt >= 0 {
		add(`"prompt_tokens":`, prompt)
	}
	if completion >= 0 {
		completion += u.hidden()
		add(`"completion_tokens":`, completion)
	}
	if prompt >= 0 && completion >= 0 {
		add(`"total_tokens":`, max(tokens(u.total), prompt+completion))
	}
	if cached := tokens(u.cached); cached >= 0 && !u.details {
		add(`"prompt_tokens_details":{"cached_tokens":`, cached)
		b = append(b, '}')
	}
	return append(appendOthers(b, raw, func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens", "completion_tokens", "total_tokens":
			return true
		case "prompt_tokens_details":
			return !u.details
		}
		return false
	}), '}')
}
