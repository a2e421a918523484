package cache

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAskable(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		want bool
	}{
		{"plain en", "How do bridges carry heavy loads?", true},
		{"plain zh", "如何在家里种植番茄？", true},
		{"a year", "Who won the world cup in 1998?", true},
		{"a year's happening", "What year did the war end?", true},
		{"empty", " \n", false},
		{"too long", strings.Repeat("word ", 2000), false},
		{"not UTF-8", "what is \xff", false},
		{"NUL", "what is \x00", false},
		{"now", "What should I eat now?", false},
		{"today", "TODAY'S menu", false},
		{"latest", "the latest iPhone", false},
		{"price", "What's the price of gold?", false},
		{"weather", "weather in Paris", false},
		{"next week", "What happens next week in Rome?", false},
		{"known not to be now", "What do you know about snow?", true},
		{"今天", "今天吃什么好", false},
		{"最新", "最新的手机是哪款", false},
		{"现在", "现在几岁可以领证", false},
		{"现在 in traditional", "現在幾歲可以領證", false},
		{"天气", "北京天气怎么样", false},
		{"多少钱", "苹果多少钱一斤", false},
		{"几点", "银行几点开门", false},
		{"e-mail", "Is jane.doe@example.com valid?", false},
		{"my name", "My name is Jane Doe, write a poem", false},
		{"我叫", "我叫王小明，帮我写自我介绍", false},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, askable(Question{Text: c.text})) })
	}
}

func TestSensitive(t *testing.T) {
	for name, text := range map[string]string{
		"OpenAI key":       "key sk-proj-abcdefghijklmnop1234",
		"AWS key":          "AKIAIOSFODNN7EXAMPLE",
		"Aliyun key":       "用 LTAI5tAbCdEfGhIjKlMn 登录",
		"GitHub token":     "ghp_abcdefghijklmnopqrstuvwx",
		"JWT":              "eyJhbGciOi.eyJzdWIiOi.abc",
		"private key":      "-----BEGIN RSA PRIVATE KEY-----",
		"bearer":           "Authorization: Bearer abcdefgh12345678ijkl",
		"URL with secret":  "postgres://user:hunter2@db/x",
		"password":         "my password is hunter2",
		"密码":               "我的密码是abc123",
		"验证码":              "验证码：482913",
		"e-mail":           "写信给 zhang.san@example.com.cn 吧",
		"CN mobile":        "打13812345678找我",
		"CN mobile spaced": "138 1234 5678",
		"CN landline":      "电话010-88886666",
		"US phone":         "call (415) 555-2671",
		"foreign phone":    "+49 170 1234567",
		"SSN":              "078-05-1120",
		"CN id":            "身份证11010519491231002X",
		"card":             "4111 1111 1111 1111",
		"card unspaced":    "卡5500005555555559号",
		"IBAN":             "DE89 3704 0044 0532 0130 00",
		"passport":         "护照E12345678",
		"hex token":        "d41d8cd98f00b204e9800998ecf8427e",
		"address":          "我住在人民路五号",
	} {
		t.Run(name, func(t *testing.T) { require.True(t, sensitive(text)) })
	}
	for name, text := range map[string]string{
		"numbers":      "Pi is 3.14159265358979 and e is 2.718281828459045; a billion is 1000000000.",
		"date":         "2024-05-01 到 2024-12-31，第 3 届",
		"password ask": "How do I choose a strong password?",
		"密码 ask":       "忘记密码怎么办",
		"long word":    "Donaudampfschifffahrtsgesellschaftskapitaen",
		"rule":         "----------------------------------------",
		"URL":          "see https://example.com/docs/a-page",
		"code":         "for i := range 10 { fmt.Println(i) }",
		"years":        "1914-1918 1939-1945",
	} {
		t.Run(name, func(t *testing.T) { require.False(t, sensitive(text)) })
	}
}

func TestStorable(t *testing.T) {
	q := Question{Text: "How do bridges carry heavy loads?"}
	for name, c := range map[string]struct {
		q      Question
		answer string
		want   bool
	}{
		"answer":          {q, "Through their piers.", true},
		"32 KB":           {q, strings.Repeat("word", maxAnswer/4), true},
		"above 32 KB":     {q, strings.Repeat("word", maxAnswer/4) + ".", false},
		"empty":           {q, " \n", false},
		"no store":        {Question{Text: q.Text, NoStore: true}, "Through their piers.", false},
		"refusal en":      {q, "I'm sorry, but I can't help with that.", false},
		"refusal curly":   {q, "I’m unable to answer.", false},
		"as an AI":        {q, "As an AI language model, I have no opinion.", false},
		"refusal zh":      {q, "很抱歉，我无法回答这个问题。", false},
		"AI zh":           {q, "作为一个AI，我没有看法。", false},
		"sorry far below": {q, strings.Repeat("Bridges are strong. ", 20) + "I'm sorry, said the engineer.", true},
		"phone in answer": {q, "Call 13812345678.", false},
		"secret in turns": {Question{Text: q.Text, Turns: []Turn{{"user", "my password is hunter2"}}}, "Through their piers.", false},
		"NUL":             {q, "a\x00b", false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, storable(c.q, c.answer)) })
	}
}

func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{"4111 1111 1111 1111", "密码是 abc1", "+1 (2) 33-44", "now", "- - 1 -"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q := Question{Text: text}
		if askable(q) {
			require.False(t, sensitive(text))
			require.LessOrEqual(t, len(text), maxQuestion)
		}
		storable(q, text)
	})
}

func BenchmarkStorable(b *testing.B) {
	q, answer := Question{Text: "How do bridges carry heavy loads?"}, strings.Repeat("A bridge carries its load through 12 piers, 桥墩承重。\n", 400)
	for b.Loop() {
		if !storable(q, answer) {
			b.Fatal("refused")
		}
	}
}
