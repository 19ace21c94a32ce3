// Package naming holds how people name sessions: titles, made from what was
// said, and what they type for a session or one of its records.
package naming

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"goclaw/llm"
	"goclaw/session"
)

// Topic makes a title from what was said in s: from the first message that says
// what it is about, or from the answer if the message was an image. It is "" if
// there were only greetings.
func Topic(s *session.Session) string {
	wordless := false
	for _, r := range s.Branch {
		m, ok := r.Body.(session.Message)
		switch {
		case !ok || m.Excluded:
		case session.IsTurn(m):
			if t := topicOf(m.Text()); t != "" {
				return t
			}
			wordless = strings.TrimSpace(m.Text()) == "" && !slices.ContainsFunc(m.Blocks, isText)
		case wordless && m.Role == llm.Assistant:
			if t := topicOf(m.Text()); t != "" {
				return t
			}
		}
	}
	return ""
}

func isText(b llm.Block) bool {
	_, ok := b.(llm.Text)
	return ok
}

// topicOf returns the first sentence that is said in text and is more than a
// greeting or a command, without Markdown and markup, cut at a word; "" if there
// is none.
func topicOf(text string) string {
	text = said(text)
	if len(text) > maxTopicText {
		text = strings.ToValidUTF8(text[:maxTopicText], "")
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimLeft(stripped(line), "#>*-`"))
		if strings.HasPrefix(line, "<") && strings.HasSuffix(line, ">") { // a program's markup
			continue
		}
		for line != "" {
			part, rest := firstSentence(line)
			if t := clipTopic(part); t != "" && !isGreeting(t) && !command.MatchString(t) {
				return t
			}
			line = strings.TrimSpace(rest)
		}
	}
	return ""
}

// envelope is what programs write around a message or into it: a messenger's
// gateway when it came, from where, and its number; the chat's input which image
// stands there.
var envelope = regexp.MustCompile(`^\[[^\]]*\d{4}-\d\d-\d\d[^\]]*\]|\[message_id: [^\]]*\]|\[image #\d+, \d+x\d+ [A-Z]+\]`)

// job is what OpenClaw writes before the message of a scheduled job or a hook:
// its id and its name.
var job = regexp.MustCompile(`^\[(?:cron|hook):[^\]\s]+ *([^\]]*)\] *`)

const (
	maxTitle     = 60      // characters of a title
	maxTopicText = 8 << 10 // bytes of a message that are read
)

// firstSentence splits line after its first sentence and drops the full stop.
func firstSentence(line string) (part, rest string) {
	for i, r := range line {
		if !strings.ContainsRune(".!?。！？", r) {
			continue
		}
		rest = line[i+len(string(r)):]
		if rest != "" && rest[0] != ' ' && rest[0] != '\t' && !strings.HasPrefix(rest, "\u3000") && r < 0x2000 {
			continue
		}
		if r == '?' || r == '？' {
			return line[:i+len(string(r))], rest
		}
		return line[:i], rest
	}
	return line, ""
}

// clipTopic cuts s at a word; "" if there is neither a letter nor a digit.
func clipTopic(s string) string {
	words := strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
	if len(words) > 1 && strings.EqualFold(words[0], "please") {
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

// greets are greetings; small are words that do not name a topic.
var (
	greets = wordSet("hi hello hey hiya howdy yo greetings hallo hej moin servus bonjour salut hola ciao olá oi привет здравствуйте merhaba")
	small  = wordSet(`there all everyone folks team again you and are how is it going doing today good morning afternoon evening day night dear
		guten tag morgen abend buenos buenas dias días tardes noches bom dia boa tarde
		ok okay thanks thank please yes no yep nope sure cool great nice test testing ping what's whats up sup start
		你好 您好 你好吗 你好啊 嗨 早上好 晚上好 大家好 こんにちは おはよう おはようございます こんばんは もしもし はじめまして 안녕 안녕하세요`)
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// isGreeting reports whether a sentence only greets: "Good morning", "hello
// there", "Hi Ana".
func isGreeting(sentence string) bool {
	words := strings.FieldsFunc(strings.ToLower(sentence), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
	})
	if len(words) == 2 && greets[words[0]] { // and a name
		return true
	}
	for _, w := range words {
		if !greets[w] && !small[w] {
			return false
		}
	}
	return true
}

// lookFor is how many records are read for a title.
const lookFor = 200

// Title returns the title of in. A session that has none, because it comes from
// another session or its first turn was interrupted, gets one from its first
// request. A mirror, which cannot be written to and whose key may be an id, always
// has one, if need be from a summary, a greeting or the first answer.
func Title(ctx context.Context, st session.Store, in session.Info) string {
	if !in.Mirror() && (in.Title != "" || in.Turns == 0) {
		return in.Title
	}
	if t := stripped(in.Title); t != "" && !useless.MatchString(t) {
		return t
	}
	var summary, greeting, answer string
	for r, err := range st.Read(ctx, in.ID, 0) {
		if r.Seq > lookFor || ctx.Err() != nil {
			break
		}
		if err != nil { // damage; the rest may do
			continue
		}
		switch b := r.Body.(type) {
		case session.Message:
			switch {
			case b.Excluded:
			case session.IsTurn(b):
				if t := topicOf(b.Text()); t != "" {
					return t
				}
				greeting = cmp.Or(greeting, clipTopic(said(b.Text())))
			case b.Role == llm.Assistant && !strings.HasPrefix(b.Text(), "You are "): // a system prompt
				answer = cmp.Or(answer, topicOf(b.Text()))
			}
		case session.Compaction:
			summary = cmp.Or(summary, topicOf(b.Summary))
		}
	}
	if !in.Mirror() {
		return ""
	}
	return cmp.Or(summary, greeting, answer, Untitled)
}

// Untitled is the title of an imported session without any words.
const Untitled = "(nothing said)"

// stripped returns a title without what a gateway writes around a message.
func stripped(title string) string {
	title = strings.TrimSpace(envelope.ReplaceAllString(title, ""))
	if m := job.FindStringSubmatch(title); m != nil {
		title = strings.TrimRight(strings.TrimPrefix(m[1]+": ", ": ")+title[len(m[0]):], ": …")
	}
	return title
}
