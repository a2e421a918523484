package cache

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// chineseRules are the words that the canonical form of Chinese knows.
type chineseRules struct {
	leading, trailing [][]string // courtesies; trailing ones behind a pause
	asking            [][]string // the leading ones that no phrase to be translated begins with: 请你吃饭用英语怎么说
	quoting           []string   // what asks about words
	thanks            [][]string // that need no pause
	before, behind    [][]string // what only says that one asks
	*phraseTable
	adverbs, modals [][]string
	freeOfIs        map[rune]bool

	particles, final, binding, persons      map[string]bool
	afterPlease, afterTrouble, beforeThanks map[string]bool
	afterBelow                              map[string]bool
	kinds, hasNouns, isNouns, wayNouns      map[string]bool
	doing, acting, houses, places, toPlaces map[string]bool
	holding                                 []string
}

var chineseWords = sync.OnceValue(func() *chineseRules {
	w := &chineseRules{
		leading: characters("请问一下", "请问", "请教一下", "请教", "请告诉我", "请你告诉我", "请帮我", "请你", "麻烦你", "麻烦您", "麻烦问一下", "麻烦问",
			"麻烦请问", "麻烦告诉我", "麻烦帮我", "麻烦,", "劳驾", "我想知道", "想知道", "我想问一下", "我想问", "我想问问", "想问一下", "想问",
			"想问问", "想请问", "求问", "问一下", "能告诉我", "可以告诉我", "告诉我", "那请问", "你好请问", "您好请问", "你好,", "您好,", "大家好,", "嗨,",
			"亲,", "我想问,", "想问,", "请,", "嗯,", "呃,", "哎,", "那个,", ","),
		// Behind a pause only: 英语怎么说谢谢.
		trailing: characters(",谢谢", ",谢谢你", ",谢谢您", ",谢谢了", ",谢谢啦", ",谢谢大家", ",多谢", ",多谢了", ",感谢", ",非常感谢", ",拜托",
			",拜托了", ",麻烦你了", ",麻烦您了", ",麻烦了", ",谢了", ",急", ",急急急", ",急急", ",急用", ",在线等", ",求解", ",求解答", ",求助", ",求指教",
			",好吗,谢谢", "求解答", "在线等", "急急急"),
		thanks:       characters("谢谢大家", "谢谢各位", "谢谢你", "谢谢您", "谢谢了", "谢谢啦", "谢谢哈", "谢谢", "多谢", "感谢"),
		phraseTable:  newPhraseTable(),
		adverbs:      characters("到底", "究竟", "一般", "具体", "大概", "大约", "分别", "都"),
		modals:       characters("才能", "能"),
		freeOfIs:     map[rune]bool{askHow: true, askHowIs: true, askWrong: true, askMatter: true, askHowMuch: true, askHowLong: true, askWhen: true, askWhy: true, askWhere: true},
		particles:    set("了 呢 啊 呀 哦 噢 喔 啦 嘞 哟 诶 欸 呐 哇 咧 喽 咯 哩"),
		final:        set("吧 哈 呢 啊 呀 哦 噢 喔 啦 嘞 哟 诶 欸 呐 哇 咧 喽 咯 哩 嗯"),
		binding:      set("不 没 还 但 就 总 老 可 于 所 具 含 拥 只 现 正 存 要 主 重"),
		persons:      set("我 你 他 她 它 咱 俺 自 们 人 谁"),
		afterPlease:  set("假 客 求 帖 柬 愿 战 教 安 示 神 缨 辞 罪 命"),
		afterBelow:   set("一 表 列 面 图 文 方 个 周 月 半 午 载 雨 雪 棋 次 班 水 车 厨 蛋 巴 属 级 楼 单"),
		afterTrouble: set("的 了 是 英 日 韩 用 和 与 事 精 人 大 一 怎 如 什 有 鬼"),
		beforeThanks: set("说 写 念 读 回 复 答 应 表 示 达 道 叫 用 代 替 是 讲 语 文 法 词 歌 曲 首 听 唱 发 打 和 跟 与 对 向 给 句 声 个 人"),
		kinds:        set("牌子 医院 软件 网站 学校 公司 银行 城市 国家 星座 朝代 民族 属相 生肖 季节 省份 行业 职业 品种 型号 节日 专业 平台 酒店 饭店 游戏 电影 小说 歌曲 颜色"),
		hasNouns:     set("区别 好处 坏处 作用 功效 危害 影响 症状 优点 缺点 特点 功能 用途 禁忌 优势 条件"),
		quoting:      strings.Fields("英语 英文 日语 韩语 法语 德语 粤语 方言 怎么说 怎么写 怎么读 怎么念 怎么回 什么意思 啥意思"),
		isNouns:      set("意思 原因 概念 含义"),
		doing:        set("叫 咬 骂 骗 追 教 爱 说 娶 嫁 杀 待"),
		acting:       set("做 打 看 学 吃 喝 用 买 卖 开 坐 洗 睡 玩 写 读 听 唱 跑 走 上 去 来 结 离 怀 生 住 办 考 找 给 让 把 发 得 感 喂 养"),
		places:       set("淘宝 天猫 京东 拼多多 闲鱼 微信 支付宝 抖音 快手 微博 美团 知乎 手机 电脑 网上"),
		toPlaces:     set("下载 安装 卸载 注册 注销 登录 登陆 更新 升级 打开 关闭 删除 下 装 用 玩 买 选 修 开"),
		houses:       set("大学 学院 银行 医院 航空 移动 联通 电信 石油 石化 铁路 日报 晚报 时报 保险 证券"),
		holding: strings.Fields("知道 觉得 认为 以为 告诉 学会 忘 记得 明白 懂得 无论 教我 教你 教他 教她 教孩子 " +
			"我说 你说 他说 她说 们说 人说 师说 生说 妈说 爸说 我想 你想 他想 她想 我问 你问 他问 她问 人问 师问"),
		wayNouns: set("方法 办法 做法"),
	}
	for ask, words := range askWords() {
		for _, word := range words {
			w.add(word, string(ask))
		}
	}
	w.addAlike()
	w.addNames()
	for _, word := range strings.Fields("酒吧 网吧 贴吧 吧台 吧主 目的 的确 的士 打的 标的 了解 为了 除了 了不起 受不了 不得了 免不了 了结 " +
		"一下子 呢子 毛呢 首都 成都 都市 都江堰 京都 都城 古都 丰都 都匀 都督 参与 与其 与否 给与 赠与 授与 跟踪 跟随 跟帖 脚跟 跟班 高跟 跟进 跟头 " +
		"有没有 可能 不可以 还可以 与会 与众 无所谓 否认 否定 否决 否则 哔哩 啦啦 好了歌 一下午 一下雨 一下雪 一下班 一下课 一下车 一下单 1点 学生会") {
		w.protect(word)
	}
	w.frame()
	sortLongest(w.leading)
	for _, p := range w.leading {
		if slices.Contains(p, "问") || slices.Contains(p, pause) {
			w.asking = append(w.asking, p)
		}
	}
	sortLongest(w.trailing)
	return w
})

