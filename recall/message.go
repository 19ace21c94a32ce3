package recall

import (
	"regexp"
	"strings"
	"time"

	"goclaw/internal/text"
	"goclaw/llm"
	"goclaw/recall/internal/postings"
	"goclaw/recall/internal/words"
	"goclaw/session"
)

// Role says who said something.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
	Output    Role = "tool"    // the output of a tool or a command
	Summary   Role = "summary" // the summary of a compaction
)

// maxIndexed is how many bytes of one text are indexed.
const maxIndexed = 256 << 10

// said is the text of a record that is searched.
type said struct {
	seq     session.Seq
	role    Role
	speaker string // what the text begins with if it could be a name; the whole log tells whether it is
	at      time.Time
	text    string
	tools   []string // that it calls, or is the output of; set where a whole log is read
}

// searchTools are the tools that search: what they are asked and what they
// find was said elsewhere.
var searchTools = map[string]bool{"memory_search": true, "memory_get": true, "session_search": true, "session_read": true}

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
				if !searchTools[res.Name] {
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
			if quotes(b) {
				s.text = ""
			}
			for _, c := range b.Calls() {
				if !searchTools[c.Name] {
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
	s.text = text.Head(strings.TrimSpace(s.text), maxIndexed)
	return s, s.text != ""
}

// quotes reports whether m is an answer of the built-in offline model, which only
// quotes what was said elsewhere.
func quotes(m session.Message) bool { return m.Provider == "offline" && m.Model == "offline" }

// namePrefix is how messages begin in chats with several people.
var namePrefix = regexp.MustCompile(`^(?:\[(?:[\p{L}\d]+ )?)?(\p{Lu}[\p{L}'’-]{1,30})(?: \p{Lu}[\p{L}'’.-]*)?(?: \([^)\n]*\))?(?: [^\]\n]{0,40}\])?: ?`)

// maxPrefix is how many bytes such a beginning can have.
const maxPrefix = 160

// named returns what a text begins with if that could be its speaker's name.
func named(text string) string {
	if strings.IndexByte(text[:min(len(text), maxPrefix)], ':') < 0 {
		return ""
	}
	m := namePrefix.FindStringSubmatch(text)
	if m == nil || labels[strings.ToLower(m[1])] || len(m[1]) <= maxShort && m[1] == strings.ToUpper(m[1]) {
		return ""
	}
	return m[1]
}

// maxShort is how many letters an abbreviation has at most: "API: ..." does not
// begin with a name.
const maxShort = 4

// labels are words that messages begin with, before a colon, and that are
// nobody's name.
var labels = wordSet(`plan fix fixes fixed note notes warning error errors todo summary update updates question answer step example examples output input result
results bug feature feat chore docs test tests refactor subject from to date usage tip hint info debug important context goal goals task tasks issue option options
problem solution reason status done edit request response background next also however first second third finally yes no ok okay sure thanks hello hi please
user assistant system tool human model bot agent build release decision idea proposal review changes file files code command commands link links source title topic`)

// roleFlags are how the index notes a role. An assistant has none.
var roleFlags = map[Role]postings.Flags{User: postings.User, Output: postings.Tool, Summary: postings.Summary}

// doc returns what the index notes of s, a message of session n.
func (s said) doc(n int64) postings.Doc {
	d := postings.Doc{Group: uint32(n), Seq: uint32(s.seq), Flags: roleFlags[s.role]}.At(s.at.Unix())
	ends, mostly := words.Asks(s.text)
	if ends {
		d.Flags |= postings.Asks
	}
	if mostly {
		d.Flags |= postings.MostlyAsks
	}
	return d
}

// roleOf returns the role of a message.
func roleOf(d postings.Doc) Role {
	for role, flag := range roleFlags {
		if d.Flags&flag != 0 {
			return role
		}
	}
	return Assistant
}
