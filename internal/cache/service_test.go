package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// sharedBuiltin is read once for all tests: that takes a while under -race.
var sharedBuiltin = sync.OnceValue(NewBuiltin)

func newCache(s Settings) *Cache {
	return New(s, NewMemory(s.MaxEntries), sharedBuiltin(), slog.New(slog.DiscardHandler))
}

func store(t testing.TB, c *Cache, q Question) {
	t.Helper()
	require.NoError(t, c.Store(context.Background(), q, "answer to "+q.Text))
}

// rule says by which rule a question is answered, "" for a miss.
func rule(t testing.TB, c *Cache, q Question) string {
	t.Helper()
	hit, found, err := c.Lookup(context.Background(), q)
	require.NoError(t, err)
	require.Equal(t, found, hit.Rule != "")
	return hit.Rule
}

func text(s string) Question { return Question{Tenant: "t", Text: s} }

func TestLookup(t *testing.T) {
	history := []Turn{{"user", "Who built the bridge?"}, {"assistant", "Roman engineers."}}
	long := append(history, Turn{"user", "And who paid?"}, Turn{"assistant", "The senate."})
	with := func(q string, turns []Turn) Question { return Question{Tenant: "t", Text: q, Turns: turns} }
	for _, c := range []struct {
		name          string
		stored, asked Question
		want          string
	}{
		{"the same", text("How do bridges carry heavy loads?"), text("How do bridges carry heavy loads?"), ruleExact},
		{"space around", text("How do bridges carry heavy loads?"), text(" How do bridges carry heavy loads?\r\n"), ruleExact},
		{"a variant", text("How do bridges carry heavy loads?"), text("how do bridges carry heavy loads"), ruleCanonical},
		{"zh variant", text("如何在家里种植番茄？"), text("請問怎樣在家裡種植番茄"), ruleCanonical},
		{"zh similar", text("怎么在网上选车牌号？"), text("网上怎么选车牌号"), ruleSimilar},
		{"another question", text("How do bridges carry heavy loads?"), text("How do cranes carry heavy loads?"), ""},
		{"one word", text("python"), text("python"), ruleExact},
		{"one word in another case", text("python"), text("Python"), ""},
		{"code", text("what does `Foo()` do in go"), text("what does `foo()` do in go"), ""},
		{"arithmetic", text("12 * 3 = ?"), text("12 * 3 = ?"), ruleExact},
		{"time", text("what is the latest iPhone"), text("what is the latest iPhone"), ""},
		{"turns", with("Why did they?", history), with("why did they", history), ruleCanonical},
		{"other turns", with("Why did they?", history), with("Why did they?", long[:1]), ""},
		{"no turns", with("Why did they build there?", history), text("Why did they build there?"), ""},
		{"turns in another order", with("Why?", []Turn{history[1], history[0]}), with("Why?", history), ""},
		{"turns' polite words", with("Why there?", history), with("Why there?", []Turn{{"user", "who built the bridge"}, history[1]}), ruleCanonical},
		{"code in the turns", with("Why there?", []Turn{{"user", "what does ls -l do"}}), with("Why there?", []Turn{{"user", "what does ls -L do"}}), ""},
		{"one word in the turns", with("Why there?", []Turn{{"user", "??"}}), with("Why there?", []Turn{{"user", "!!"}}), ""},
		{"another answer in the turns", with("Why there?", history), with("Why there?", []Turn{history[0], {"assistant", "roman engineers."}}), ""},
		{"long history", with("Why there?", long), with("Why there?", long), ruleExact},
		{"long history, a variant", with("Why there?", long), with("why there", long), ""},
		{"zh beyond itself, similar", text("这个怎么在网上选车牌号？"), text("这个网上怎么选车牌号"), ""},
		{"zh with turns, similar", with("怎么在网上选车牌号？", history), with("网上怎么选车牌号", history), ""},
		{"no-cache", text("How do bridges carry loads?"), Question{Tenant: "t", Text: "How do bridges carry loads?", NoCache: true}, ""},
		{"no-store", Question{Tenant: "t", Text: "How do bridges carry loads?", NoStore: true}, text("How do bridges carry loads?"), ""},
		{"stored despite no-cache", Question{Tenant: "t", Text: "How do bridges carry loads?", NoCache: true}, text("How do bridges carry loads?"), ruleExact},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := newCache(Settings{})
			store(t, cache, c.stored)
			require.Equal(t, c.want, rule(t, cache, c.asked))
		})
	}
}