func askWords() map[rune][]string {
	return map[rune][]string{
		askWhat:    {"什么", "啥", "甚么", "神马", "何物", "什么样的", "怎样的", "怎么样的", "啥样的", "什么东西", "啥东西"},
		askWho:     {"谁", "什么人", "何人", "哪位", "哪个人"},
		askWhere:   {"哪里", "哪儿", "何处", "什么地方", "啥地方", "哪块", "哪个地方", "什么位置"},
		askWhich:   {"哪些", "哪几个", "哪几种"},
		askWhen:    {"什么时候", "啥时候", "何时", "什么时间", "啥时间", "什么时侯", "几时"},
		askWhy:     {"为什么", "为啥", "为何", "因何", "为甚么", "为神马"},
		askHow:     {"怎么", "怎样", "怎么样", "如何", "咋", "咋样", "怎么着", "咋么", "怎麼", "如何才能", "怎办"},
		askWrong:   {"怎么了", "咋了", "怎么啦", "咋啦"},
		askMatter:  {"怎么回事", "咋回事", "怎么一回事", "怎么回事儿", "什么回事", "啥回事"},
		askHowMuch: {"多少", "几多"},
		askHowLong: {"多久", "多长时间", "多少时间", "多久时间"},
	}
}

// addAlike adds words that are used one for the other.
func (w *chineseRules) addAlike() {
	for _, line := range strings.Fields(`干嘛=干啥 您=你 妳=你 著=着 能够=能 可以=能 可不可以=能不能 能否=能不能 可否=能不能 是否=否
		没有=没 无法=不能 没法=不能 跟=和 与=和 以及=和 需要=要 应该=该 应当=该 位于=在 坐落于=在 比较好=好 什么叫=什么是 什么叫做=什么是 何谓=什么是 何为=什么是
		有卖=卖 怎么念=怎么读 这儿=这里 那儿=那里 一点儿=一点 有点儿=有点 事儿=事 玩儿=玩 帐号=账号 帐户=账户 号码=号 电话号码=电话 截屏=截图 品牌=牌子
		学习=学 购买=买 使用=用 制作=做 查询=查 治疗=治 寻找=找 观看=看 连接=连 丢失=丢 忘记=忘 梦到=梦见 天天=每天 老是=总是 狗狗=狗 猫咪=猫 女孩子=女孩 男孩子=男孩
		跪求=求 急求=求 求求=求 些什么=什么 在淘宝上=淘宝 在淘宝=淘宝 在微信上=微信 在手机上=手机上 在电脑上=电脑上 在家里=家里 不同=区别 差别=区别 差异=区别 不一样=区别 英文=英语
		有多高=多高 有多大=多大 有多长=多长 有多重=多重 有多远=多远 有多深=多深 有多宽=多宽 有多厚=多厚 有多快=多快
		介绍下=介绍 推荐下=推荐 解释下=解释 说明下=说明 分析下=分析 讲解下=讲解 描述下=描述 总结下=总结 翻译下=翻译
		叫什么名字=叫什么 叫啥名字=叫什么 名字叫什么=叫什么 名字叫啥=叫什么 名字是什么=叫什么 叫做什么=叫什么 叫作什么=叫什么 名叫什么=叫什么 的名字叫什么=叫什么 的名字是什么=叫什么
		是一种什么=是什么 是个什么=是什么 是指什么=指什么 指的是什么=指什么 是什么意思=什么意思 区别在哪里=区别有什么 区别在哪=区别有什么 区别在哪儿=区别有什么 区别在于什么=区别有什么
		不同在哪里=区别有什么 不同在哪=区别有什么 不同之处=区别 有没有什么=有什么 有何=有什么 有什么方法=有什么方法 有什么办法=有什么方法 有什么好办法=有什么方法 有什么好方法=有什么方法 用什么方法=有什么方法 用什么办法=有什么方法 什么方法=有什么方法 什么办法=有什么方法 好方法=方法 好办法=方法 办法=方法`) {
		from, to, _ := strings.Cut(line, "=")
		w.add(from, w.classes(to))
	}
	w.add("一下", "")
	for _, verb := range strings.Fields("介绍 推荐 解释 说明 写 翻译 总结 分析 查 找 看 算 想 起 做 讲") {
		w.add("帮我"+verb, verb)
	}
	for _, how := range strings.Fields("合适 适合 快 便宜 安全 有效 好吃 好看 好玩 好用 好听 靠谱 正宗 简单 厉害 多") {
		w.add("比较"+how, how)
	}
	for digit, numeral := range strings.Fields("零 一 二 三 四 五 六 七 八 九") {
		w.add(string(rune('0'+digit)), numeral)
	}
	// 哪 alone is where before a verb, and at the end behind 在.
	for _, verb := range strings.Fields("能 买 卖 找 下 办 玩 修 学 报 查 换 领 可以 有") {
		w.add("在哪"+verb, w.classes("哪里"+verb))
		w.add("哪"+verb, w.classes("哪里"+verb))
	}
}

