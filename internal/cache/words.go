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
	words := strings.ReplaceAll(" "+strings.Join(tokens, " ")+" ", "'s ", " ")
	return plainText{words: words, characters: strings.Join(tokens, "")}
}

// words are the lists that decide what is stored and how it is found.
type words struct {
	timely, pointing, refusing, failing, personal wordList
	timeless                                      *strings.Replacer // takes out what only looks timely
}

var wordLists = sync.OnceValue(func() *words {
	return &words{
		// Their answer is another one tomorrow.
		timely: newWordList("now, today, tonight, tomorrow, yesterday, yesterday's, current, currently, latest, newest, "+
			"recent, recently, nowadays, at the moment, at present, so far, as of, up to date, right away, ago, upcoming, real time, realtime, "+
			"this morning, this afternoon, this evening, this week, this month, this year, this weekend, this season, this quarter, last night, last week, "+
			"last month, last year, next week, next month, next year, what time is, what day is, what date is, weather, forecast, price of, "+
			"price for, the price, prices, pricing, stock price, share price, gold price, oil price, house price, bitcoin price, exchange rate, "+
			"exchange rates, how much does it cost, how much do they cost, news, headlines, live score, live scores, trending, these days, "+
			"anymore, just happened, as we speak, presently, lately, last few days, past few days, coming days, coming weeks, hours ago, who is winning, sitting president, incumbent, reigning, trading at, temperature outside, raining outside, is it raining, is it snowing, "+
			"what year is it, what month is it, day of the week is it, how long until, how many days until, days left, weeks left, "+
			"last monday, last tuesday, last wednesday, last thursday, last friday, last saturday, last sunday, "+
			"next monday, next tuesday, next wednesday, next thursday, next friday, next saturday, next sunday",
			"今天 今日 今晚 今早 今夜 今年 今后 今儿 明天 明日 明早 明晚 明年 昨天 昨日 昨晚 去年 前天 后天 前年 后年 现在 现任 现时 目前 当前 当下 如今 眼下 此刻 此时 "+
				"最新 最近 近期 近来 近日 新近 刚刚 刚才 本月 本周 本年 本季 这周 这个月 这个星期 这星期 这几天 这两天 上周 上个月 上星期 下周 下个月 下星期 周末 "+
				"几点 是几号 几月几 星期几 周几 礼拜几 天气 气温 预报 价格 价钱 多少钱 股价 汇率 行情 油价 房价 金价 报价 实时 即时 新闻 热搜 头条 比分 赛况 待会 "+
				"过几天 至今 迄今 还有多久 即将 刚发布 前几天 今个 昨儿 明儿 后儿 当今 近几年 近年 这几年 这阵子 这段时间 这会儿 这时候 眼前 上礼拜 下礼拜 这礼拜 天前 周前 个月前 "+
				"小时前 分钟前 星期前 现价 时价 票价 时下 现如今 本届 这届 这一届 下届 下一届 上届 上一届 上个礼拜 下个礼拜 这个礼拜 本日 今晨 还有几天 还有多少天 多少天到 "+
				"什么时间了 几分了 几度了 下雨吗 下雨了吗 下雪吗 下雪了吗 外面冷 外面热 正在上映 热映 热播 新款 新出的 开奖 限行 路况 堵车吗 堵不堵 晚点了 什么价 多少元 "+
				"还活着吗 还在世 多少美元 多少人民币 多少欧元 多少日元 多少港币 多少港元 多少英镑 股票多少"),
		timeless: strings.NewReplacer("出现在", "", "展现在", "", "体现在", "", "表现在", "", "发现在", "", "呈现在", "", "实现在", "", "现在完成", "", "现在进行时", "",
			"现在分词", "", "提前几天", "", "后天性", "", "后天的教育", "", "后天教育", "", "后天努力", "", "后天培养", "", "多少元素", "", "多少元音", "", "今日头条", "", "新闻学", "", "实时操作系统", "", "即时通讯", "",
			" current account", "", " current accounts", "", " electric current", "", " alternating current", "", " direct current", ""),
		// They mean what stood before them.
		pointing: newWordList("it, its, this, that, these, those, they, them, their, he, she, him, her, his, above, previous, earlier, "+
			"former, latter, continue, go on, more, again, same, another, other, others, else, and then, what about, how about, why not, so why, "+
			"elaborate, expand, shorter, longer, simpler, rephrase, rewrite, summarize, translate, go ahead, next one, the first one, the second one",
			"它 他 她 这 那 此 该 其 上面 上述 上文 上边 以上 前面 前者 后者 刚刚 刚才 之前 继续 接着 接下来 再来 再说 再给 再写 再讲 再详 再简 再短 再长 还有 然后 "+
				"另外 另一 别的 同样 同上 一样 换一 换个 详细点 简单点 短一点 长一点 总结一下 翻译一下 展开 为什么呢 什么意思呢 举个例子 举例 第一个 第二个 第三个 "+
				"怎么说呢 所以呢 不对 你说"),
		// At the start of an answer that is none.
		refusing: newWordList("i'm sorry, i am sorry, sorry but, sorry i, i apologize, i apologise, i can't, i cannot, i can not, i'm unable, i am unable, "+
			"i'm not able, i am not able, i won't, i will not, i must decline, i have to decline, unable to assist, unable to help, can't assist, "+
			"can't help with, cannot assist, cannot help with, as an ai, as a language model, i don't have access, i do not have access, "+
			"i don't know, i do not know, i don't have information, i do not have information, i don't have any information, i do not have any information, i don't have real, unfortunately i can't, unfortunately i cannot, i'm afraid i, against my guidelines, not appropriate for me, "+
			"i'd rather not, i would rather not, i would prefer not, respectfully decline, don't think i can help, not something i can help, i'm just an ai, i am just an ai, "+
			"i'm not comfortable, i am not comfortable, i don't have enough, i do not have enough, i do not have real, i'm not sure what you, i am not sure what you, "+
			"beyond what i can, i am programmed, i'm programmed, i have no information, as a responsible ai, as an artificial intelligence, i was unable, we are unable, "+
			"i couldn't find, i could not find",
			"抱歉 对不起 不好意思 无法提供 无法回答 无法协助 无法帮助 无法满足 无法为 无法给 无法完成 不能提供 不能回答 不能协助 不便回答 不便提供 "+
				"作为ai 作为一个ai 作为一名ai 作为人工智能 作为一个人工智能 作为一名人工智能 作为语言模型 作为一个语言模型 作为一个大型 我不能 我无法 我没有办法 我不知道 "+
				"无可奉告 超出了我的 超出我的 很遗憾 恕我 我只是一个 我只是一名 我还在学习 我没有相关 我不方便 我拒绝 我无权 我的知识截止 我不太清楚 我不确定 助手无法"),
		// As all of an answer: it failed, asks back, or turns the subject.
		failing: newWordList("try again, error occurred, internal server error, rate limit, timed out, overloaded, something went wrong, clarify, more details, more context, "+
			"more information, no information, no data, no results, sorry, apologies, off limits, violates, violate, something else, cut off, no text",
			"稍后再试 稍后重试 系统繁忙 服务异常 网络错误 网络异常 请求超时 违规 请提供 请您提供 不清楚 不确定 无法确定 没有找到 未找到 暂不支持 暂无 尚未收录 换个话题 敏感 法律法规 具体指 具体是指"),
		// Somebody says who he is. What follows says whether he does: see personal.
		personal: newWordList("my name is, my full name is, i live at, i am living at, my address is, my home address is, my phone number is, my phone is, "+
			"my number is, my cell is, my mobile is, my mobile number is, my email is, my email address is, my password is, my pin is, my ssn is, "+
			"my social security number is, my card number is, my account number is, my passport number is, my date of birth is, my birthday is, "+
			"i was born on, call me at, reach me at, contact me at, text me at, email me at, whatsapp me at",
			"我叫 我名叫 我的名字是 我名字是 我的姓名是 我姓 地址是 地址为 我的电话是 我电话是 电话号码是 电话号是 手机号是 手机号码是 手机号为 我的手机是 我的微信是 微信号是 我的qq是 qq号是 "+
				"我的邮箱是 邮箱是 我的密码是 身份证号是 身份证号码是 银行卡号是 卡号是 卡号为 账号是 账号为 我的生日是 我出生于 护照号是 护照号为 护照号码是"),
	}
})