// Known ways in which semantic caches were wrong: none is served, not even where similar questions are accepted.
func TestFailureCatalogue(t *testing.T) {
	for name, pair := range map[string][2]string{
		"en polarity":       {"turn on dark mode in the settings app", "turn off dark mode in the settings app"},
		"en entity":         {"tell me about the Atlantic ocean", "tell me about the Pacific ocean"},
		"en option":         {"what does the option --max-cost mean", "what does the option --max-heads mean"},
		"en number":         {"what is 17 times 24 in decimal", "what is 17 times 25 in decimal"},
		"en negation":       {"is it safe to swim in a lake", "is it not safe to swim in a lake"},
		"en inserted not":   {"which fish can you eat raw", "which fish can you not eat raw"},
		"en order":          {"can dogs chase cats in a park", "can cats chase dogs in a park"},
		"en time":           {"is it ok to eat before a swim", "is it ok to eat after a swim"},
		"en person":         {"how old is David Smith the actor", "how old is Isabella Sanders the actor"},
		"en closing a card": {"how to cancel my card", "how to cancel my investment account"},
		"en unrelated":      {"how do bridges carry heavy loads", "which cheese melts best on pizza"},
		"en namespace":      {"tenant a: how do bridges work", "tenant b: how do bridges work"},
		"en long, one word": {strings.Repeat("bridges carry loads and cars and trucks ", 12) + "safely", strings.Repeat("bridges carry loads and cars and trucks ", 12) + "badly"},
		"zh polarity":       {"怎么开通花呗的自动还款功能", "怎么关闭花呗的自动还款功能"},
		"zh entity":         {"介绍下大西洋", "介绍下太平洋"},
		"zh place":          {"苏州有什么好吃的地方", "杭州有什么好吃的地方"},
		"zh number":         {"第12届奥运会在哪里举行的", "第13届奥运会在哪里举行的"},
		"zh numeral":        {"速度与激情第二部讲了什么故事", "速度与激情第三部讲了什么故事"},
		"zh bare numeral":   {"速度与激情二讲了什么故事", "速度与激情讲了什么故事"},
		"zh negation":       {"孕妇可以吃螃蟹和虾吗", "孕妇不可以吃螃蟹和虾吗"},
		"zh order":          {"从北京到天津的火车怎么坐", "从天津到北京的火车怎么坐"},
		"zh roles":          {"小明借给小红一本书怎么说", "小红借给小明一本书怎么说"},
		"zh time":           {"饭前吃阿司匹林有什么好处", "饭后吃阿司匹林有什么好处"},
		"zh question word":  {"支付宝怎么注销账户", "支付宝为什么注销账户"},
		"zh yes or no":      {"华为这款手机是防水的", "华为这款手机是防水的吗"},
		"zh pronoun":        {"我怎么把微信红包转给你", "你怎么把微信红包转给我"},
		"zh one word of it": {"肃然起敬是什么意思", "肃然起敬的肃是什么意思"},
		"zh inversion":      {"北京是什么的首都", "北京首都是什么"},
		"zh unrelated":      {"如何在家里种植番茄", "哪种奶酪最适合做披萨"},
		"en adjective":      {"is Justin Scott a player in this team", "is Justin Scott an influential player in this team"},
		"en used to be":     {"is Jose Gonzalez a nurse", "did Jose Gonzalez use to be a nurse"},
		"en becoming":       {"is Alyssa Anderson a nurse", "is Alyssa Anderson becoming a nurse"},
		"en his and her":    {"would his family be happy in Rome", "would her family be happy in Rome"},
		"en passive":        {"did Anna call the office", "was Anna called by the office"},
		"en body part":      {"I hurt my nose at football, is this common", "I hurt my knee at football, is this common"},
		"en or, and":        {"is Elizabeth an intern or an actress", "is Elizabeth an intern and an actress"},
		"en unit":           {"how many miles are 5 km", "how many miles are 5 m"},
		"en version":        {"what is new in python 3.11 for beginners", "what is new in python 3.12 for beginners"},
		"en amount":         {"can I deduct $500 of rent", "can I deduct $5000 of rent"},
		"en whose":          {"how do I reset my password", "how do I reset your password"},
		"zh colour":         {"红色的裙子配什么鞋子好看", "蓝色的裙子配什么鞋子好看"},
		"zh body part":      {"左手手指麻木是什么原因", "右手手指麻木是什么原因"},
		"zh animal":         {"狗狗不吃东西怎么办才好", "猫咪不吃东西怎么办才好"},
		"zh used to be":     {"李明是不是这里的护士", "李明曾是不是这里的护士"},
		"zh passive":        {"小明打了小红怎么办", "小明被小红打了怎么办"},
		"zh or, and":        {"小明是老师或者医生吗", "小明是老师和医生吗"},
		"zh numeral at end": {"怎么评价流浪地球二", "怎么评价流浪地球"},
		"zh part number":    {"战狼第一部的主角是谁", "战狼第二部的主角是谁"},
		"zh sequel":         {"三国演义的作者是谁", "新三国演义的作者是谁"},
		"zh in a phrase":    {"一见钟情是什么意思", "一见不钟情是什么意思"},
		"zh of a phrase":    {"刻舟求剑的舟是什么意思", "刻舟求剑是什么意思"},
		"zh of what":        {"巴黎是什么的首都", "巴黎的首都是什么"},
		"zh what of":        {"水是什么的源头", "水的源头是什么"},
		"zh units":          {"一斤等于多少克", "一斤等于多少千克"},
		"zh more, less":     {"多喝水对皮肤好吗", "少喝水对皮肤好吗"},
		"zh man, woman":     {"双鱼座男生和什么星座最配", "双鱼座女生和什么星座最配"},
		"zh who loves whom": {"女生喜欢什么样的男生", "男生喜欢什么样的女生"},
		"zh inserted":       {"孩子爱吃饭是什么原因", "孩子不爱吃饭是什么原因"},
		"zh family":         {"爸爸生日送什么礼物好", "妈妈生日送什么礼物好"},
		"zh season":         {"春天种什么蔬菜最好", "秋天种什么蔬菜最好"},
		"zh subject":        {"高中数学怎么才能学好", "高中物理怎么才能学好"},
		"zh brand":          {"华为手机怎么截长图", "小米手机怎么截长图"},
		"zh unknown rune":   {"鳃是什么", "腮是什么"},
	} {
		for _, accept := range []string{"strict", acceptSimilar} {
			t.Run(name+" "+accept, func(t *testing.T) {
				for i := range 2 {
					c := newCache(Settings{Accept: accept})
					store(t, c, text(pair[i]))
					require.Empty(t, rule(t, c, text(pair[1-i])))
				}
			})
		}
	}
}

