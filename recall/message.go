package recall

import (
	"regexp"
	"strings"
	"time"

	"goclaw/llm"
	"goclaw/session"
)

// Role says who said what is found.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
	Output    Role = "tool"    // what a tool or a command put out
	Summary   Role = "summary" // of a past that was folded
)

// maxIndexed is how many bytes of one text are indexed.
const maxIndexed = 256 << 10

// said is what a record says: the text that is searched.
type said struct {
	seq     session.Seq
	role    Role
	speaker string // the name that the text begins with; whether it is one, all of the log tells
	at      time.Time
	text    string
}

// echo are the tools that search: what they are asked and what they find was
// said elsewhere.
var echo = map[string]bool{"memory_search": true, "memory_get": true, "session_search": true, "session_read": true}

// speak returns what r says, and whether it says anything.
func speak(r session.Record) (said, bool) {
	s := said{seq: r.Seq, at: r.Time}
	switch b := r.Body.(type) {
	case session.Message:
		if !b.At.IsZero() {
			s.at = b.At
		}
		if rs := b.Results(); len(rs) > 0 {
			s.role = Output
			var parts []string
			for _, res := range rs {
				if !echo[res.Name] {
					parts = append(parts, res.Text())
				}
			}
			s.text = strings.Join(parts, "\n")
			break
		}
		s.role, s.text = Assistant, b.Text()
		if b.Role == llm.User {
			s.role = User
		} else {
			for _, c := range b.Calls() {
				if !echo[c.Name] {
					s.text += "\n" + c.Name + " " + string(c.Args)
				}
			}
		}
		s.speaker = named(s.text)
	case session.Shell:
		s.role, s.text = Output, b.Command+"\n"+b.Output
	case session.CustomMessage:
		s.role, s.text = User, llm.Message{Blocks: b.Blocks}.Text()
	case session.Compaction:
		s.role, s.text = Summary, b.Summary
	case session.BranchSummary:
		s.role, s.text = Summary, b.Summary
	}
	s.text = strings.TrimSpace(s.text)
	if len(s.text) > maxIndexed {
		s.text = strings.ToValidUTF8(s.text[:maxIndexed], "")
	}
	return s, s.text != ""
}

// namePrefix is how chats with several people begin a message.
var namePrefix = regexp.MustCompile(`^(?:\[(?:[\p{L}\d]+ )?)?(\p{Lu}[\p{L}'’-]{1,30})(?: \p{Lu}[\p{L}'’.-]*)?(?: \([^)\n]*\))?(?: [^\]\n]{0,40}\])?: ?`)

// maxPrefix is how many bytes it can have.
const maxPrefix = 160

// named returns what a text begins with if that could be its speaker's name.
func named(text string) string {
	if strings.IndexByte(text[:min(len(text), maxPrefix)], ':') < 0 {
		return ""
	}
	if m := namePrefix.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// doc is a message or a note as the index knows it.
type doc struct {
	group uint32 // the session or the file; only those of one group are neighbours
	seq   uint32 // the record, or the line
	time  int64  // seconds
	words uint32
	flags uint8
}

const (
	flagAsks     = 1 << iota // it ends in a question
	flagOnlyAsks             // it is a question, most of it
	flagUser
	flagTool
	flagSummary
	flagNamed // it begins with what could be its speaker's name
)

func (d doc) role() Role {
	switch {
	case d.flags&flagUser != 0:
		return User
	case d.flags&flagTool != 0:
		return Output
	case d.flags&flagSummary != 0:
		return Summary
	}
	return Assistant
}

// nameMark begins the term of a speaker's name. No word of a text does.
const nameMark = "@"

// digest returns the doc of a text, and calls count for each of its words and
// once for the term of who says it.
func (l *lexer) digest(s said, count func(t *list)) doc {
	d := doc{seq: uint32(s.seq), time: s.at.Unix()}
	d.words = uint32(l.words(s.text, func(w word) { count(w.list) }))
	if t := term(s.speaker); t != "" {
		count(l.list(nameMark + t))
		d.flags |= flagNamed
	}
	d.flags |= asking(s.text)
	switch s.role {
	case User:
		d.flags |= flagUser
	case Output:
		d.flags |= flagTool
	case Summary:
		d.flags |= flagSummary
	}
	return d
}
