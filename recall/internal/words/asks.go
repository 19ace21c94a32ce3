package words

import "strings"

// maxQuestion is how many bytes a question has at most.
const maxQuestion = 1000

// Asks reports whether a text ends in a question, and whether most of it is
// one.
func Asks(text string) (ends, mostly bool) {
	const blank = " \n\"')*_"
	text = strings.TrimRight(text, blank)
	// Attachments stand in brackets after the words.
	if strings.HasSuffix(text, "]") {
		if i := strings.LastIndexByte(text, '['); i > 0 {
			text = strings.TrimRight(text[:i], blank)
		}
	}
	ends = strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？")
	if len(text) > maxQuestion || !ends && !strings.Contains(text, "?") && !strings.Contains(text, "？") {
		return ends, false
	}
	asked, from := 0, 0
	for i, r := range text {
		switch r {
		case '?', '？':
			asked += i - from
			fallthrough
		case '.', '!', '\n', '。', '！':
			from = i
		}
	}
	return ends, 2*asked > len(text)
}
