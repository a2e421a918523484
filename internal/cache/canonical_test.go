package cache

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// What is asked the same way for a machine and for a person.
func TestCanonicalForgetsWhatDoesNotMatter(t *testing.T) {
	for name, variants := range map[string][]string{
		"zh place, then verb":           {"网上怎么买票", "怎么网上买票", "如何网上买票"},
		"zh shop":                       {"怎么在淘宝上开店", "淘宝怎么开店", "在淘宝怎么开店"},
		"zh negated, then verb":         {"不孕不育怎么治", "怎么治疗不孕不育"},
		"zh how to, 了 in between":       {"牙疼了怎么办", "牙疼怎么办"},
		"zh punctuation, spaces, width": {"苏州有什么好吃的地方？", "苏州有什么好吃的地方", "苏州 有什么 好吃的地方?", "　苏州有什么好吃的地方！！"},
		"zh polite words":               {"怎么办理护照", "请问怎么办理护照？", "你好，请问怎么办理护照呢", "怎么办理护照啊？谢谢！", "麻烦问一下，怎么办理护照", "怎么办理护照，谢谢吧"},
		"zh question words":             {"怎么办理护照", "怎样办理护照", "如何办理护照", "咋办理护照"},
		"zh traditional":                {"為什麼電腦這麼慢？", "为什么电脑这么慢"},
		"zh question word moved":        {"苏州有什么好吃的地方", "苏州好吃的地方有什么", "苏州有哪些好吃的地方"},
		"zh who is":                     {"谁是电话的发明者", "电话的发明者是谁"},
		"zh why moved":                  {"为什么天空是蓝色的", "天空为什么是蓝色的"},
		"zh what it means":              {"秋高气爽是什么意思", "秋高气爽什么意思", "秋高气爽的意思是什么", "秋高气爽的意思", "秋高气爽是啥意思"},
		"zh how to turns":               {"怎么做红烧肉", "红烧肉怎么做", "红烧肉的做法", "红烧肉的做法是什么"},
		"zh how in order":               {"网上怎么买火车票", "怎么网上买火车票", "如何网上买火车票"},
		"zh how should":                 {"牙疼怎么办", "牙疼该怎么办", "牙疼应该怎么办", "牙疼了咋办呀", "牙疼到底怎么办"},
		"zh how can":                    {"怎么减肥", "怎样才能减肥", "有什么办法可以减肥", "减肥的方法有哪些", "减肥有什么好方法"},
		"zh where":                      {"黄山在哪里", "黄山在哪儿", "黄山在哪", "黄山位于哪里", "黄山在什么地方", "黄山是哪里", "哪里是黄山"},
		"zh where turns":                {"哪里有卖篮球鞋", "篮球鞋哪里有卖", "哪里卖篮球鞋", "在哪里卖篮球鞋"},
		"zh when":                       {"中秋节是什么时候", "什么时候是中秋节", "中秋节是啥时候"},
		"zh how much":                   {"中国有多少人口", "中国人口有多少"},
		"zh how tall":                   {"姚明有多高", "姚明多高"},
		"zh A-not-A":                    {"孕妇能吃螃蟹吗", "孕妇可以吃螃蟹吗", "孕妇能不能吃螃蟹", "孕妇可不可以吃螃蟹", "孕妇是否可以吃螃蟹", "孕妇能否吃螃蟹", "孕妇能吃螃蟹不"},
		"zh two-letter A-not-A":         {"你喜欢我吗", "你喜不喜欢我", "你喜欢不喜欢我"},
		"zh have or not":                {"你有女朋友吗", "你有没有女朋友", "你有女朋友么"},
		"zh difference":                 {"微信和QQ有什么区别", "微信和QQ的区别", "QQ与微信有何不同", "微信跟qq的区别是什么", "微信和qq的区别在哪里"},
		"zh benefit":                    {"喝牛奶有什么好处", "喝牛奶的好处", "喝牛奶的好处有哪些", "喝牛奶有哪些好处", "喝牛奶的好处是什么"},
		"zh in English":                 {"谢谢用英语怎么说", "用英语怎么说谢谢", "谢谢的英文怎么写", "谢谢英语怎么讲"},
		"zh who knows":                  {"故宫怎么去", "谁知道怎么去故宫", "有人知道故宫怎么去吗", "你知道怎么去故宫吗", "故宫怎么去，求解"},
		"zh name":                       {"这首歌叫什么名字", "这首歌叫什么", "这首歌的名字叫什么", "这首歌名字是什么"},
		"zh which kind":                 {"哪个牌子的电动车好", "电动车哪个牌子好", "电动车什么品牌好", "电动车哪个牌子比较好"},
		"zh from to":                    {"从北京到上海要多久", "北京到上海要多长时间", "北京到上海需要多久"},
		"zh digit":                      {"1斤等于多少克", "一斤等于多少克"},
		"zh without":                    {"手机没信号怎么办", "手机没有信号怎么办"},
		"zh yes or no":                  {"这款手机防水吗？", "这款手机防水么", "这款手机防水嘛"},
		"zh polite you":                 {"您推荐哪款相机", "你推荐哪款相机"},
		"zh Latin width and case":       {"ＧＰＴ－４和ｃｌａｕｄｅ哪个好", "gpt-4和Claude哪个好", "GPT 4 和 claude 哪个好"},
		"en case, punctuation, spaces":  {"How do bridges carry heavy loads?", "how do bridges carry heavy loads", "HOW  DO BRIDGES, carry heavy loads ?!"},
		"en polite words":               {"How do bridges carry loads?", "Hi, how do bridges carry loads?", "Could you please tell me how do bridges carry loads? Thanks!", "How do bridges carry loads please"},
		"en contractions":               {"What is the capital of France?", "What's the capital of France?", "what’s the capital of France", "whats the capital of france"},
		"en negation":                   {"Why doesn't ice sink?", "why does not ice sink", "Why doesnt ice sink"},
		"en how to":                     {"How can I become a nurse?", "How do you become a nurse?", "how to become a nurse", "How does one become a nurse?"},
		"en articles and number":        {"Is the sky a mirror?", "is sky a mirror"},
		"en own":                        {"How can I improve my English?", "How do you improve your English?", "How to improve English"},
		"en plural":                     {"What are the best ways to learn Python?", "What is the best way to learn Python?"},
		"en meaning":                    {"What does carpe diem mean?", "What is the meaning of carpe diem?", "What do you mean by carpe diem?"},
		"en difference":                 {"What's the difference between TCP and UDP?", "What are the differences between UDP and TCP?"},
		"en country name":               {"How do I move to the US?", "How can I move to the United States?", "how to move to the U.S."},
		"en spelling":                   {"What is your favourite colour?", "What's your favorite color?"},
		"en emphasis":                   {"Is that lizard really up on the bed?", "Is that lizard up on the bed?"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range variants[1:] {
				require.Equal(t, canonical(variants[0]).key(), canonical(v).key(), v)
			}
		})
	}
}

