package cache

import (
	"slices"
	"strings"
)

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
	before, behind := tokens[:from], tokens[to:]
	if from == to || to-from == len(tokens) || w.holds(before) {
		return form{tokens: tokens}
	}
	f := form{moved: unit}
	person := slices.ContainsFunc(before, w.person) || slices.ContainsFunc(behind, w.person)
	switch ask := askOf(tokens[at]); {
	case ask == askWhere && person: // the order says who does it: 我在哪里打他
		return form{tokens: tokens}
	case (ask == askWhere || ask == askHow || ask == askWhen) && !person && w.verb(behind) && !w.place(before, behind):
		if w.acting[tokenAt(before, 0)] { // 怀孕怎么避孕, 避孕怎么怀孕
			return form{tokens: tokens}
		}
		f.tokens = slices.Concat(behind, before)
	case slices.ContainsFunc(before, w.negates): // 不努力怎么成功, 怎么不努力成功
		return form{tokens: tokens}
	default:
		f.tokens = slices.Concat(before, behind)
	}
	return w.noun(f)
}

// holds says whether what stands before a question word keeps it there: a verb whose object the question is. 他说为什么走
// isn't 他为什么说走.
func (w *chineseRules) holds(before []string) bool {
	text := strings.Join(before, "")
	return slices.ContainsFunc(w.holding, func(word string) bool { return strings.Contains(text, word) })
}

// verb says whether what stands behind a question word is but a verb, before which may stand what it is done to:
// 红烧肉怎么做, 怎么做红烧肉. What is longer says that itself: 看电影怎么学英语. With verbs of one being to another order is
// all there is: 狗怎么叫, 怎么叫狗.
func (w *chineseRules) verb(behind []string) bool {
	const longest = 2 // characters
	n := len(behind)
	return n > 0 && n <= longest && !w.doing[behind[n-1]]
}

// place says whether what stands before a question word is where something is done, not what it is done to: 网上怎么买,
// 淘宝怎么开店, but 怎么下载淘宝.
func (w *chineseRules) place(before, behind []string) bool {
	n := len(before) - 1
	return n >= 1 && (before[n] == "上" || before[n] == "里" || w.places[strings.Join(before, "")] && !w.toPlaces[strings.Join(behind, "")])
}

func (w *chineseRules) negates(token string) bool { return token == "不" || token == "没" }

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
	case before == "是" && !bound && (at+1 == len(tokens) || at == 1 || at+3 == len(tokens) && w.isNouns[pairAt(tokens, at+1)]):
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
		f = form{moved: string(askHow), tokens: f.tokens[:n:n]}
		if last == "做法" {
			f.tokens = slices.Concat([]string{"做"}, f.tokens)
		}
	case w.wayNouns[first] && first != "做法" && f.moved == has:
		rest := f.tokens[2:]
		if rest[0] == "能" && len(rest) > 1 {
			rest = rest[1:]
		}
		f = form{moved: string(askHow), tokens: rest}
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

func (w *chineseRules) person(token string) bool { return w.persons[token] }

// pairAt is the word of two characters at a place.
func pairAt(tokens []string, i int) string { return tokenAt(tokens, i) + tokenAt(tokens, i+1) }
