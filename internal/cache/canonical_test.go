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
		"zh punctuation, spaces, width": {"苏州有什么好吃的地方？", "苏州有什么好吃的地方", "苏州 有什么 好吃的地方?", "　苏州有什么好吃的地方！！"},
		"zh polite words":               {"怎么办理护照", "请问怎么办理护照？", "你好，请问怎么办理护照呢", "怎么办理护照啊？谢谢！", "麻烦问一下，怎么办理护照"},
		"zh question words":             {"怎么办理护照", "怎样办理护照", "如何办理护照", "咋办理护照"},
		"zh traditional":                {"為什麼電腦這麼慢？", "为什么电脑这么慢"},
		"zh question word moved":        {"苏州有什么好吃的地方", "苏州好吃的地方有什么", "苏州有哪些好吃的地方"},
		"zh who is":                     {"谁是电话的发明者", "电话的发明者是谁"},
		"zh why moved":                  {"为什么天空是蓝色的", "天空为什么是蓝色的"},
		"zh yes or no":                  {"这款手机防水吗？", "这款手机防水么", "这款手机防水嘛"},
		"zh polite you":                 {"您推荐哪款相机", "你推荐哪款相机"},
		"zh Latin width and case":       {"ＧＰＴ－４和ｃｌａｕｄｅ哪个好", "gpt-4和Claude哪个好", "GPT 4 和 claude 哪个好"},
		"en case, punctuation, spaces":  {"How do bridges carry heavy loads?", "how do bridges carry heavy loads", "HOW  DO BRIDGES, carry heavy loads ?!"},
		"en polite words":               {"How do bridges carry loads?", "Hi, how do bridges carry loads?", "Could you please tell me how do bridges carry loads? Thanks!", "How do bridges carry loads please"},
		"en contractions":               {"What is the capital of France?", "What's the capital of France?", "what’s the capital of France", "whats the capital of france"},
		"en negation":                   {"Why doesn't ice sink?", "why does not ice sink", "Why doesnt ice sink"},
		"en how to":                     {"How can I become a nurse?", "How do you become a nurse?", "how to become a nurse", "How does one become a nurse?"},
		"en articles and number":        {"Is the sky a mirror?", "is sky a mirror"},
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
		_ = blockedBy(form, canonical(strings.Repeat(text, 2)))
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
