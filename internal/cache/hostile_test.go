package cache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Personal data and secrets, as people write them when they don't think of it, or do.
func TestNothingPersonalIsKept(t *testing.T) {
	for kind, texts := range map[string][]string{
		"mobile": {
			"13812345678", "+86 138 1234 5678", "8613812345678", "86-138-1234-5678", "138-1234-5678", "138.1234.5678", "1 3 8 1 2 3 4 5 6 7 8",
			"１３８１２３４５６７８", "一三八一二三四五六七八", "幺三八一二三四五六七八", "打138 1234 5678给我", "tel:13812345678",
			"138\u200b1234\u200b5678", "1️⃣3️⃣8️⃣1️⃣2️⃣3️⃣4️⃣5️⃣6️⃣7️⃣8️⃣", "①③⑧①②③④⑤⑥⑦⑧", "138·1234·5678", "138/1234/5678", "一三八 一二三四 五六七八", "壹叁捌壹贰叁肆伍陆柒捌",
		},
		"phone":    {"(415) 555-2671", "415-555-2671", "415.555.2671", "+1 415 555 2671", "+442079460958", "+44 20 7946 0958", "010-88886666", "0755 26001234", "0571 8888 6666", "07700 900123", "07700900123"},
		"identity": {"11010519491231002X", "11010519491231002x", "110105194912310021", "110105 19491231 0021", "110105-19491231-0021", "１１０１０５１９４９１２３１００２Ｘ", "110105491231002"},
		"card": {
			"4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "卡号４１１１１１１１１１１１１１１１", "378282246310005", "6222 0212 3456 7890 128",
			"四一一一一一一一一一一一一一一一",
		},
		"IBAN":     {"DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19"},
		"passport": {"E12345678", "G12345678", "my passport number is X1234567", "护照号是P1234567", "passport 533401234", "driver's license D1234567"},
		"account":  {"QQ123456789", "qq号是123456789", "微信号wang88", "微信wang_88", "京A12345", "沪A·D1234 ", "银行卡尾号1234", "身份证后四位1234", "zhangsan艾特qq点com", "jane.doe@gmail"},
		"SSN":      {"078-05-1120", "my ssn is 078051120", "My SSN: 078 05 1120"},
		"e-mail": {
			"jane.doe@example.com", "JANE+news@mail.example.co.uk", "jane＠example.com", "jane(at)example.com", "jane [at] example [dot] com", "jane at example dot com",
			"张三@例子.公司", "邮箱zhang_san@qq.com谢谢",
		},
		"address": {"I live at 221B Baker Street", "1600 Pennsylvania Avenue, Apt 4", "我家住在人民路88号", "我家在文三路88号", "I live on 12 Oak Street", "my address: 12 Oak Street", "家住幸福小区", "人民路88号3单元502室", "my home address is in Leeds"},
		"name":    {"My name is Jane Doe", "my full name is J. Doe", "我叫王小明", "我的名字是王小明", "我姓王", "Call me at the office", "我的微信号是wang88"},
		"birth":   {"my date of birth is 1 May", "I was born on May 1", "我的生日是五月一号"},
		"password": {
			"my password is hunter2", "password: hunter!", "pwd=abcdef", "密码是abc123", "密码123456", "密码：qwertyui", "验证码482913", "您的验证码是 4829", "口令=opensesame",
			"PASSWORD=“hunter22”", "my PIN is 4821",
			"my password's hunter2", "pw: hunter22", "wifi pass is abc12345", "password hunter2", "password, hunter2", "the password of the server is tr0ub4dor", "user=root password=root",
			"密码改成abc123", "支付宝密码abc123", "otp 483920", "CVV is 123", "your code 483920", "验证码 482 913", "mysql -u root -proot", "curl -u admin:hunter2 http://x",
			"seed phrase: witness collapse practice feed shame open despair creek road", "sessionid=abc123def",
		},
		"key": {
			"sk-proj-abcdefghijklmnop1234", "sk-ant-api03-abcdefghijklmnop", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "LTAI5tAbCdEfGhIjKlMn",
			"ghp_abcdefghijklmnopqrstuvwx", "github_pat_11ABCDEFG0abcdefghij", "glpat-abcdefghijklmnopqrst", "xoxb-1234567890-abcdefghij", "hf_abcdefghijklmnopqrst",
			"AIzaSyA1234567890abcdefghijklmnop", "ya29.a0AfH6SMBabcdefghij", "eyJhbGciOi.eyJzdWIiOi.abc", "-----BEGIN OPENSSH PRIVATE KEY-----",
			"Authorization: Bearer abcdefgh12345678ijkl", "Authorization: Basic dXNlcjpwYXNz", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "postgres://user:hunter2@db/x",
			"d41d8cd98f00b204e9800998ecf8427e", "api_key = abcdef", "token: 9f86d081884c7d65",
		},
	} {
		t.Run(kind, func(t *testing.T) {
			for _, s := range texts {
				for _, around := range []string{"%s", "What about %s, is that right?", "请问%s，对吗", "“%s”"} {
					require.True(t, sensitive(fmt.Sprintf(around, s)), around, s)
				}
				q := Question{Text: "How do bridges carry heavy loads?"}
				require.False(t, storable(q, "Write to "+s+" then."), s)
				require.False(t, askable(Question{Text: s}), s)
			}
		})
	}
}

