package cache

import (
	"cmp"
	"slices"
	"strings"
	"sync"
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
	askHowIs // 味道怎么样; at the end 怎么样 is no 怎么
	askWrong // 怎么了
	askHowMuch
	askHowLong
	askEnd
)

// shield is added to a rune that looks like a particle and is part of a word (酒吧), so that it isn't dropped.
const shield rune = 0xF0000

// chinese drops what doesn't change a Chinese question: polite words and particles; folds question words into
// classes; takes out a question word that may stand anywhere. Numbers, pronouns, negation and order stay.
func chinese(tokens []string) (kept []string, moved string) {
	w := chineseWords()
	tokens = trimPhrases(tokens, w.leading, w.trailing)
	if len(tokens) > 2 && tokens[0] == "请" && !w.afterPlease[tokens[1]] {
		tokens = trimPhrases(tokens[1:], w.leading, nil)
	}
	tokens = yesNo(replace(tokens, w))
	for i, t := range tokens {
		switch {
		case w.particles[t]:
		case t == "的" && (i == 0 || !isAsk(tokens[i-1])): // 谁的 is whose
		default:
			kept = append(kept, t)
		}
	}
	if len(kept) == 0 {
		return tokens, ""
	}
	return move(kept, w)
}

// replace writes the longest known phrase at each place as its class. A phrase is a run of single characters.
func replace(tokens []string, w *chineseRules) []string {
	out := make([]string, 0, len(tokens))
	for i := 0; i < len(tokens); {
		n, to := w.match(tokens[i:])
		if n == 0 {
			n, to = 1, tokens[i:i+1]
		}
		out = append(out, to...)
		i += n
	}
	return out
}

// yesNo keeps 吗 only where it alone makes the question: 这款手机防水吗 asks, 这款手机防水 tells; 怎么了吗 asks anyway.
// 么 and 嘛 at the end are 吗, 吧 and 哈 there are nothing.
func yesNo(tokens []string) []string {
	for len(tokens) > 1 {
		last := tokens[len(tokens)-1]
		if last != "吧" && last != "哈" {
			break
		}
		tokens = tokens[:len(tokens)-1]
	}
	if n := len(tokens); n > 1 && (tokens[n-1] == "嘛" || tokens[n-1] == "么" && !strings.Contains("那这多要", tokens[n-2])) {
		tokens[n-1] = "吗"
	}
	if n := len(tokens); n > 1 && tokens[n-1] == string(askHow) {
		tokens[n-1] = string(askHowIs)
	}
	if !asks(tokens) {
		return tokens
	}
	return slices.DeleteFunc(tokens, func(t string) bool { return t == "吗" })
}

// asks says whether a text is a question without 吗: by a question word or A-not-A.
func asks(tokens []string) bool {
	for i, t := range tokens {
		if isAsk(t) || t == "否" {
			return true
		}
		if (t == "不" || t == "没") && i > 0 && i+1 < len(tokens) && tokens[i-1] == tokens[i+1] {
			return true
		}
	}
	return false
}

// move takes out the one question word of a sentence, with its 是 or 有, if it may stand elsewhere without changing
// the question: 苏州有什么好吃的地方, 苏州好吃的地方有什么. With 的 behind it (什么的首都) it belongs where it is.
func move(tokens []string, w *chineseRules) ([]string, string) {
	at, count := 0, 0
	for i, t := range tokens {
		if isAsk(t) {
			at, count = i, count+1
		}
	}
	if count != 1 || tokenAt(tokens, at+1) == "的" {
		return tokens, ""
	}
	from, to, unit := at, at+1, tokens[at]
	switch ask, _ := utf8.DecodeRuneInString(tokens[at]); ask {
	case askWhy, askWhen, askHow:
	case askWhat, askWho, askWhere, askWhich:
		before, after := tokenAt(tokens, at-1), tokenAt(tokens, at+1)
		bound := w.binding[tokenAt(tokens, at-2)]
		switch {
		case before == "是" && !bound:
			from, unit = at-1, "是"+unit
		case after == "是" && tokenAt(tokens, at+2) != "不":
			to, unit = at+2, "是"+unit
		case before == "有" && !bound && (ask == askWhat || ask == askWhich):
			from, unit = at-1, "有"+string(askWhat)
		default:
			return tokens, ""
		}
	default:
		return tokens, ""
	}
	if len(tokens) == to-from {
		return tokens, ""
	}
	return slices.Delete(tokens, from, to), unit
}

func tokenAt(tokens []string, i int) string {
	if i < 0 || i >= len(tokens) {
		return ""
	}
	return tokens[i]
}

func isAsk(token string) bool {
	r, _ := utf8.DecodeRuneInString(token)
	return r >= askWhat && r < askEnd
}

