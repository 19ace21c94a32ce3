package runner

import (
	"context"
	"strings"
	"unicode"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/session"
)

// maxTitle is how many characters a title has at most.
const maxTitle = 60

// title names a session after its first exchange.
func (h hand) title(ctx context.Context, yield func(agent.Event, error) bool) error {
	if h.s.Title != "" || h.s.Turns == 0 || h.s.Turns > 3 {
		return nil
	}
	t := TitleOf(h.s)
	if t == "" {
		return nil
	}
	rec, err := h.keep(ctx, h.s.Next(session.Title{Title: t}, h.r.o.Clock))
	if err != nil {
		return err
	}
	if !yield(agent.Recorded{Record: rec}, nil) {
		return errOver
	}
	return nil
}

// TitleOf makes a title of what the user said first: its first sentence,
// without greeting and Markdown. If that says nothing, the answer's.
func TitleOf(s *session.Session) string {
	for _, want := range []llm.Role{llm.User, llm.Assistant} {
		for _, r := range s.Branch {
			m, ok := r.Body.(session.Message)
			if !ok || m.Role != want || m.Excluded || want == llm.User && !session.IsTurn(m) {
				continue
			}
			if t := sentence(m.Text()); t != "" {
				return t
			}
		}
	}
	return ""
}

var greetings = map[string]bool{"hi": true, "hello": true, "hey": true, "please": true, "ok": true, "okay": true, "thanks": true, "good": true, "morning": true, "evening": true}

// sentence returns the first sentence of text that is more than a greeting,
// cut at a word.
func sentence(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#>*-`"))
		for line != "" {
			part, rest := line, ""
			for i, r := range line {
				if strings.ContainsRune(".!?。！？", r) && (i+len(string(r)) == len(line) || strings.ContainsRune(" \t\u3000", rune(line[i+len(string(r))])) || r > 0x2000) {
					part, rest = line[:i], line[i+len(string(r)):]
					if r == '?' || r == '？' {
						part = line[:i+len(string(r))]
					}
					break
				}
			}
			if t := clean(part); t != "" {
				return t
			}
			line = strings.TrimSpace(rest)
		}
	}
	return ""
}

// clean drops greetings at the front and cuts at a word; "" if nothing stays.
func clean(s string) string {
	words := strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
	for len(words) > 0 && greetings[strings.ToLower(strings.Trim(words[0], ",.!;:"))] {
		words = words[1:]
	}
	t := ""
	for _, w := range words {
		if t == "" {
			t = w
		} else if len([]rune(t))+1+len([]rune(w)) <= maxTitle {
			t += " " + w
		} else {
			t += " …"
			break
		}
	}
	if r := []rune(t); len(r) > maxTitle+2 {
		t = string(r[:maxTitle]) + "…"
	}
	if strings.IndexFunc(t, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0 {
		return ""
	}
	return t
}