// Each pair looks alike and asks something else.
func TestCanonicalKeepsWhatMatters(t *testing.T) {
	for name, pair := range map[string][2]string{
		"en passive":               {"Did Anna call the office?", "Was Anna called by the office?"},
		"en by":                    {"Is Michelle trusted by Anna?", "Is Michelle trusted Anna?"},
		"en roles":                 {"Is Isabella raising Mark?", "Is Mark raising Isabella?"},
		"en negation":              {"Is it ok to smoke in Kenya?", "Is it ok not to smoke in Kenya?"},
		"en polarity":              {"How do I turn on dark mode?", "How do I turn off dark mode?"},
		"en number":                {"What is 2+2?", "What is 2+3?"},
		"en decimal":               {"Convert 3.5 miles", "Convert 35 miles"},
		"en minus":                 {"Is -5 a number", "Is 5 a number"},
		"en power":                 {"How much is 10²", "How much is 102"},
		"en sign":                  {"Is C# fast", "Is C fast"},
		"en plus":                  {"Is C++ fast", "Is C fast"},
		"en tense":                 {"Who was the president of France?", "Who is the president of France?"},
		"en letter":                {"What is vitamin A?", "What is vitamin?"},
		"en country":               {"How do I move to the US?", "How do I move to us?"},
		"en asked-about thanks":    {"How do I say thanks", "How do I say"},
		"en asked-about please":    {"How do I say please", "How do I say"},
		"en entity":                {"What does --max-cost do", "What does --max-heads do"},
		"en pronoun":               {"Would he reject her?", "Would she reject him?"},
		"en whose":                 {"How do I reset my password?", "How do I reset your password?"},
		"en who to whom":           {"How can I love you?", "How can you love me?"},
		"en no plural":             {"What is the news?", "What is new?"},
		"en compared with another": {"What is the difference between TCP and UDP?", "What is the difference between TCP and IP?"},
		"zh how, who to whom":      {"他怎么打", "怎么打他"},
		"zh how, roles":            {"狗怎么咬人", "人怎么咬狗"},
		"zh how, direction":        {"北京到上海怎么走", "上海到北京怎么走"},
		"zh how, tool":             {"怎么用电脑给手机充电", "怎么用手机给电脑充电"},
		"zh who, whom":             {"谁喜欢我", "我喜欢谁"},
		"zh what subject, object":  {"什么水果有营养", "水果有什么营养"},
		"zh what modifies":         {"女生喜欢什么样的男生", "男生喜欢什么样的女生"},
		"zh made of":               {"苹果是什么做的", "苹果是什么"},
		"zh of a letter":           {"秋高气爽的秋是什么意思", "秋高气爽是什么意思"},
		"zh tells, asks":           {"你喜欢我", "你喜欢我吗"},
		"zh where am I":            {"现在哪里好玩", "在哪里好玩的现"},
		"zh with, without":         {"有钱怎么办", "没钱怎么办"},
		"zh way, method's effect":  {"减肥的方法有什么好处", "怎么减肥"},
		"zh polarity":              {"怎么开通会员", "怎么关闭会员"},
		"zh negation":              {"孕妇可以吃螃蟹吗", "孕妇不可以吃螃蟹吗"},
		"zh number":                {"第1部讲了什么", "第2部讲了什么"},
		"zh numeral":               {"速度与激情二讲了什么", "速度与激情讲了什么"},
		"zh entity":                {"介绍下大西洋", "介绍下太平洋"},
		"zh direction":             {"北京到天津怎么走", "天津到北京怎么走"},
		"zh yes or no":             {"这款手机防水", "这款手机防水吗"},
		"zh inversion":             {"X是什么的首都", "X首都是什么"},
		"zh what has":              {"苹果有什么", "什么有苹果"},
		"zh who does":              {"狗吃什么", "什么狗吃"},
		"zh whose":                 {"谁的爸爸", "谁爸爸"},
		"zh how is, how to":        {"拔火罐怎么样", "怎么样拔火罐"},
		"zh bar":                   {"附近有酒吧", "附近有酒"},
		"zh leave":                 {"请假条怎么写", "假条怎么写"},
		"zh asked-about thanks":    {"英语怎么说谢谢", "英语怎么说"},
		"zh pronoun":               {"我怎么联系你", "你怎么联系我"},
		"zh minus":                 {"温度-5度穿什么", "温度5度穿什么"},
		"zh when, where":           {"会议什么时候开", "会议在哪里开"},
		"zh before, after":         {"饭前吃药好吗", "饭后吃药好吗"},
		"zh trailing how":          {"富士康怎么样", "富士康怎么了"},
		"zh verb, verb":            {"怀孕怎么避孕", "避孕怎么怀孕"},
		"zh when, verb, verb":      {"怀孕什么时候做B超", "做B超什么时候怀孕"},
		"zh how, verb, verb":       {"学英语怎么看电影", "看电影怎么学英语"},
		"zh verb twice":            {"微信转支付宝怎么转", "支付宝转微信怎么转"},
		"zh called, barks":         {"狗怎么叫", "怎么叫狗"},
		"zh hardly, why not":       {"孩子没怎么吃饭", "孩子怎么没吃饭"},
		"zh not very":              {"电影不怎么好看", "电影怎么不好看"},
		"zh needn't":               {"不用怎么学英语", "怎么不用学英语"},
		"zh whose why":             {"他为什么说你走", "他说你为什么走"},
		"zh what is taught":        {"教我怎么做饭", "怎么教我做饭"},
		"zh what is forgotten":     {"忘记怎么登录", "怎么忘记登录"},
		"zh what it's made of":     {"豆腐是什么做的", "豆腐做的是什么"},
		"zh what kind":             {"鲸鱼是什么动物", "什么是鲸鱼动物"},
		"zh universities of":       {"北京的大学有哪些", "北京大学有哪些"},
		"zh banks of":              {"中国的银行有哪些", "中国银行有哪些"},
		"zh did, does":             {"你吃了什么", "你吃什么"},
		"zh went, goes":            {"他去了哪里", "他去哪里"},
		"zh has left":              {"他什么时候走了", "他什么时候走"},
		"zh is dark by now":        {"外头天黑了吗", "外头天黑吗"},
		"zh didn't, doesn't":       {"他去没去北京", "他去不去北京"},
		"zh everybody":             {"谁都喜欢什么颜色", "谁喜欢什么颜色"},
		"zh none, not all":         {"都不是什么动物", "不都是什么动物"},
		"zh say no":                {"怎么学会说不", "怎么学会说"},
		"zh is it not":             {"是不是不是真的", "是不是真的"},
		"zh no more":               {"手机里的照片没有了", "手机里的照片没有"},
		"zh deny":                  {"他否认犯罪吗", "他认犯罪吗"},
		"zh can one not":           {"怎么能不睡觉", "怎么不睡觉"},
		"zh no, may I":             {"不，可以吃吗", "不可以吃吗"},
		"zh name with a particle":  {"哔哩哔哩是什么", "哔哔是什么"},
		"zh student union":         {"学生都会什么", "学生会什么"},
		"zh asked-about courtesy":  {"请你吃饭用英语怎么说", "吃饭用英语怎么说"},
		"zh asked-about truth":     {"告诉我真相用英语怎么说", "真相用英语怎么说"},
		"zh character":             {"發字怎么写", "髮字怎么写"},
		"zh one o'clock":           {"怎么快一点", "怎么快1点"},
		"zh afternoon":             {"睡一下午怎么办", "睡午怎么办"},
		"en matter":                {"What is the matter?", "What is matter?"},
		"en a few":                 {"Do you have a few friends?", "Do you have few friends?"},
		"en AIDS":                  {"What causes AIDS?", "What causes aid?"},
		"en people's how":          {"How do people die?", "How can I die?"},
		"en where one lives":       {"Where do you live in Paris?", "Where should I live in Paris?"},
		"en not really":            {"Is it not really dangerous?", "Is it not dangerous?"},
		"words run together":       {"a bc", "ab c"},
		"nothing but punctuation?": {"??", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, canonical(pair[0]).key(), canonical(pair[1]).key())
		})
	}
}