// Questions about such things are kept.
func TestPlainQuestionsAreKept(t *testing.T) {
	for _, text := range []string{
		"How do I choose a strong password?", "What is my password used for?", "I can't remember what my password is", "My address is incorrect on my file.",
		"How do I reset my PIN?", "What does an API key do?", "What is a bearer token?", "How does SSH work?", "How do I change my phone number?",
		"忘记密码怎么办", "密码是什么", "怎么设置wifi密码", "客服电话号码是多少", "我的微信号是什么", "我叫什么名字好听", "身份证号码是多少位", "手机号是几位", "验证码收不到怎么办",
		"Pi is 3.14159265358979, isn't it?", "How far is 149600000 km?", "What happened 1914-1918?", "from 2024-05-01 to 2024-12-31", "圆周率是3.14159265358979吗",
		"Is 1,234,567,890 a prime?", "What is 192.168.0.1?", "What is ISBN 978-3-16?", "how to meet at the station", "look at example.com", "https://example.com/docs/a-page?x=1",
		"How do magnets work?", "一二三四五六怎么写", "一千二百三十四是多少", "中山路在哪里", "What's at Baker Street?",
		"What is direct current?", "How much is 5 plus 3?", "How much does the earth weigh?", "Is Michael Price a friend?", "How do I open a current account?",
		"他出现在哪部电影里", "现在完成时怎么用", "今日头条怎么注册", "新闻学专业怎么样", "什么是实时操作系统", "种番茄要几个月", "地铁几号线到机场", "Do you know snow?",
		"离北京最近的海是哪个", "车票可以提前几天买", "后天性免疫是什么", "什么是多少元素", "为什么会下雨", "微信8怎么升级", "微信Android版怎么装", "密码要几位数字", "wifi密码忘记了怎么办",
		"How many characters should a password have?", "Is a password of 8 letters safe?", "What is a seed phrase?", "How do I pass 2 exams?", "What does code 404 mean?", "QQ怎么注册", "京A是哪里的车牌",
		"How many dollars did he pay?", "What does curl do?", "How do I work at Yahoo?", "12345678 in words", "0.1234567890 as a fraction", "1 234 567 890 in words",
	} {
		require.True(t, askable(Question{Text: text}), text)
		require.False(t, sensitive(text), text)
	}
}

