package cache

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maxSimilar is how many tokens a question may have to be served by similarity: in a long one, one word that
// changes everything hardly moves the vector.
const maxSimilar = 24

// shortText is how many tokens a text that asks nothing may have to be a question all the same.
const shortText = 12

// gate says whether a similar question may be the same one. It doubts: a wrong answer is worse than none. The
// names are for the evaluation.
type gate struct {
	name string
	pass func(a, b features) bool
}

// gates are asked of every candidate that only similarity proposes.
func gates() []gate {
	return []gate{
		{"length", func(a, b features) bool { return len(a.tokens) <= maxSimilar && len(b.tokens) <= maxSimilar }},
		{"numbers", func(a, b features) bool { return maps.Equal(a.numbers, b.numbers) }},
		{"negation", func(a, b features) bool { return maps.Equal(a.negations, b.negations) }},
		{"question", func(a, b features) bool { return maps.Equal(a.asks, b.asks) }},
		{"pronouns", func(a, b features) bool { return slices.Equal(a.pronouns, b.pronouns) }},
		{"foreign", func(a, b features) bool { return slices.Equal(a.foreign, b.foreign) }},
		{"opposites", func(a, b features) bool { return maps.Equal(a.opposites, b.opposites) }},
		{"exchange", func(a, b features) bool { return !exchanged(a.tokens, b.tokens) }},
		{"repeats", func(a, b features) bool { return !repeats(a.tokens, b.tokens) && !repeats(b.tokens, a.tokens) }},
		{"order", func(a, b features) bool { return !reordered(a.tokens, b.tokens) }},
	}
}

// labelledGates are those for answers that say which question they answer: who asks may be left out, and so may a word
// that adds little; one part of a sentence may stand before its neighbour or behind it.
func labelledGates() []gate {
	out := gates()
	for i := range out {
		switch g := &out[i]; g.name {
		case "pronouns":
			strict := g.pass
			g.pass = func(a, b features) bool { return strict(a, b) || lacksSpeaker(a, b) || lacksSpeaker(b, a) }
		case "opposites":
			g.pass = func(a, b features) bool { return maps.Equal(weighty(a.opposites), weighty(b.opposites)) }
		case "order":
			strict := g.pass
			g.pass = func(a, b features) bool {
				return strict(a, b) || slices.Equal(a.pronouns, b.pronouns) && turned(a.whole, b.whole)
			}
		}
	}
	return out
}

// lacksSpeaker says whether a names nobody and b only those who talk: 我想学吉他怎么办, 想学吉他怎么办.
func lacksSpeaker(a, b features) bool {
	return len(a.pronouns) == 0 && !slices.ContainsFunc(b.pronouns, func(p string) bool { return p != "我" && p != "你" })
}

// weighty are the opposites without those that add little where the other question has nothing in their place.
func weighty(opposites map[string]int) map[string]int {
	out := maps.Clone(opposites)
	for _, light := range gateWords().light {
		delete(out, light)
	}
	return out
}

// turned says whether one part stands before its neighbour in one and behind it in the other, and all else is in one
// order, but for what one of them says beyond the other. Two that change places around a third aren't turned: 狗咬人, 人咬狗.
func turned(a, b []string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	a = within(a, b)
	if len(a) != len(b) || len(b) > shortText && !asks(b) && !slices.Contains(b, "吗") {
		return false
	}
	for len(a) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	for i := range a {
		if slices.Equal(b[:len(a)-i], a[i:]) && slices.Equal(b[len(a)-i:], a[:i]) {
			return mayTurn(a[:i], a[i:])
		}
	}
	return false
}

// mayTurn says whether two neighbours may change places: none is a single character of a word (十二, 二十), and nothing in
// them rests on its place: who does it, what is negated, whose object the question is, what 什么 belongs to.
func mayTurn(a, b []string) bool {
	w, both := gateWords(), slices.Concat(a, b)
	for _, part := range [][]string{a, b} {
		if len(part) == 1 && !isAsk(part[0]) {
			return false
		}
	}
	return !chineseWords().holds(both) && !slices.ContainsFunc(both, func(t string) bool {
		ask := askOf(t)
		return w.placed[t] || w.numerals[t] || w.negations[t] || chineseWords().person(t) || ask == askWhat || ask == askWho || ask == askWhich
	})
}

