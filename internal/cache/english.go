package cache

import (
	"slices"
	"strings"
	"sync"
)

// english drops what doesn't change an English question: polite words, articles, contractions, the person in
// "how can I"; plural and spelling go the way of the singular and of America. Prepositions, auxiliaries, tense and word
// order stay: "by" alone turns a question round.
func english(tokens []string) []string {
	w := englishWords()
	tokens = trimCourtesy(trimPhrases(expand(tokens, w), w.leading, w.trailing), w)
	tokens = foldMeaning(w.foldHowTo(w.rephrase(tokens)))
	out := make([]string, 0, len(tokens))
	for i, t := range tokens {
		if w.article(tokens, i) || w.emphasis(tokens, i) {
			continue
		}
		if same, ok := w.folded[t]; ok {
			t = same
		}
		out = append(out, w.singular(t))
	}
	return differenceBetween(out)
}

// rephrase writes the longest known phrase at each place as the one that stands for it.
func (w *englishRules) rephrase(tokens []string) []string {
	out := make([]string, 0, len(tokens))
	for i := 0; i < len(tokens); i++ {
		n := min(w.longest, len(tokens)-i)
		for ; n > 0; n-- {
			if to, ok := w.phrases[strings.Join(tokens[i:i+n], " ")]; ok {
				out = append(out, to...)
				i += n - 1
				break
			}
		}
		if n == 0 {
			out = append(out, tokens[i])
		}
	}
	return out
}

// singular takes the s off a word, where it isn't part of it. What verbs have of it goes as well.
func (w *englishRules) singular(t string) string {
	if len(t) < 4 || t[len(t)-1] != 's' || w.plural[t] || strings.ContainsRune("su'i", rune(t[len(t)-2])) {
		return t
	}
	if stem, ok := strings.CutSuffix(t, "ies"); ok && len(stem) > 1 {
		return stem + "y"
	}
	for _, end := range []string{"ches", "shes", "xes", "sses", "zzes"} {
		if strings.HasSuffix(t, end) {
			return t[:len(t)-2]
		}
	}
	return t[:len(t)-1]
}

// foldMeaning makes one of "what does … mean" and "what is the meaning of …".
func foldMeaning(tokens []string) []string {
	n := len(tokens)
	if n > 4 && tokens[0] == "what" && tokens[1] == "is" && tokens[2] == "the" && tokens[3] == "meaning" && tokens[4] == "of" {
		return slices.Concat([]string{"what", "do"}, tokens[5:], []string{"mean"})
	}
	return tokens
}