// timely says whether the answer depends on when one asks.
func timely(text string) bool {
	w, t := wordLists(), plain(text)
	return w.timely.in(plainText{words: w.timeless.Replace(t.words), characters: nearest(w.timeless.Replace(t.characters))}) ||
		costs(t.words) || stillSo(t.words) || exchanges(t.words)
}

// nearest takes out 离…最近 and 距…最近, which say where and not when.
func nearest(characters string) string {
	for _, from := range []string{"离", "距"} {
		if before, after, found := strings.Cut(characters, from); found {
			if place, rest, found := strings.Cut(after, "最近的"); found && len(place) < 30 {
				return before + place + rest
			}
		}
	}
	return characters
}

// exchanges finds two currencies: what one is in the other changes.
func exchanges(words string) bool {
	found := 0
	for _, names := range []string{
		"usd dollar dollars", "eur euro euros", "gbp sterling", "jpy yen", "cny rmb yuan", "inr rupee rupees", "chf francs", "btc bitcoin bitcoins", "eth ethereum",
	} {
		if slices.ContainsFunc(strings.Fields(names), func(n string) bool { return strings.Contains(words, " "+n+" ") }) {
			found++
		}
	}
	return found > 1
}

// costs finds "how much … cost": the answer is a price.
func costs(words string) bool {
	_, rest, found := strings.Cut(words, " how much ")
	return found && (strings.Contains(" "+rest, " cost ") || strings.Contains(" "+rest, " costs "))
}