// Questions whose answer is another one tomorrow.
func TestNothingTimelyIsKept(t *testing.T) {
	for _, text := range []string{
		"What time is it now?", "what should I wear TODAY", "ｔｏｄａｙ's menu", "what's on tonight", "who won yesterday", "the latest iPhone", "newest  phones", "current president of France",
		"Who is currently the CEO?", "recent films", "What happened last night?", "what's new this week", "Is it still raining?", "Do they still sell it?", "how much does it cost to fly to Rome",
		"how much do eggs cost", "price of gold", "What's the price?", "bitcoin price", "weather in Paris", "EUR exchange rate", "any news?", "3 days ago", "as of right now",
		"What day is it?", "things to do nowadays", "at the moment", "next year's calendar", "lately", "upcoming concerts",
		"今天星期几", "今儿吃啥", "明天会下雨吗", "昨晚谁赢了", "最新的手机", "最近有什么电影", "现在几点了", "现在的总统是谁", "目前最火的歌", "如今房价怎么样", "刚刚发生了什么", "这几天吃什么好",
		"本周有什么比赛", "下个月放假吗", "上礼拜的比赛", "去年冠军是谁", "北京天气怎么样", "苹果多少钱一斤", "黄金价格", "今日股价", "美元汇率", "三天前的新闻", "當前版本是多少", "現在幾歲可以領證", "這幾年流行什麼",
		"中秋节是几号", "附近的油价", "今  天 吃 什 么",
		"what is 5 usd in eur", "how many dollars is a bitcoin", "what year is it", "how long until Christmas", "who won last Sunday", "who is the reigning champion", "what day of the week is it",
		"本届奥运会在哪", "这届世界杯谁赢了", "离过年还有几天", "外面下雨吗", "正在上映的电影", "双色球开奖号码", "一美元是多少人民币", "iPhone什么价", "新款手机有哪些", "他还活着吗", "時下最火的歌",
	} {
		require.False(t, askable(Question{Text: text}), text)
	}
}

// Answers that are none.
func TestNoRefusalIsKept(t *testing.T) {
	q := Question{Text: "How do bridges carry heavy loads?"}
	for _, answer := range []string{
		"I'm sorry, but I can't help with that.", "I’m sorry, I cannot assist.", "Sorry, I can't do that.", "I cannot provide that.", "I can't assist with that request.",
		"Unfortunately, I can't help with this.", "I am unable to answer.", "I won't do that.", "I must decline.", "As an AI language model, I have no opinion.", "As an AI, I do not know.",
		"I'm afraid I can't do that.", "I don't have access to real-time data.", "I do not have information on that.", "I apologize, but no.", "Sure! Well, I'm sorry, I can't.",
		"很抱歉，我无法回答这个问题。", "抱歉，我不能协助。", "对不起，我不知道。", "作为一个AI语言模型，我没有看法。", "作为人工智能助手，我不能。", "我无法提供相关信息。", "無法回答您的問題", "您好，我不能回答这个问题。",
		"I'd rather not answer that.", "I must respectfully decline.", "That's not something I can help with.", "I’m not comfortable with that.", "I have no information about that.",
		"Could you please clarify your question?", "An error occurred.", "Please try again later.", "Sorry.", "This content may violate our usage policies.", "I couldn't find anything.",
		"根据相关法律法规，不予显示", "我只是一个AI", "请提供更多信息", "我们换个话题吧", "系统繁忙，请稍后再试", "没有找到相关内容", "我不太清楚", "暂不支持该功能", "我无权回答",
		"恕我无法回答。", "我没有办法回答。", "这超出了我的能力范围",
	} {
		require.False(t, storable(q, answer), answer)
	}
	for _, answer := range []string{
		"Through their piers.", "Bridges can't carry everything.", "You cannot see it.", "By tension and compression, which I find elegant.", "通过桥墩传递荷载。", "不能超过限重。", "这个词的用法如下。", "No.", "不能。",
		"A 500 Internal Server Error means that the server failed in a way it doesn't explain; try again, then read its log.", "保存期限由合同约定；法律法规另有规定的从其规定，具体请按照合同的条款执行，合同没有约定的，应当保存至少五年，自合同终止之日起计算，期满后方可销毁。",
		strings.Repeat("Bridges are strong. ", 20) + "I'm sorry, said the engineer.",
	} {
		require.True(t, storable(q, answer), answer)
	}
}

// Of the sampled questions few are refused: what a filter takes too much is never answered in an outage.
func TestFewQuestionsAreRefused(t *testing.T) {
	refused, all := map[string]int{}, map[string]int{}
	for _, p := range pairs(t) {
		for _, text := range []string{p.A, p.B} {
			all[p.Set]++
			if !askable(Question{Text: text}) {
				refused[p.Set]++
			}
		}
	}
	for set, n := range all {
		t.Logf("%s: %d of %d", set, refused[set], n)
		require.Less(t, float64(refused[set])/float64(n), 0.04, set)
	}
}