// A labelled answer may be one to a question whose parts stand in another order, or that says a little more; never where
// that order, or what is more, says another thing.
func TestWhatOnlyALabelledAnswerMayBe(t *testing.T) {
	for name, c := range map[string]struct {
		pair [2]string
		want string // in mode similar; in strict nothing is served
	}{
		"parts turned":             {[2]string{"带孩子上班怎么办", "上班带孩子怎么办"}, ruleSimilar},
		"when, in front":           {[2]string{"睡前喝牛奶好吗", "喝牛奶睡前好吗"}, ruleSimilar},
		"a verb of help":           {[2]string{"孕妇能吃螃蟹吗", "孕妇吃螃蟹吗"}, ruleSimilar},
		"as far as":                {[2]string{"北京到上海有多远", "北京上海有多远"}, ruleSimilar},
		"to whom":                  {[2]string{"给老师送什么礼物", "老师送什么礼物"}, ""},
		"around a verb":            {[2]string{"公司辞退员工怎么办", "员工辞退公司怎么办"}, ""},
		"parts of a word":          {[2]string{"十二岁可以开车吗", "二十岁可以开车吗"}, ""},
		"units turned":             {[2]string{"一百斤是多少公斤", "一百公斤是多少斤"}, ""},
		"negation turned":          {[2]string{"没钱怎么结婚", "怎么没钱结婚"}, ""},
		"what it belongs to":       {[2]string{"猫喜欢吃什么鱼", "什么猫喜欢吃鱼"}, ""},
		"who is left out":          {[2]string{"孩子打我怎么办", "孩子打怎么办"}, ""},
		"with whom it is done":     {[2]string{"喜欢我的人是谁", "我喜欢的人是谁"}, ""},
		"what is taught":           {[2]string{"学会怎么爱", "怎么学会爱"}, ""},
		"a name and its place":     {[2]string{"北京的大学有哪些", "北京大学有哪些"}, ""},
		"the question's own place": {[2]string{"不喝水为什么", "为什么不喝水"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 2 {
				for accept, want := range map[string]string{"strict": "", acceptSimilar: c.want} {
					cache := newCache(Settings{Accept: accept})
					store(t, cache, text(c.pair[i]))
					require.Equal(t, want, rule(t, cache, text(c.pair[1-i])), accept)
				}
			}
		})
	}
}