// stillSo finds "is he still …", which may not be so tomorrow.
func stillSo(words string) bool {
	for _, verb := range []string{" is ", " are ", " does ", " do ", " has ", " have "} {
		if rest, found := strings.CutPrefix(words, verb); found && strings.Contains(" "+rest, " still ") {
			return true
		}
	}
	return false
}

// personal says whether somebody says who he is. "What my password is" says nothing, nor does 电话号码是多少.
func personal(text string) bool {
	l, t := wordLists().personal, plain(text)
	for _, p := range l.latin {
		for rest := t.words; ; {
			_, after, found := strings.Cut(rest, p)
			if !found {
				break
			}
			if word, _, _ := strings.Cut(after, " "); word != "" && !noValue(word) {
				return true
			}
			rest = " " + after
		}
	}
	for _, p := range l.han {
		for rest := t.characters; ; {
			_, after, found := strings.Cut(rest, p)
			if !found {
				break
			}
			if after != "" && !slices.ContainsFunc(noValues(), func(s string) bool { return strings.HasPrefix(after, s) }) {
				return true
			}
			rest = after
		}
	}
	return false
}

// noValue says whether a word behind "is" is not what somebody gives away.
func noValue(word string) bool {
	switch word {
	case "incorrect", "wrong", "correct", "not", "what", "expired", "invalid", "too", "missing", "blocked", "locked", "and", "or",
		"different", "still", "no", "being", "secure", "safe", "weak", "strong", "required", "needed":
		return true
	}
	return false
}

func noValues() []string {
	return []string{"多少", "什么", "啥", "哪", "几", "不", "否", "怎", "如何", "谁", "吗", "你", "他", "她", "它", "错", "对的", "空"}
}

// pointsBeyond says whether a question means something outside itself.
func pointsBeyond(text string) bool { return wordLists().pointing.in(plain(text)) }

// refusal says whether an answer refuses or has nothing to say: it says so at once, or is short.
func refusal(answer string) bool {
	const start, short = 160, 60 // runes
	runes := []rune(answer[:min(len(answer), 4*start)])
	said, w := plain(string(runes[:min(len(runes), start)])), wordLists()
	return w.refusing.in(said) || len(runes) <= short && w.failing.in(said)
}
