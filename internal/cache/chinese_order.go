package cache

import "slices"

// move takes out the one question word of a sentence, with its 是 or 有, if it may stand elsewhere without changing
// the question: 苏州有什么好吃的地方, 苏州好吃的地方有什么. With 的 behind it (什么的首都) it belongs where it is.
func (w *chineseRules) move(tokens []string) form {
	at, count := 0, 0
	for i, t := range tokens {
		if isAsk(t) {
			at, count = i, count+1
		}
	}
	switch {
	case count == 0:
		return w.implied(tokens)
	case count > 1 || tokenAt(tokens, at+1) == "的":
		return form{tokens: tokens}
	}
	from, to, unit := w.unit(tokens, at)
	if from == to || to-from == len(tokens) {
		return form{tokens: tokens}
	}
	f := form{moved: unit, tokens: slices.Delete(slices.Clone(tokens), from, to)}
	switch askOf(tokens[at]) {
	case askWhere:
		// With a person in it, the order says who does it: 我在哪里打他.
		if slices.ContainsFunc(f.tokens, w.person) {
			return form{tokens: tokens}
		}
		f.turns = true
	case askHow, askWhen:
		f.turns = !slices.ContainsFunc(f.tokens, w.person)
	}
	return w.noun(f)
}

// unit says which tokens move with the question word at a place and what they become; from == to: none.
func (w *chineseRules) unit(tokens []string, at int) (from, to int, unit string) {
	before, after := tokenAt(tokens, at-1), tokenAt(tokens, at+1)
	bound := w.binding[tokenAt(tokens, at-2)]
	switch ask := askOf(tokens[at]); {
	case ask == askWhy, ask == askWhen, ask == askHow, ask == askEnglish, ask == askWhere:
		return at, at + 1, tokens[at]
	case (ask == askWhat || ask == askWhich || ask == askHowMuch) && before == "有" && !bound:
		if ask == askWhich {
			ask = askWhat
		}
		return at - 1, at + 1, "有" + string(ask)
	case ask == askWho && after == "有":
		return at, at + 2, tokens[at] + "有"
	case ask != askWhat && ask != askWho && ask != askWhich:
		return at, at, ""
	case ask == askWhich && w.kinds[pairAt(tokens, at+1)]:
		return at, at + 3, tokens[at] + pairAt(tokens, at+1)
	case before == "是" && !bound:
		return at - 1, at + 1, "是" + tokens[at]
	case after == "是" && tokenAt(tokens, at+2) != "不":
		return at, at + 2, "是" + tokens[at]
	case ask == askWhat && at > 0 && at+3 == len(tokens) && w.isNouns[pairAt(tokens, at+1)] && !w.binding[before] && before != "有":
		return at, at + 1, "是" + tokens[at] // 头疼什么原因
	}
	return at, at, ""
}

// implied finds the question in a bare noun: 微信和QQ的区别 asks which it is.
func (w *chineseRules) implied(tokens []string) form {
	f := form{tokens: tokens}
	n := len(tokens) - 2
	if n < 2 {
		return f
	}
	switch last := pairAt(tokens, n); {
	case w.hasNouns[last] || w.wayNouns[last]:
		f.moved = "有" + string(askWhat)
	case w.isNouns[last]:
		f.moved = "是" + string(askWhat)
	default:
		return f
	}
	return w.noun(f)
}

// noun makes one of the questions that differ only in how they name what they ask for: 区别是什么 and 有什么区别, 减肥的方法
// and 怎么减肥.
func (w *chineseRules) noun(f form) form {
	const is, has = "是" + string(askWhat), "有" + string(askWhat)
	n := len(f.tokens) - 2
	if n < 1 || f.moved != is && f.moved != has {
		return f
	}
	first, last := pairAt(f.tokens, 0), pairAt(f.tokens, n)
	switch {
	case w.hasNouns[last]:
		f.moved = has
		f.tokens = symmetric(f.tokens, n)
	case n < 2:
	case w.wayNouns[last] && !slices.ContainsFunc(f.tokens, w.person):
		f = form{moved: string(askHow), tokens: f.tokens[:n:n], turns: true}
		if last == "做法" {
			f.tokens = append(f.tokens, "做")
		}
	case w.wayNouns[first] && first != "做法" && f.moved == has:
		rest := f.tokens[2:]
		if rest[0] == "能" && len(rest) > 1 {
			rest = rest[1:]
		}
		f = form{moved: string(askHow), tokens: rest, turns: !slices.ContainsFunc(rest, w.person)}
	}
	return f
}

// symmetric orders the two that are compared: 微信和QQ的区别 is QQ和微信的区别.
func symmetric(tokens []string, end int) []string {
	and := slices.Index(tokens, "和")
	if and < 1 || and+1 >= end || slices.Contains(tokens[and+1:], "和") || pairAt(tokens, end) != "区别" {
		return tokens
	}
	a, b := tokens[:and], tokens[and+1:end]
	if slices.Compare(a, b) <= 0 {
		return tokens
	}
	return slices.Concat(b, []string{"和"}, a, tokens[end:])
}

// firstTurn is the turn of a ring of tokens that comes first in their order: 做红烧肉 and 红烧肉做 have the same.
func firstTurn(tokens []string) []string {
	ring, n := slices.Concat(tokens, tokens), len(tokens)
	best := 0
	for i := 1; i < n; i++ {
		if slices.Compare(ring[i:i+n], ring[best:best+n]) < 0 {
			best = i
		}
	}
	return ring[best : best+n]
}

func (w *chineseRules) person(token string) bool { return w.persons[token] }

// pairAt is the word of two characters at a place.
func pairAt(tokens []string, i int) string { return tokenAt(tokens, i) + tokenAt(tokens, i+1) }