// addNames adds the ways to ask for a word in English and for one of a kind.
func (w *chineseRules) addNames() {
	for _, how := range strings.Fields("怎么说 怎样说 如何说 咋说 怎么讲 怎么写 怎样写 如何写 怎么翻译 如何翻译 怎么表达 如何表达 是什么") {
		for _, language := range strings.Fields("英语 英文 的英语 的英文 用英语 用英文 英语里 英语中") {
			w.add(language+how, string(askEnglish))
		}
	}
	for kind := range w.kinds {
		for _, ask := range strings.Fields("什么 啥 哪个 哪家 哪种 哪款 哪一个 哪一家 哪些 哪部 哪座 哪所") {
			w.add(ask+kind, string(askWhich)+kind)
		}
	}
	for _, ask := range strings.Fields("什么 啥 哪个 哪种 哪一个") {
		w.add(ask+"品牌", string(askWhich)+"牌子")
	}
}

// frame makes the phrases that stand before or behind a question, as they look when words are replaced.
func (w *chineseRules) frame() {
	for _, p := range []string{
		"谁知道", "有谁知道", "谁能告诉我", "有人知道", "有没有人知道", "大家知道", "你知道", "你们知道", "谁能解释一下", "谁能说一下", "我想了解", "想了解",
		"谁晓得", "谁可以告诉我", "帮我看看", "帮忙看看",
	} {
		w.before = append(w.before, w.replace(characters(p)[0]))
	}
	for _, p := range []string{"谁知道", "有谁知道", "有人知道吗", "有人知道", "有没有人知道", "知道吗", "你知道吗", "大家知道吗", "推荐", "求推荐", "推荐一下", "求解", "求助"} {
		w.behind = append(w.behind, w.replace(characters(p)[0]))
	}
	sortLongest(w.before)
	sortLongest(w.behind)
}

// classes writes the question words of a phrase as their classes.
func (w *chineseRules) classes(phrase string) string {
	return strings.Join(w.replace(characters(phrase)[0]), "")
}

// protect shields the particles in a word from being dropped, and the word from being replaced.
func (w *chineseRules) protect(word string) {
	w.add(word, strings.Map(func(r rune) rune {
		if strings.ContainsRune("吧的了呢都否哩啦会", r) {
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
