package cache

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Question words stand in canonical tokens as one private-use rune a class.
const (
	askWhat rune = 0xE000 + iota
	askWho
	askWhere
	askWhich
	askWhen
	askWhy
	askHow
	askHowIs   // 味道怎么样; at the end 怎么样 is no 怎么
	askWrong   // 怎么了
	askMatter  // 怎么回事
	askEnglish // 用英语怎么说
	askHowMuch
	askHowLong
	askEnd
)

// shield is added to a rune that looks like a particle and is part of a word (酒吧), so that it isn't dropped.
const shield rune = 0xF0000

// chinese drops what doesn't change a Chinese question: polite words and particles; folds question words into
// classes and forms that mean the same into one; takes out a question word that may stand anywhere. Numbers,
// pronouns, negation and order stay.
func chinese(tokens []string) form {
	w := chineseWords()
	tokens = w.yesNo(w.frames(w.replace(w.polite(tokens))))
	kept := w.withoutParticles(w.settle(tokens))
	if len(kept) == 0 {
		return form{lang: langChinese, tokens: tokens}
	}
	f := w.move(kept)
	f.lang, f.whole = langChinese, kept
	return f
}

// polite takes courtesies off both ends.
func (w *chineseRules) polite(tokens []string) []string {
	first, leading := tokenAt(tokens, 0), w.leading
	if text := strings.Join(tokens, ""); slices.ContainsFunc(w.quoting, func(word string) bool { return strings.Contains(text, word) }) {
		leading = w.asking
	}
	tokens = trimPhrases(w.withoutFinal(tokens), leading, w.trailing)
	// 请问下怎么走, but 请问下表是什么.
	if n := len(tokens); n > 2 && tokens[0] == "下" && first != "下" && !w.afterBelow[tokens[1]] {
		tokens = trimPhrases(tokens[1:], leading, nil)
	}
	if len(tokens) > 2 && tokens[0] == "请" && !w.afterPlease[tokens[1]] {
		tokens = trimPhrases(tokens[1:], leading, nil)
	}
	// 麻烦 and 谢谢 are also asked about: 麻烦用英语怎么说, 怎么回复谢谢.
	if len(tokens) > 5 && tokens[0] == "麻" && tokens[1] == "烦" && !w.afterTrouble[tokens[2]] {
		tokens = tokens[2:]
	}
	return w.thanked(tokens)
}

// thanked takes thanks and final particles off the end, in whatever order they stand.
func (w *chineseRules) thanked(tokens []string) []string {
	for {
		before := len(tokens)
		tokens = w.withoutFinal(tokens)
		for _, p := range w.thanks {
			if n := len(tokens) - len(p); n > 2 && slices.Equal(tokens[n:], p) && !w.beforeThanks[tokens[n-1]] {
				tokens = tokens[:n]
			}
		}
		if len(tokens) == before {
			return tokens
		}
	}
}

// withoutFinal takes pauses and particles off the end, where they aren't part of a word (酒吧).
func (w *chineseRules) withoutFinal(tokens []string) []string {
	for n := len(tokens); n > 1 && (tokens[n-1] == pause || w.final[tokens[n-1]] && !w.has(tokens[n-2]+tokens[n-1])); n-- {
		tokens = tokens[:n-1]
	}
	return tokens
}

// frames takes off what only says that one asks (谁知道 …, … 有人知道吗), where a question is left.
func (w *chineseRules) frames(tokens []string) []string {
	tokens = w.withoutFinal(tokens)
	for _, p := range w.before {
		if n := len(p); len(tokens) > n+1 && slices.Equal(tokens[:n], p) && asks(tokens[n:]) {
			tokens = tokens[n:]
			break
		}
	}
	for _, p := range w.behind {
		if n := len(tokens) - len(p); n > 1 && slices.Equal(tokens[n:], p) && asks(tokens[:n]) {
			return tokens[:n]
		}
	}
	return tokens
}

// yesNo makes one of the ways to ask for yes or no (能不能, 能否, 能 … 么) and keeps their 吗 only where it alone makes
// the question: 这款手机防水吗 asks, 这款手机防水 tells; 怎么了吗 asks anyway.
func (w *chineseRules) yesNo(tokens []string) []string {
	tokens = w.withoutFinal(tokens)
	n := len(tokens)
	if n == 0 {
		return tokens
	}
	last, before := tokens[n-1], tokenAt(tokens, n-2)
	asked := slices.ContainsFunc(tokens, isAsk)
	switch {
	case n > 1 && (last == "嘛" || last == "么" && !strings.Contains("那这多要", before)), n > 3 && last == "不" && !asked && !strings.Contains("要说", before),
		n > 3 && last == "没" && before == "了":
		tokens[n-1] = "吗"
	case n > 1 && last == string(askHow):
		tokens[n-1] = string(askHowIs)
	case n > 1 && last == "哪":
		tokens[n-1] = string(askWhere)
	}
	if asked {
		return slices.DeleteFunc(tokens, func(t string) bool { return t == "吗" })
	}
	whole, either := withoutAlternatives(tokens)
	whole = slices.DeleteFunc(whole, func(t string) bool { return t == "吗" && either })
	if either {
		whole = append(whole, "吗")
	}
	return whole
}