// differenceBetween orders the two that are compared.
func differenceBetween(tokens []string) []string {
	from, and := slices.Index(tokens, "between")+1, slices.Index(tokens, "and")
	if from < 2 || tokens[from-2] != "difference" || and <= from || and+1 == len(tokens) || slices.Contains(tokens[and+1:], "and") {
		return tokens
	}
	a, b := tokens[from:and], tokens[and+1:]
	if slices.Compare(a, b) <= 0 {
		return tokens
	}
	return slices.Concat(tokens[:from], b, []string{"and"}, a)
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

// trimCourtesy takes "please" and "thanks" off the end where they ask, not where they are asked about (how do I say
// please, to please).
func trimCourtesy(tokens []string, w *englishRules) []string {
	for _, p := range w.courtesies {
		if n := len(tokens) - len(p); n > 1 && slices.Equal(tokens[n:], p) && !w.beforePlease[tokens[n-1]] {
			return trimCourtesy(tokens[:n], w)
		}
	}
	return tokens
}

// foldHowTo makes one of "how can I", "how do you", "how to" …, and of where likewise. What is that person's own is
// anybody's then: how do I improve my English. "How do people die" and "where do you live" ask for facts.
func (w *englishRules) foldHowTo(tokens []string) []string {
	for i := 0; i+2 < len(tokens); i++ {
		if (tokens[i] == "how" || tokens[i] == "where") && w.modals[tokens[i+1]] && w.persons[tokens[i+2]] {
			own, known := w.own[tokens[i+2]]
			if fact := tokens[i] == "how" && tokens[i+1] == "do" && !known || tokens[i] == "where" && w.states[tokenAt(tokens, i+3)]; fact {
				return tokens
			}
			return slices.DeleteFunc(slices.Replace(slices.Clone(tokens), i+1, i+3, "to"), func(t string) bool { return t == own })
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
	states              map[string]bool // verbs of what is, not of what to do
	amounts             map[string]bool // that "a" makes others: a few
	beforePlease        map[string]bool
	stress, yesNo       map[string]bool
	plural              map[string]bool // or no plural at all
	own                 map[string]string
	phrases             map[string][]string
	longest             int // phrase, in words
	courtesies          [][]string
}

// article says whether the token at i is an article that may go: "a" only where no name can end (vitamin a), "the"
// not where it makes a name of what follows (the us).
func (w *englishRules) article(tokens []string, i int) bool {
	if i+1 >= len(tokens) {
		return false
	}
	switch tokens[i] {
	case "a":
		return (i == 0 || w.beforeA[tokens[i-1]]) && !w.amounts[tokens[i+1]]
	case "the":
		// What is the matter, what is matter.
		return !w.noArticles[tokens[i+1]] && (i != 2 || i+2 < len(tokens) || tokens[0] != "what" && tokens[0] != "who")
	case "an":
		return !w.noArticles[tokens[i+1]]
	}
	return false
}

// emphasis says whether the token at i only stresses a yes/no question: is that really true.
func (w *englishRules) emphasis(tokens []string, i int) bool {
	return i > 0 && i+1 < len(tokens) && w.stress[tokens[i]] && w.yesNo[tokens[0]] && !slices.Contains(tokens, "not")
}

var englishWords = sync.OnceValue(func() *englishRules {
	w := &englishRules{
		leading: phrases("please", "kindly", "hi ,", "hello ,", "hey ,", "hi there ,", "hello there ,", "excuse me ,", "quick question ,", ",",
			"can you please", "could you please", "would you please", "will you please",
			"please tell me", "can you tell me", "could you tell me", "can you please tell me", "could you please tell me",
			"i would like to know", "i want to know", "i was wondering", "does anyone know", "does anybody know", "do you know",
			"can anyone tell me", "can someone tell me", "could someone tell me", "can anyone explain", "can someone explain",
			"can you explain", "could you explain", "please explain", "good morning ,", "good evening ,", "dear all ,"),
		// Behind a pause only: "how do I say thanks".
		trailing: phrases(", please", ", thanks", ", thank you", ", thanks a lot", ", thank you very much", ", thanks in advance",
			", many thanks"),
		contractions: contractions(),
		tails:        map[string]string{"re": "are", "ve": "have", "ll": "will", "m": "am"},
		folded:       spellings(),
		hosts:        set("what who where when why how which it that this there he she here"),
		modals:       set("can could do does should would"),
		persons:      set("i you we one someone people anyone they"),
		own:          map[string]string{"i": "my", "you": "your", "we": "our", "one": "one's"},
		courtesies:   phrases("thank you very much", "thank you so much", "thanks in advance", "thanks a lot", "many thanks", "thank you", "please", "thanks"),
		plural:       set("news means arms customs goods glasses windows states does its was has this always perhaps series species physics mathematics statistics economics ethics politics aids jobs gates mars saas jeans brains ads spirits manners looks"),
		beforeA: set("is are was were be been being become becoming became am of in on at to for with without from by as " +
			"like or and than what such have has had get make do does did can there into about if when where how not me"),
		states:       set("live work come stay sleep study belong"),
		amounts:      set("few little bit cold mean mole"),
		noArticles:   set("us who it most one"),
		stress:       set("really actually truly indeed"),
		yesNo:        set("is are am was were do does did can could will would should has have"),
		beforePlease: set("say saying said word spell write pronounce of to and or with mean means is not will can"),
	}
	sortLongest(w.leading)
	sortLongest(w.trailing)
	w.phrases = map[string][]string{}
	for _, line := range strings.Split(englishPhrases, "\n") {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " = ")
		w.phrases[from] = strings.Fields(to)
		w.longest = max(w.longest, len(strings.Fields(from)))
	}
	return w
})

// englishPhrases are ways to say the same.
const englishPhrases = `the us = usa
	the u s = usa
	u s = usa
	u s a = usa
	the u s a = usa
	the usa = usa
	united states = usa
	the united states = usa
	the united states of america = usa
	united states of america = usa
	the uk = uk
	u k = uk
	the u k = uk
	united kingdom = uk
	the united kingdom = uk
	e mail = email
	e mails = emails
	wi fi = wifi
	web site = website
	web sites = websites
	& = and
	vs = versus
	what are some of the = what is the
	what are some = what is
	what are some of = what is
	which are the = what is the
	which is the = what is the
	what is the way to = how to
	what are the ways to = how to
	what is a way to = how to
	what is a good way to = what is the good way to
	what do you mean by = what is the meaning of
	what is meant by = what is the meaning of
	what should i do if = what to do if
	what should i do to = what to do to
	what should you do if = what to do if
	what should one do if = what to do if
	what can i do if = what to do if
	what can i do to = what to do to
	what do i do if = what to do if
	what should i do when = what to do when
	what do i do when = what to do when`

// spellings are forms of one word, by the one that stands for all.
func spellings() map[string]string {
	out := map[string]string{}
	for _, pair := range strings.Fields(`are=is am=is does=do were=was anybody=anyone somebody=someone everybody=everyone
		colour=color colours=color favourite=favorite behaviour=behavior labour=labor neighbour=neighbor neighbours=neighbor humour=humor
		honour=honor flavour=flavor organise=organize realise=realize recognise=recognize analyse=analyze centre=center theatre=theater
		programme=program programmes=program grey=gray travelling=traveling cancelled=canceled licence=license defence=defense mum=mom
		two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10`) {
		from, to, _ := strings.Cut(pair, "=")
		out[from] = to
	}
	return out
}

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
