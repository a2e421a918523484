package cache

import (
	"slices"
	"strings"
	"sync"
)

// wordList finds words in a text: Latin ones as whole words or phrases, Chinese ones anywhere.
type wordList struct {
	latin []string // each with a space around it
	han   []string
}

// newWordList takes Latin phrases separated by commas and Chinese words separated by spaces.
func newWordList(latin, han string) wordList {
	l := wordList{han: strings.Fields(han)}
	for _, p := range strings.Split(latin, ",") {
		l.latin = append(l.latin, " "+strings.TrimSpace(p)+" ")
	}
	return l
}

// in says whether one of the words is in a text, given as its words with spaces around and as its characters.
func (l wordList) in(t plainText) bool {
	within := func(text string) func(string) bool {
		return func(word string) bool { return strings.Contains(text, word) }
	}
	return slices.ContainsFunc(l.latin, within(t.words)) || slices.ContainsFunc(l.han, within(t.characters))
}

// plainText is a folded text in the two shapes that word lists look at.
type plainText struct{ words, characters string }

func plain(text string) plainText {
	tokens := withoutPauses(tokenize(simplify(fold(text))))
	return plainText{words: " " + strings.Join(tokens, " ") + " ", characters: strings.Join(tokens, "")}
}

// words are the lists that decide what is stored and how it is found.
type words struct{ timely, pointing, refusing, personal wordList }

var wordLists = sync.OnceValue(func() *words {
	return &words{
		// Their answer is another one tomorrow.
		timely: newWordList("now, today, today's, tonight, tomorrow, tomorrow's, yesterday, yesterday's, current, currently, latest, newest, "+
			"recent, recently, nowadays, at the moment, at present, so far, as of, up to date, right away, ago, upcoming, real time, realtime, "+
			"this morning, this afternoon, this evening, this week, this month, this year, this weekend, this season, last night, last week, "+
			"last month, last year, next week, next month, next year, what time is, weather, forecast, price, prices, "+
			"stock price, exchange rate, how much does, how much is, how much are, news, headlines, live score, live scores, trending, still, "+
			"these days, anymore, just happened",
			"今天 今日 今晚 今早 今夜 今年 今后 今儿 明天 明日 明早 明晚 明年 昨天 昨日 昨晚 去年 前天 后天 前年 后年 现在 现任 现时 目前 当前 当下 如今 眼下 此刻 此时 "+
				"最新 最近 近期 近来 近日 新近 刚刚 刚才 本月 本周 本年 本季 这周 这个月 这个星期 这星期 这几天 这两天 上周 上个月 上星期 下周 下个月 下星期 周末 "+
				"几点 几号 几月 星期几 周几 礼拜几 天气 气温 预报 价格 价钱 多少钱 股价 汇率 行情 油价 房价 金价 报价 实时 即时 新闻 热搜 头条 比分 赛况 待会 "+
				"过几天 至今 迄今 还有多久 即将 刚发布 前几天"),
		// They mean what stood before them.
		pointing: newWordList("it, it's, its, this, that, that's, these, those, they, them, their, he, she, him, her, his, above, previous, earlier, "+
			"former, latter, continue, go on, more, again, same, another, other, others, else, and then, what about, how about, why not, so why, "+
			"elaborate, expand, shorter, longer, simpler, rephrase, rewrite, summarize, translate, go ahead, next one, the first one, the second one",
			"它 他 她 这 那 此 该 其 上面 上述 上文 上边 以上 前面 前者 后者 刚刚 刚才 之前 继续 接着 接下来 再来 再说 再给 再写 再讲 再详 再简 再短 再长 还有 然后 "+
				"另外 另一 别的 同样 同上 一样 换一 换个 详细点 简单点 短一点 长一点 总结一下 翻译一下 展开 为什么呢 什么意思呢 举个例子 举例 第一个 第二个 第三个 "+
				"怎么说呢 所以呢 不对 你说"),
		// At the start of an answer that is none.
		refusing: newWordList("i'm sorry, i am sorry, sorry but, sorry i, i apologize, i apologise, i can't, i cannot, i can not, i'm unable, i am unable, "+
			"i'm not able, i am not able, i won't, i will not, i must decline, i have to decline, unable to assist, unable to help, can't assist, "+
			"can't help with, cannot assist, cannot help with, as an ai, as a language model, i don't have access, i do not have access, "+
			"i don't know, i do not know, i don't have information, i don't have real, against my guidelines, not appropriate for me",
			"抱歉 对不起 不好意思 无法提供 无法回答 无法协助 无法帮助 无法满足 无法为 无法给 无法完成 不能提供 不能回答 不能协助 不便回答 不便提供 "+
				"作为ai 作为一个ai 作为一名ai 作为人工智能 作为一个人工智能 作为一名人工智能 作为语言模型 作为一个语言模型 作为一个大型 我不能 我无法 我没有办法 我不知道 "+
				"无可奉告 超出了我的 很遗憾"),
		// Somebody says who he is.
		personal: newWordList("my name is, i live at, my address is, my phone number is, my number is, my email is, my password is, my ssn, "+
			"my social security number is, my card number is, my account number is, my passport number is, my date of birth, my birthday is, i was born on",
			"我叫 我的名字是 我名字是 我姓 我住在 我家住 我家在 我的地址是 地址是 我的电话是 电话号码是 手机号是 手机号码是 我的邮箱是 我的密码是 身份证号是 身份证号码是 "+
				"银行卡号是 卡号是 账号是 我的生日是 我出生于 护照号"),
	}
})

// timely says whether the answer depends on when one asks.
func timely(text string) bool { return wordLists().timely.in(plain(text)) }

// pointsBeyond says whether a question means something outside itself.
func pointsBeyond(text string) bool { return wordLists().pointing.in(plain(text)) }

// refusal says whether an answer refuses or has nothing to say: it says so at once.
func refusal(answer string) bool {
	const start = 160 // runes
	if runes := []rune(answer[:min(len(answer), 4*start)]); len(runes) > start {
		answer = string(runes[:start])
	}
	return wordLists().refusing.in(plain(answer))
}