func TestLanguageIsPartOfTheScope(t *testing.T) {
	require.NotEqual(t, keyOf(Settings{}, text("天空 sky")).Scope, keyOf(Settings{}, text("sky")).Scope)
}

func TestScopeIgnoresSpacesInJSON(t *testing.T) {
	a, b := text("q"), text("q")
	a.Tools, b.Tools = []byte(`[{"name":"f"}]`), []byte("[ {\"name\": \"f\"} ]\n")
	require.Equal(t, scopeOf(Settings{}, a, langEnglish), scopeOf(Settings{}, b, langEnglish))
}

func TestHitSaysWhatItRestsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(Settings{TTL: time.Hour})
		store(t, c, text("怎么在网上选车牌号？"))
		time.Sleep(10 * time.Minute) //nolint:forbidigo // the bubble's time
		hit, found, err := c.Lookup(t.Context(), text("网上怎么选车牌号"))
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, ruleSimilar, hit.Rule)
		require.Equal(t, 10*time.Minute, hit.Age)
		require.Equal(t, "怎么在网上选车牌号？", hit.Question)
		require.Equal(t, "answer to 怎么在网上选车牌号？", hit.Text)
		require.InDelta(t, 0.9936, hit.Similarity, 0.001)
		time.Sleep(50 * time.Minute) //nolint:forbidigo // the bubble's time
		require.Empty(t, rule(t, c, text("网上怎么选车牌号")))
		n, err := c.Expire(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}