type chineseRules struct {
	leading, trailing  [][]string
	replaced           map[string][]string
	first              map[string]bool // the first characters of what is replaced
	longest            int
	particles, binding map[string]bool
	afterPlease        map[string]bool
}

// match gives the length of the longest phrase at the start of tokens, 0 for none, and what it becomes.
func (w *chineseRules) match(tokens []string) (int, []string) {
	if !w.first[tokens[0]] {
		return 0, nil
	}
	for n := min(w.longest, len(tokens)); n > 0; n-- {
		if to, ok := w.replaced[strings.Join(tokens[:n], "")]; ok {
			return n, to
		}
	}
	return 0, nil
}

var chineseWords = sync.OnceValue(func() *chineseRules {
	w := &chineseRules{
		leading: characters("请问一下", "请问下", "请问", "请教一下", "请教下", "请告诉我", "请你告诉我", "请帮我", "请你", "麻烦你", "麻烦问一下",
			"麻烦问下", "麻烦请问", "麻烦告诉我", "劳驾", "我想知道", "想知道", "我想问一下", "我想问下", "想问一下", "想问下", "问一下", "问下",
			"能告诉我", "可以告诉我", "告诉我", "那请问", "你好请问", "您好请问", "你好,", "您好,", "大家好,", "嗨,", "亲,", "我想问,", "想问,", ","),
		// Behind a pause only: 英语怎么说谢谢.
		trailing: characters(",谢谢", ",谢谢你", ",谢谢您", ",谢谢了", ",谢谢啦", ",谢谢大家", ",多谢", ",多谢了", ",感谢", ",非常感谢", ",拜托",
			",拜托了"),
		replaced:  map[string][]string{},
		first:     map[string]bool{},
		particles: set("了 呢 啊 呀 哦 噢 喔 啦 嘞 哟 诶 欸"),
		// 请 is part of these: 请假, 请客.
		afterPlease: set("假 客 求 帖 柬 愿 战 教 安 示 神 缨 辞 罪 命"),
		binding:     set("不 没 还 但 就 总 老 可 于 所 具 含 拥 只"),
	}
	for ask, words := range askWords() {
		for _, word := range words {
			w.add(word, string(ask))
		}
	}
	w.add("干嘛", "干"+string(askWhat))
	w.add("一下", "")
	w.add("您", "你")
	w.add("妳", "你")
	w.add("著", "着")
	for _, word := range strings.Fields("酒吧 网吧 贴吧 吧台 书吧 氧吧 水吧 吧主 目的 的确 的士 打的 标的 了解 为了 除了 了不起 受不了 不得了 免不了 了结 " +
		"一下子 呢子 毛呢") {
		w.protect(word)
	}
	sortLongest(w.leading)
	sortLongest(w.trailing)
	return w
})

func askWords() map[rune][]string {
	return map[rune][]string{
		askWhat:    {"什么", "啥", "甚么", "神马", "何物"},
		askWho:     {"谁", "什么人", "何人", "哪位"},
		askWhere:   {"哪里", "哪儿", "何处", "什么地方", "啥地方", "哪块"},
		askWhich:   {"哪些", "哪几个", "哪几种"},
		askWhen:    {"什么时候", "啥时候", "何时", "什么时间", "啥时间"},
		askWhy:     {"为什么", "为啥", "为何", "因何", "为甚么"},
		askHow:     {"怎么", "怎样", "怎么样", "如何", "咋", "咋样", "怎么着", "咋么"},
		askWrong:   {"怎么了", "咋了", "怎么啦", "咋啦"},
		askHowMuch: {"多少", "几多"},
		askHowLong: {"多久", "多长时间"},
	}
}

func (w *chineseRules) add(word, to string) {
	w.replaced[word] = characters(to)[0]
	r, _ := utf8.DecodeRuneInString(word)
	w.first[string(r)] = true
	w.longest = max(w.longest, utf8.RuneCountInString(word))
}

// protect shields the particles in a word from being dropped.
func (w *chineseRules) protect(word string) {
	w.add(word, strings.Map(func(r rune) rune {
		if strings.ContainsRune("吧的了呢", r) {
			return r + shield
		}
		return r
	}, word))
}

// characters splits each phrase into its characters; a comma stands for a pause.
func characters(texts ...string) [][]string {
	out := make([][]string, len(texts))
	for i, t := range texts {
		for _, r := range t {
			out[i] = append(out[i], strings.Replace(string(r), ",", pause, 1))
		}
	}
	return out
}

func sortLongest(phrases [][]string) {
	slices.SortStableFunc(phrases, func(a, b []string) int { return cmp.Compare(len(b), len(a)) })
}
