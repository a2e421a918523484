package cache

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompare(t *testing.T) {
	long := strings.Repeat("Arches turn the weight into pressure on their feet, and piers bring it down to the ground. ", 4)
	for _, c := range []struct {
		name, a, b string
		agree      bool
		how        string
	}{
		{"the same", "Paris.", "Paris.", true, "text"},
		{"case, width and markup", "**Paris** is the capital", "ｐａｒｉｓ is the Capital!", true, "text"},
		{"traditional characters", "橋把重量傳到地面。", "桥把重量传到地面", true, "text"},
		{"nothing in common", "Paris.", "Lyon.", false, "words"},
		{
			"said otherwise", "A bridge carries heavy loads by passing the weight through its piers down to the ground.",
			"A bridge carries its heavy loads by passing weight down through the piers to the ground below.", true, "words",
		},
		{
			"about another thing", "A bridge carries heavy loads by passing the weight through its piers down to the ground.",
			"A tomato grows well in a warm and sunny place, with water every day and a stick to climb.", false, "words",
		},
		{"zh said otherwise", "番茄要放在阳光充足的地方，每天浇水，还要搭架子。", "番茄需要放在阳光充足的地方，每天要浇水，并搭架子。", true, "words"},
		{"zh about another thing", "番茄要放在阳光充足的地方，每天浇水，还要搭架子。", "奶酪要放在冰箱里冷藏，开封以后一周内吃完。", false, "words"},
		{
			"the same subject", "Boil the potatoes in salted water for twenty minutes, then mash them with butter and warm milk.",
			"Fry the potatoes in hot oil for five minutes, then salt them well and serve them with vinegar.", false, "words",
		},
		{"zh the same subject", "土豆要在盐水里煮二十分钟，然后加黄油和热牛奶捣成泥。", "土豆要在热油里炸五分钟，然后撒盐，蘸醋吃。", false, "words"},
		{
			"a short one and a longer one", "The bridge is 120 metres long, was built by Roman engineers, and is still used by people who walk to town.",
			"The bridge is 150 metres long, was built by Roman engineers, and is still used by people who walk to town each day, or so it seems to me.", false, "number",
		},
		{"another number", "The bridge is about 120 metres long.", "The bridge is about 150 metres long.", false, "number"},
		{"zh another number", "这座桥大约有120米长。", "这座桥大约有150米长。", false, "number"},
		{"a negation", "You can eat this fish raw without any risk.", "You can not eat this fish raw without any risk.", false, "negation"},
		{"a contraction", "You can eat this fish raw at any time.", "You shouldn't eat this fish raw at any time.", false, "negation"},
		{"zh a negation", "这种鱼可以生吃，味道很好。", "这种鱼不可以生吃，味道很好。", false, "negation"},
		{"yes and no before the same words", "Yes. " + long, "No. " + long, false, "negation"},
		{"zh yes and no before the same words", "是的。" + long, "不是。" + long, false, "negation"},
		{"yes before the same words", "Yes. " + long, long, true, "words"},
		{"a number in a long one", long + "It takes 3 years.", long + "It takes 4 years.", true, "words"},
		{"nothing against something", "", "Paris.", false, "words"},
		{"markup against nothing", "***", "", true, "text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Compare(c.a, c.b)
			require.Equal(t, c.agree, got.Agree, "%+v", got)
			require.Equal(t, c.how, got.How, "%+v", got)
			require.Equal(t, got, Compare(c.b, c.a), "either way round")
			require.GreaterOrEqual(t, got.Overlap, 0.0)
			require.LessOrEqual(t, got.Overlap, 1.0)
		})
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"a b c", "a b d", 2.0 / 3},
		{"a a a", "a", 0.5},
		{"桥梁", "桥梁", 1},
		{"桥梁", "桥", 0},
		{"桥梁很长", "桥梁很短", 2.0 / 3},
		{"桥 a 梁", "梁 a 桥", 1},
		{"桥 a", "桥 b", 0.5},
	} {
		got := Compare(c.a, c.b)
		require.InDelta(t, c.want, got.Overlap, 1e-9, "%s, %s", c.a, c.b)
		require.Equal(t, c.want >= 0.6, got.Agree, "%s, %s", c.a, c.b)
	}
}