// withoutAlternatives writes A-not-A (能不能, 喜欢不喜欢, 喜不喜欢) and 是否 as the plain verb and says whether it found one.
// The verb itself begins no other: 是不是不是真的 asks whether it isn't.
func withoutAlternatives(tokens []string) (out []string, found bool) {
	for i := 0; i < len(tokens); {
		n := alternative(tokens[i:])
		switch {
		case n > 0:
			found = true
			out = append(out, tokens[i+n+1:i+2*n+1]...)
			i += 2*n + 1
		case tokens[i] == "否":
			found = true
			i++
		default:
			out = append(out, tokens[i])
			i++
		}
	}
	return out, found
}

// alternative is the length of what A-not-A at the start of tokens repeats, 0 for none.
func alternative(tokens []string) int {
	for n := 2; n > 0; n-- {
		if 2*n < len(tokens) && (tokens[n] == "不" || tokens[n] == "没" && tokens[0] == "有") && slices.Equal(tokens[:n], tokens[n+1:2*n+1]) {
			return n
		}
	}
	return 0
}

// asks says whether a text is a question without 吗: by a question word or A-not-A.
func asks(tokens []string) bool {
	_, either := withoutAlternatives(tokens)
	return either || slices.ContainsFunc(tokens, isAsk)
}

// settle drops what may stand about a question word without changing the question: 到底 before it, 该 before 怎么, 是 where
// the sentence goes on, 才能 behind 怎么.
func (w *chineseRules) settle(tokens []string) []string {
	out := make([]string, 0, len(tokens))
	for i := 0; i < len(tokens); i++ {
		ask := askOf(tokens[i])
		if ask != 0 {
			out = w.settleBefore(out, ask, i+1 == len(tokens))
		}
		out = append(out, tokens[i])
		switch {
		case ask == askHow:
			for _, p := range w.modals {
				if i+1+len(p) < len(tokens) && tokens[i+1+len(p)] != "不" && slices.Equal(tokens[i+1:i+1+len(p)], p) && (len(p) > 1 || len(out) == 1) {
					i += len(p)
					break
				}
			}
		case (ask == askWhen || ask == askWhere && i == 0) && tokenAt(tokens, i+1) == "是" && tokenAt(tokens, i+2) != "不":
			i++
		}
	}
	return out
}

func (w *chineseRules) settleBefore(out []string, ask rune, last bool) []string {
	free := func() bool { return len(out) > 0 && !w.binding[tokenAt(out, len(out)-2)] }
	verb := ""
	if n := len(out) - 1; n >= 0 && (out[n] == "是" || out[n] == "有") && free() {
		verb, out = out[n], out[:n]
	}
	for _, p := range w.adverbs {
		if n := len(out) - len(p); n >= 0 && slices.Equal(out[n:], p) {
			out = out[:n]
		}
	}
	if verb != "" {
		if verb == "是" && (w.freeOfIs[ask] || !last && ask != askWhat && ask != askWhich) {
			return out
		}
		return append(out, verb)
	}
	n := len(out) - 1
	switch last := tokenAt(out, n); {
	case last == "在" && ask == askWhere && free() && tokenAt(out, n-1) != "现",
		(last == "该" || last == "要") && ask == askHow && free(),
		last == "要" && (ask == askHowLong || ask == askHowMuch) && free():
		out = out[:n]
	}
	return out
}

// withoutParticles drops particles, where they say nothing, and 从 before 到.
func (w *chineseRules) withoutParticles(tokens []string) (kept []string) {
	for i, t := range tokens {
		switch {
		case t == "了" && !w.says(tokens, i),
			t != "了" && w.particles[t],
			t == "的" && (i == 0 || !isAsk(tokens[i-1])) && !w.houses[pairAt(tokens, i+1)], // 谁的 is whose; 北京大学 is one
			t == "都" && forAll(tokens, i),
			t == "从" && i == 0 && slices.Contains(tokens, "到"):
		default:
			kept = append(kept, t)
		}
	}
	return kept
}

// says says whether 了 makes another question: 他去了哪里, 他去哪里; 天黑了吗, 天黑吗; 谁赢了, 谁赢; 没有了, 没有.
func (w *chineseRules) says(tokens []string, i int) bool {
	switch next := tokenAt(tokens, i+1); askOf(next) {
	case askWhat, askWho, askWhere, askWhich, askHowMuch, askHowLong:
		return true
	case 0:
		first := slices.IndexFunc(tokens, isAsk)
		return next == "吗" || next == "几" || next == "" && (first < 0 || askOf(tokens[first]) == askWho || askOf(tokens[first]) == askWhen)
	}
	return false
}

// forAll says whether 都 at a place only says that there may be many of what is asked for: 苏州都有什么, but 谁都喜欢什么 and
// 不都是什么.
func forAll(tokens []string, i int) bool {
	before, next := tokenAt(tokens, i-1), tokenAt(tokens, i+1)
	return before != "不" && next != "不" && next != "没" && !slices.ContainsFunc(tokens[:i], isAsk) && slices.ContainsFunc(tokens[i:], isAsk)
}

func tokenAt(tokens []string, i int) string {
	if i < 0 || i >= len(tokens) {
		return ""
	}
	return tokens[i]
}

// askOf is the class of a question word, 0 for any other token.
func askOf(token string) rune {
	if r, _ := utf8.DecodeRuneInString(token); r >= askWhat && r < askEnd {
		return r
	}
	return 0
}

func isAsk(token string) bool { return askOf(token) != 0 }
