package providers

import "strconv"

// mendUsage gives a usage object as OpenAI writes it: whole numbers, a total, cached input and reasoning inside
// their totals with the details objects beside. What is right stays the same bytes; nil for what is no usage.
func mendUsage(raw []byte) []byte {
	if !isObject(raw) {
		return nil
	}
	u := lookUsage(raw)
	if u.prompt == nil && u.completion == nil {
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
	return whole && !u.foreign && (u.details || u.cached == nil) && u.hidden() == 0
}

// hidden is reasoning that is in the total but not in the completion.
func (u *usageView) hidden() int64 {
	prompt, _ := number(u.prompt)
	completion, _ := number(u.completion)
	total, _ := number(u.total)
	reasoning, _ := number(u.reasoning)
	if reasoning > 0 && total == prompt+completion+reasoning {
		return reasoning
	}
	return 0
}

func (u *usageView) rebuild(raw []byte) []byte {
	prompt, _ := number(u.prompt)
	completion, _ := number(u.completion)
	completion += u.hidden()
	total, _ := number(u.total)
	total = max(total, prompt+completion)
	b := strconv.AppendInt([]byte(`{"prompt_tokens":`), max(prompt, 0), 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), max(completion, 0), 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), max(total, 0), 10)
	if cached, ok := number(u.cached); ok && !u.details {
		b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), max(cached, 0), 10)
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
