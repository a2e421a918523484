package cache

import (
	"slices"
	"strings"
	"sync"
)

// english drops what doesn't change an English question: polite words, articles, contractions, the person in
// "how can I". Prepositions, auxiliaries, tense and word order stay: "by" alone turns a question round.
func english(tokens []string) []string {
	w := englishWords()
	tokens = expand(tokens, w)
	tokens = foldHowTo(trimPlease(trimPhrases(tokens, w.leading, w.trailing), w), w)
	out := make([]string, 0, len(tokens))
	for i, t := range tokens {
		if w.article(tokens, i) || w.emphasis(tokens, i) {
			continue
		}
		if same, ok := w.folded[t]; ok {
			t = same
		}
		out = append(out, t)
	}
	return out
}

// expand writes contractions out.
func expand(tokens []string, w *englishRules) []string {
	out := make([]string, 0, len(tokens)+2)
	for _, t := range tokens {
		if long, ok := w.contractions[t]; ok {
			out = append(out, long...)
			continue
		}
		stem, tail, found := strings.Cut(t, "'")
		switch long, known := w.tails[tail]; {
		case !found:
			out = append(out, t)
		case tail == "t" && strings.HasSuffix(stem, "n"):
			out = append(out, strings.TrimSuffix(stem, "n"), "not")
		case tail == "s" && w.hosts[stem]:
			out = append(out, stem, "is")
		case known:
			out = append(out, stem, long)
		default:
			out = append(out, stem, "'"+tail)
		}
	}
	return out
}

// trimPlease takes "please" off the end where it asks, not where it is asked about (how do I say please, to please).
func trimPlease(tokens []string, w *englishRules) []string {
	n := len(tokens)
	if n < 3 || tokens[n-1] != "please" || w.beforePlease[tokens[n-2]] {
		return tokens
	}
	return tokens[:n-1]
}

// foldHowTo makes one of "how can I", "how do you", "how to" …
func foldHowTo(tokens []string, w *englishRules) []string {
	for i := 0; i+2 < len(tokens); i++ {
		if tokens[i] == "how" && w.modals[tokens[i+1]] && w.persons[tokens[i+2]] {
			return slices.Replace(slices.Clone(tokens), i+1, i+3, "to")
		}
	}
	return tokens
}

type englishRules struct {
	leading, trailing   [][]string
	contractions        map[string][]string
	tails, folded       map[string]string
	hosts               map[string]bool
	modals, persons     map[string]bool
	beforeA, noArticles map[string]bool
	beforePlease        map[string]bool
	stress, yesNo       map[string]bool
}

// article says whether the token at i is an article that may go: "a" only where no name can end (vitamin a), "the"
// not where it makes a name of what follows (the us).
func (w *englishRules) article(tokens []string, i int) bool {
	if i+1 >= len(tokens) {
		return false
	}
	switch tokens[i] {
	case "a":
		return i == 0 || w.beforeA[tokens[i-1]]
	case "an", "the":
		return !w.noArticles[tokens[i+1]]
	}
	return false
}

// emphasis says whether the token at i only stresses a yes/no question: is that really true.
func (w *englishRules) emphasis(tokens []string, i int) bool {
	return i > 0 && i+1 < len(tokens) && w.stress[tokens[i]] && w.yesNo[tokens[0]]
}

var englishWords = sync.OnceValue(func() *englishRules {
	w := &englishRules{
		leading: phrases("please", "kindly", "hi ,", "hello ,", "hey ,", "hi there ,", "hello there ,", "excuse me ,", "quick question ,", ",",
			"can you please", "could you please", "would you please", "will you please",
			"please tell me", "can you tell me", "could you tell me", "can you please tell me", "could you please tell me",
			"i would like to know", "i want to know", "i was wondering"),
		// Behind a pause only: "how do I say thanks".
		trailing: phrases(", please", ", thanks", ", thank you", ", thanks a lot", ", thank you very much", ", thanks in advance",
			", many thanks"),
		contractions: contractions(),
		tails:        map[string]string{"re": "are", "ve": "have", "ll": "will", "m": "am"},
		folded:       map[string]string{"are": "is", "am": "is", "does": "do"},
		hosts:        set("what who where when why how which it that this there he she here"),
		modals:       set("can could do does should would"),
		persons:      set("i you we one"),
		beforeA: set("is are was were be been being become becoming became am of in on at to for with without from by as " +
			"like or and than what such have has had get make do does did can there into about if when where how not me"),
		noArticles:   set("us who it most one"),
		stress:       set("really actually truly indeed"),
		yesNo:        set("is are am was were do does did can could will would should has have"),
		beforePlease: set("say saying said word spell write pronounce of to and or with mean means is not will can"),
	}
	sortLongest(w.leading)
	sortLongest(w.trailing)
	return w
})

func contractions() map[string][]string {
	short := map[string]string{
		"can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "let's": "let us",
		"whats": "what is", "wheres": "where is", "hows": "how is", "whos": "who is", "dont": "do not", "doesnt": "does not",
		"didnt": "did not", "isnt": "is not", "arent": "are not", "cant": "can not", "im": "i am", "ive": "i have",
		"shouldnt": "should not", "couldnt": "could not", "wouldnt": "would not", "wasnt": "was not", "hasnt": "has not",
	}
	out := make(map[string][]string, len(short))
	for k, v := range short {
		out[k] = strings.Fields(v)
	}
	return out
}

// phrases splits each phrase into its words; a comma stands for a pause.
func phrases(texts ...string) [][]string {
	out := make([][]string, len(texts))
	for i, t := range texts {
		for _, word := range strings.Fields(t) {
			out[i] = append(out[i], strings.Replace(word, ",", pause, 1))
		}
	}
	return out
}

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}
