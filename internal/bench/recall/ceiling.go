package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// A question quotes a text that holds most of it in one place, letter by letter.
// A text with less than half of it does not hold what is asked for.
const (
	quotes  = 0.8
	notHeld = 0.5
)

// ceiling prints what a perfect search finds of each set whose questions quote
// its texts: the texts may have been cut since the questions were made. In
// other sets, an answer need not have the letters of the question.
func ceiling(w io.Writer, sets []*set, verbose bool) {
	t := table{{"what can be found", "questions", "gold does not hold it", "recall@10 if all else is found"}}
	for _, s := range sets {
		shares, most, missing := reach(s)
		slices.Sort(shares)
		if len(shares) == 0 || shares[len(shares)/2] < quotes {
			continue
		}
		if verbose {
			missing.print(w)
		}
		lost := 0
		for _, m := range most {
			if m[1] < 1 {
				lost++
			}
		}
		t = append(t, []string{s.name, fmt.Sprint(len(most)), fmt.Sprint(lost), fmt.Sprintf("%.1f", mean(most)[1])})
	}
	if len(t) > 1 {
		t.print(w)
	}
}

// reach returns how much of its question each gold text of s holds, the best
// score of each question, and the gold texts that do not hold what is asked for.
func reach(s *set) (shares []float64, most []score, missing table) {
	texts := map[string]string{}
	for _, docs := range s.docs {
		for _, d := range docs {
			texts[d.ID] = d.Text
		}
	}
	missing = table{{s.name + ": question", "gold that does not hold it", "characters", "holds"}}
	for _, q := range s.searches() {
		var there []string
		for _, g := range q.Gold {
			share := held(q.Question, texts[g])
			if shares = append(shares, share); share >= notHeld {
				there = append(there, g)
				continue
			}
			missing = append(missing, []string{q.QID, g, fmt.Sprint(utf8.RuneCountInString(texts[g])), fmt.Sprintf("%.0f %%", 100*share)})
		}
		most = append(most, rate(q.Gold, there))
	}
	return shares, most, missing
}

// held returns how many of the sequences of three letters of a question a text
// holds in one place, twice as long as the question; from 0 to 1.
func held(question, text string) float64 {
	fold := func(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
	question, text = fold(question), fold(text)
	have := map[string]int{} // of the question, how often each is in that place
	for i := range len(question) - 2 {
		have[question[i:i+3]] = 0
	}
	if len(have) == 0 {
		return 0
	}
	n, best, long := 0, 0, 2*len(question)+20
	for i := range len(text) - 2 {
		if c, ok := have[text[i:i+3]]; ok {
			if have[text[i:i+3]]++; c == 0 {
				n++
			}
		}
		if j := i - long; j >= 0 {
			if c, ok := have[text[j:j+3]]; ok {
				if have[text[j:j+3]]--; c == 1 {
					n--
				}
			}
		}
		best = max(best, n)
	}
	return float64(best) / float64(len(have))
}