func TestPurge(t *testing.T) {
	with := func(tenant, user, q string) Question { return Question{Tenant: tenant, User: user, Text: q} }
	all := []Question{
		with("t", "", "How do bridges carry loads?"), with("t", "u", "How do bridges carry loads?"),
		with("t", "u", "python"), with("other", "u", "How do bridges carry loads?"),
	}
	for name, c := range map[string]struct {
		target Target
		left   []int
	}{
		"a tenant":             {Target{Tenant: "t"}, []int{3}},
		"a user":               {Target{Tenant: "t", User: "u"}, []int{0, 3}},
		"a question":           {Target{Tenant: "t", Question: "how do bridges carry loads"}, []int{2, 3}},
		"a user's question":    {Target{Tenant: "t", User: "u", Question: "how do bridges carry loads"}, []int{0, 2, 3}},
		"a word, exact only":   {Target{Tenant: "t", Question: "python"}, []int{0, 1, 3}},
		"a word written so":    {Target{Tenant: "t", Question: "Python"}, []int{0, 1, 2, 3}},
		"nobody's":             {Target{Tenant: "nobody"}, []int{0, 1, 2, 3}},
		"a user of another":    {Target{Tenant: "nobody", User: "u"}, []int{0, 1, 2, 3}},
		"a key":                {Target{Tenant: "t", Key: hit(t, all[2]).Key}, []int{0, 1, 3}},
		"a key in upper case":  {Target{Tenant: "t", Key: strings.ToUpper(hit(t, all[2]).Key)}, []int{0, 1, 3}},
		"another tenant's key": {Target{Tenant: "nobody", Key: hit(t, all[2]).Key}, []int{0, 1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			cache := newCache(Settings{})
			for _, q := range all {
				store(t, cache, q)
			}
			n, err := cache.Purge(t.Context(), c.target)
			require.NoError(t, err)
			require.Equal(t, len(all)-len(c.left), n)
			for i, q := range all {
				require.Equal(t, slices.Contains(c.left, i), rule(t, cache, q) != "", "%d", i)
				store(t, cache, q)
				require.NotEmpty(t, rule(t, cache, q), "it may be stored again")
			}
		})
	}
}

// hit is what a question finds once it is stored.
func hit(t *testing.T, q Question) Hit {
	c := newCache(Settings{})
	store(t, c, q)
	h, _, err := c.Lookup(t.Context(), q)
	require.NoError(t, err)
	return h
}

func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(Settings{Accept: acceptSimilar})
		asked := func() []string {
			return []string{
				rule(t, c, text("怎么在网上选车牌号？")), rule(t, c, text("如何在網上選車牌號")), rule(t, c, text("网上怎么选车牌号")),
				rule(t, c, Question{Tenant: "t", System: "s", Text: "怎么在网上选车牌号"}), rule(t, c, Question{Tenant: "o", Text: "怎么在网上选车牌号"}),
			}
		}
		fill := func() {
			store(t, c, text("怎么在网上选车牌号？"))
			store(t, c, Question{Tenant: "t", System: "s", Text: "怎么在网上选车牌号？"})
			store(t, c, Question{Tenant: "o", Text: "怎么在网上选车牌号？"})
		}
		fill()
		require.Equal(t, []string{ruleExact, ruleCanonical, ruleSimilar, ruleCanonical, ruleCanonical}, asked())
		n, err := c.Forget(t.Context(), Target{Tenant: "t", Question: "如何在網上選車牌號"}, time.Hour)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		fill()
		require.Equal(t, []string{"", "", "", "", ruleCanonical}, asked(), "neither found nor stored, in any scope of the tenant")
		store(t, c, text("网上怎么选车牌号"))
		require.Equal(t, []string{"", "", ruleExact, "", ruleCanonical}, asked(), "nor answered by what is similar")
		time.Sleep(time.Hour) //nolint:forbidigo // the bubble's time
		fill()
		require.Equal(t, []string{ruleExact, ruleCanonical}, asked()[:2])
	})
}

func TestTargetsThatAreNone(t *testing.T) {
	c := newCache(Settings{})
	for want, target := range map[string]Target{
		"a tenant": {}, "not both": {Tenant: "t", Question: "q", Key: "k"}, "64 digits": {Tenant: "t", Key: "ab"},
	} {
		_, err := c.Purge(t.Context(), target)
		require.ErrorIs(t, err, ErrTarget)
		require.ErrorContains(t, err, want)
		_, err = c.Forget(t.Context(), target, time.Hour)
		require.ErrorContains(t, err, want)
	}
	_, err := c.Forget(t.Context(), Target{Tenant: "t"}, time.Hour)
	require.ErrorContains(t, err, "a question or a key")
}