// within are the tokens of a that b has as well, each as often.
func within(a, b []string) (out []string) {
	left := map[string]int{}
	for _, t := range b {
		left[t]++
	}
	for _, t := range a {
		if left[t]--; left[t] >= 0 {
			out = append(out, t)
		}
	}
	return out
}

// blockedBy names the first of some gates that two forms don't pass together, "" for none.
func blockedBy(gates []gate, a, b form) string {
	fa, fb := featuresOf(a), featuresOf(b)
	for _, g := range gates {
		if !g.pass(fa, fb) {
			return g.name
		}
	}
	return ""
}

// features are what may not differ between two questions, however similar they are.
type features struct {
	tokens                   []string
	whole                    []string // the same in the order of the sentence
	numbers, negations, asks map[string]int
	opposites                map[string]int
	pronouns, foreign        []string // in order; foreign is what isn't Han: names, units, models
}

func featuresOf(f form) features {
	w := gateWords()
	out := features{tokens: f.all(), whole: f.whole, numbers: map[string]int{}, negations: map[string]int{}, asks: map[string]int{}, opposites: map[string]int{}}
	for _, t := range out.tokens {
		switch r, _ := utf8.DecodeRuneInString(t); {
		case isAsk(t) || t == "吗":
			out.asks[t]++
		case w.numerals[t] || unicode.IsDigit(r):
			out.numbers[t]++
		case w.negations[t]:
			out.negations[t]++
		case w.pronouns[t]:
			out.pronouns = append(out.pronouns, t)
		case !isHan(r) && r < shield:
			out.foreign = append(out.foreign, t)
		}
	}
	text := strings.Join(out.tokens, "")
	for _, word := range w.opposites {
		if n := strings.Count(text, word); n > 0 {
			out.opposites[word] = n
		}
	}
	return out
}

// reordered says whether words that both have stand in another order: 北京到天津, 天津到北京.
func reordered(a, b []string) bool {
	return common(a, b) > subsequence(a, b)
}

// repeats says whether what a has beyond b is a word that both have once already: 肃然起敬的肃 asks for one word of it.
func repeats(a, b []string) bool {
	counts := map[string]int{}
	for _, t := range b {
		counts[t]++
	}
	left := maps.Clone(counts)
	for _, t := range a {
		if left[t]--; left[t] < 0 && counts[t] > 0 {
			return true
		}
	}
	return false
}

// exchanged says whether each has a word that the other lacks: 介绍大西洋, 介绍太平洋. What differs otherwise is only
// that one says a little more.
func exchanged(a, b []string) bool {
	n := common(a, b)
	return n < len(a) && n < len(b)
}

// all gives the tokens with those that were moved.
func (f form) all() []string {
	out := slices.Clone(f.tokens)
	for _, r := range f.moved {
		out = append(out, string(r))
	}
	return out
}

// common counts the tokens that both have.
func common(a, b []string) int { return len(within(a, b)) }

// subsequence is the length of the longest common subsequence.
func subsequence(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

type gateRules struct {
	numerals, negations, pronouns map[string]bool
	placed                        map[string]bool // what stands before or behind it, says what is done to what
	opposites, light              []string
}

var gateWords = sync.OnceValue(func() *gateRules {
	return &gateRules{
		numerals:  set("〇 零 一 二 三 四 五 六 七 八 九 十 百 千 万 亿 两 俩 半 双 几"),
		negations: set("不 没 无 非 未 别 勿 莫 否 禁 拒 免"),
		pronouns:  set("我 你 他 她 它 咱 俺 自"),
		opposites: strings.Fields("前 后 上 下 左 右 里 内 外 大 小 多 少 高 低 长 短 快 慢 早 晚 先 新 旧 老 男 女 父 母 爸 妈 儿 买 卖 开 关 进 出 " +
			"入 来 去 增 减 升 降 加 正 反 真 假 好 坏 胖 瘦 冷 热 生 死 借 还 存 取 收 发 绑 解 公 母 东 西 南 北 中 春 夏 秋 冬 日 月 年 周 " +
			"星期 上午 下午 最 更 都 只 仅 从 到 给 被 把 比 让 和 或 与 可以 必须 应该 会 能 要 过 正在 曾 的 了 着"),
		light:  strings.Fields("里 上 中 把 来 去 出 到 最 更 要 能 真 正 年 快 加 还"),
		placed: set("给 被 让 把 对 向 跟 从 到 比 教 说 是 用 去 转 换"),
	}
})