func TestLanguage(t *testing.T) {
	for text, want := range map[string]string{
		"hello": langEnglish, "¿qué?": langEnglish, "123": langEnglish, "": langEnglish,
		"你好": langChinese, "用 Go 写": langChinese, "こんにちは世界": langOther, "안녕": langOther, "привет": langOther, "Привет 你好": langChinese,
	} {
		require.Equal(t, want, canonical(text).lang, text)
	}
}

func TestSingleWords(t *testing.T) {
	for text, want := range map[string]bool{
		"hi": true, "Hello!": true, "the cat": true, "天气": true, "": true, "???": true, "python": true,
		"black cat": false, "你是谁": false, "怎么办": false, "how": true,
	} {
		require.Equal(t, want, canonical(text).single(), text)
	}
}

func TestSimplify(t *testing.T) {
	require.Equal(t, "为什么电脑这么慢，里面干净吗 abc 😀", simplify("為什麼電腦這麼慢，裡面乾淨嗎 abc 😀"))
	runes := []rune(simplifiedPairs)
	require.Zero(t, len(runes)%2)
	require.Greater(t, len(simplifiedOf()), 3000)
}

// Case, width, punctuation and spaces between words never change the key.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{"请问，这款手机防水吗？谢谢！", "What's the capital of France, please?", "10² ½ x-5 C++ 3,000", "爲什麼是你呢", "￥５～６", "é ﬁ Ǆ ͅ", "的了呢"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		form := canonical(text)
		require.Equal(t, form.key(), canonical("  "+text+"\n").key(), "space around")
		if ascii(text) {
			require.Equal(t, form.key(), canonical(strings.ToUpper(text)).key(), "case")
			require.Equal(t, form.key(), canonical(wide(text)).key(), "width")
		}
		for _, token := range form.tokens {
			require.NotEmpty(t, token)
			require.True(t, utf8.ValidString(token))
			require.NotContains(t, token, " ")
		}
		_ = blockedBy(labelledGates(), form, canonical(strings.Repeat(text, 2)))
	})
}

func ascii(text string) bool {
	for _, r := range text {
		if r < ' ' || r > '~' {
			return false
		}
	}
	return true
}

// wide writes ASCII in full width.
func wide(text string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r <= '~' {
			return r + 0xFEE0
		}
		return r
	}, text)
}

func BenchmarkCanonical(b *testing.B) {
	for name, text := range map[string]string{"zh": "请问苏州有什么好吃的地方推荐吗，谢谢", "en": "Could you tell me what's the best way to get from Paris to Rome?"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				canonical(text)
			}
		})
	}
}