// What a strict similar hit would find gives way to the newer answer; what a gate holds apart stays.
func TestNearDuplicatesAreReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		settings Settings
		asked    []string
		left     int
	}{
		"the same in other words":    {Settings{}, []string{"怎么在网上选车牌号？", "网上怎么选车牌号"}, 1},
		"back and forth":             {Settings{}, []string{"怎么在网上选车牌号？", "网上怎么选车牌号", "怎么在网上选车牌号？"}, 1},
		"what only looks alike":      {Settings{Accept: acceptSimilar}, []string{"从北京到天津的火车怎么坐", "从天津到北京的火车怎么坐"}, 2},
		"not what is merely similar": {Settings{Accept: acceptSimilar}, []string{"怎么在网上选车牌号？", "怎么在网上挑选车牌号？"}, 2},
		"each its own in front":      {Settings{Mode: modeFront}, []string{"怎么在网上选车牌号？", "网上怎么选车牌号"}, 1 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			cache := newCache(c.settings)
			for _, q := range c.asked {
				store(t, cache, text(q))
			}
			require.Equal(t, c.left, cache.store.(*Memory).used.Len())
			got, found, err := cache.Lookup(t.Context(), text(c.asked[len(c.asked)-1]))
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, "answer to "+c.asked[len(c.asked)-1], got.Text, "the newest")
		})
	}
}

func TestJitter(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		ttl := jitter(time.Hour)
		require.LessOrEqual(t, ttl, time.Hour)
		require.GreaterOrEqual(t, ttl, 54*time.Minute)
		seen[ttl] = true
	}
	require.Greater(t, len(seen), 50)
	require.Equal(t, time.Duration(1), jitter(1))
}

func TestModeOff(t *testing.T) {
	c := newCache(Settings{Mode: modeOff})
	store(t, c, text("How do bridges carry loads?"))
	require.Empty(t, rule(t, c, text("How do bridges carry loads?")))
	require.Zero(t, c.store.(*Memory).used.Len())
}

// broken fails at everything.
type broken struct{ Memory }

var errBroken, errGlance = errors.New("broken"), errors.New("glance")

func (*broken) Find(context.Context, Key) (Entry, bool, error) {
	return Entry{}, false, errBroken
}

func (*broken) Glance(context.Context, Key) (Entry, bool, error) {
	return Entry{}, false, errGlance
}
func (*broken) Put(context.Context, Entry) error         { return errBroken }
func (*broken) Expire(context.Context, int) (int, error) { return 0, errBroken }

func TestABrokenStoreIsAMissAndAnError(t *testing.T) {
	c := New(Settings{}, &broken{}, sharedBuiltin(), slog.New(slog.DiscardHandler))
	_, found, err := c.Lookup(t.Context(), text("How do bridges carry loads?"))
	require.False(t, found)
	require.ErrorIs(t, err, errBroken)
	require.ErrorIs(t, c.Store(t.Context(), text("How do bridges carry loads?"), "By piers."), errBroken)
	_, err = c.Expire(t.Context())
	require.ErrorIs(t, err, errBroken)
}

// blind is an embedder that fails.
type blind struct{ builtin }

func (blind) Embed(context.Context, string) (Vector, error) {
	return Vector{}, errors.New("text: 车牌")
}

func TestABrokenEmbedderOnlyCostsSimilarity(t *testing.T) {
	c := New(Settings{}, NewMemory(0), blind{}, slog.New(slog.DiscardHandler))
	store(t, c, text("怎么在网上选车牌号？"))
	require.Equal(t, ruleCanonical, rule(t, c, text("如何在网上选车牌号")))
	_, found, err := c.Lookup(t.Context(), text("网上怎么选车牌号"))
	require.False(t, found)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "车牌")
}

func BenchmarkLookup(b *testing.B) {
	c := newCache(Settings{})
	for i := range 5000 {
		store(b, c, text(fmt.Sprintf("怎么在网上选%d号车牌", i)))
	}
	store(b, c, text("怎么在网上选车牌号？"))
	for name, question := range map[string]string{"exact": "怎么在网上选车牌号？", "canonical": "如何在网上选车牌号", "similar": "网上怎么选车牌号", "miss": "如何在家里种植番茄"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _, _ = c.Lookup(context.Background(), text(question))
			}
		})
	}
}
