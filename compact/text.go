package compact

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"goclaw/internal/text"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// plainText is what a record says, without its tools' output.
func plainText(b session.Body) string {
	switch b := b.(type) {
	case session.Message:
		if b.Excluded || b.Stop == llm.StopError || b.Role == llm.System {
			return ""
		}
		var parts []string
		for _, bl := range b.Blocks {
			switch bl := bl.(type) {
			case llm.Text:
				parts = append(parts, bl.Text)
			case llm.ToolResult:
				parts = append(parts, bl.Text())
			case llm.Image:
				parts = append(parts, "(a picture)")
			}
		}
		return strings.TrimSpace(strings.Join(parts, "\n"))
	case session.CustomMessage:
		return strings.TrimSpace(llm.Message{Blocks: b.Blocks}.Text())
	case session.BranchSummary:
		return strings.TrimSpace(b.Summary)
	case session.Shell:
		if !b.Excluded {
			return "$ " + b.Command + "\n" + b.Output
		}
	}
	return ""
}

// maxResult and maxArgs are what a summarising model sees of a tool's output
// and of a call, in bytes. Summaries are of what was done with them.
const (
	maxResult = 2000
	maxArgs   = 1200
)

// maxAsked is how much it sees of a question that stays.
const maxAsked = 4000

// lines writes records for a summarising model, one text for each.
func lines(recs []session.Record) []string {
	var out []string
	for _, r := range recs {
		switch b := r.Body.(type) {
		case session.Message:
			if t := messageLine(b); t != "" {
				out = append(out, t)
			}
		case session.Notice: // the program's own words
		default:
			if t := plainText(b); t != "" {
				out = append(out, "[User's side] "+t)
			}
		}
	}
	return out
}

func messageLine(m session.Message) string {
	if m.Excluded || m.Stop == llm.StopError || m.Role == llm.System || window.Silent(m.Message) {
		return ""
	}
	who := "[User] "
	if m.Role == llm.Assistant {
		who = "[Assistant] "
	}
	var parts []string
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case llm.Text:
			if t := strings.TrimSpace(b.Text); t != "" {
				parts = append(parts, who+t)
			}
		case llm.Image:
			parts = append(parts, who+"(a picture)")
		case llm.ToolCall:
			parts = append(parts, fmt.Sprintf("[Call %s] %s", b.Name, middle(string(b.Args), maxArgs)))
		case llm.ToolResult:
			kind := "Result"
			if b.IsError {
				kind = "Failed"
			}
			parts = append(parts, fmt.Sprintf("[%s %s] %s", kind, b.Name, middle(b.Text(), maxResult)))
		}
	}
	return strings.Join(parts, "\n")
}

// middle cuts s in the middle: n bytes stay.
func middle(s string, n int) string { return text.Middle(s, n-n/3, n/3) }

// identifiers returns what in text must be written exactly or is of no use:
// addresses, paths, files, versions, hashes, numbers, names in code, and what
// is in backquotes. Each once, in order.
func identifiers(text string) []string {
	var out []string
	seen := map[string]bool{}
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	for i := 0; i < len(text); {
		c := text[i]
		if c == '`' {
			if n := strings.IndexByte(text[i+1:min(len(text), i+1+maxQuoted)], '`'); n > 1 && !strings.Contains(text[i+1:i+1+n], "\n") {
				add(text[i+1 : i+1+n])
				i += n + 2
				continue
			}
		}
		if parts[c] {
			i++
			continue
		}
		from := i
		url := strings.HasPrefix(text[i:], "http://") || strings.HasPrefix(text[i:], "https://")
		for i < len(text) && (!parts[text[i]] || url && text[i] == '=') {
			i++
		}
		if w := strings.TrimRight(strings.TrimLeft(text[from:i], "*-+:!?"), ".,:*!?"); len(w) > 1 && len(w) <= maxIdentifier && exact(w) {
			add(w)
		}
	}
	return out
}

const (
	maxQuoted     = 61
	maxIdentifier = 200
)

// parts are the bytes that separate words.
var parts = func() (t [256]bool) {
	for _, c := range []byte(" \t\r\n\"'`()[]{}<>,;|=\\") {
		t[c] = true
	}
	return t
}()

// extensions mark a word without a slash as the name of a file.
var extensions = map[string]bool{}

func init() {
	for _, e := range strings.Fields("go ts tsx js jsx py md json jsonl yaml yml toml txt sh rs java c cc h hh cpp html css sql csv pdf png jpg jpeg log env conf cfg ini xml lock mod sum db") {
		extensions[e] = true
	}
}

// exact reports whether a word is an identifier.
func exact(w string) bool {
	var letters, digits, camel, slash, under, dot, at, other bool
	for i := 0; i < len(w); i++ {
		switch c := w[i]; {
		case c >= '0' && c <= '9':
			digits = true
		case c >= 'a' && c <= 'z':
			letters = true
		case c >= 'A' && c <= 'Z':
			camel = camel || i > 0 && w[i-1] >= 'a' && w[i-1] <= 'z'
			letters = true
		case c == '/':
			slash = true
		case c == '_':
			under = true
		case c == '.':
			dot = true
		case c == '@':
			at = true
		case c == '#' && i == 0, c == '-', c == ':':
		default:
			other = true
		}
	}
	switch {
	case slash:
		return letters && len(w) > 3 && (dot || digits || under || strings.Count(w, "/") > 1 || w[0] == '/' || w[0] == '~')
	case digits && letters:
		return len(w) > 2
	case digits:
		return len(w) > 2 && (!other || dot) || w[0] == '#'
	case at:
		return dot
	case under:
		return letters && len(w) > 2
	case dot:
		return letters && extensions[w[strings.LastIndexByte(w, '.')+1:]]
	}
	return camel
}

// files returns the files that calls read and wrote, by the names of their
// arguments and tools.
func files(recs []session.Record) (read, written []string) {
	for _, r := range recs {
		m, ok := r.Body.(session.Message)
		if !ok {
			continue
		}
		for _, c := range m.Calls() {
			var a map[string]any
			if json.Unmarshal(c.Args, &a) != nil {
				continue
			}
			path := ""
			for _, k := range []string{"path", "file_path", "filePath", "file", "filename"} {
				if p, ok := a[k].(string); ok && p != "" {
					path = p
					break
				}
			}
			name := strings.ToLower(c.Name)
			switch {
			case path == "":
			case strings.Contains(name, "write") || strings.Contains(name, "edit") || strings.Contains(name, "patch") || strings.Contains(name, "create"):
				written = append(written, path)
			case strings.Contains(name, "read") || strings.Contains(name, "view") || strings.Contains(name, "open") || strings.Contains(name, "cat"):
				read = append(read, path)
			}
		}
	}
	return union(nil, read), union(nil, written)
}

// open returns what the user asked for in recs and got no answer to within recs:
// in a turn that broke off, or that the cut goes through.
func open(recs []session.Record) []string {
	var out []string
	ask := ""
	for _, r := range recs {
		m, ok := r.Body.(session.Message)
		if !ok {
			continue
		}
		switch {
		case session.IsTurn(m):
			if ask != "" {
				out = append(out, ask)
			}
			ask = text.Clip(plainText(m), 1200)
		case answers(m):
			ask = ""
		}
	}
	if ask != "" {
		out = append(out, ask)
	}
	return out
}

// answers reports whether m is a complete answer to what was asked before it.
func answers(m session.Message) bool {
	return m.Role == llm.Assistant && len(m.Calls()) == 0 && m.Stop != llm.StopError && m.Stop != llm.StopAborted && m.Text() != ""
}

var (
	sentence   = regexp.MustCompile(`[^.!?\n]+(?:[.](?:\S)[^.!?\n]*)*[.!?]?`)
	constraint = regexp.MustCompile(`(?i)\b(?:must|never|always|do not|don't|remember|note that|prefer|important|make sure|only use|no more than|at most|at least|required?)\b`)
	decision   = regexp.MustCompile(`(?i)\b(?:decid\w+|decision|agreed|let's (?:use|go|keep|do)|(?:we|i)(?: will|'ll) (?:use|keep|go with)|going with|chose|choose|settled|instead of)\b`)
)

// extract makes a summary of recs without a model, from the words in them: task, constraints, decisions, questions, identifiers, and what was
// asked last.
func extract(prev Summary, recs []session.Record) Summary {
	var s Summary
	s.Task, s.Earlier = past{prev: prev, all: recs}.task("")
	var asked []string
	ids := map[string]int{}
	var order []string
	for _, r := range recs {
		t := plainText(r.Body)
		m, isMessage := r.Body.(session.Message)
		result := isMessage && len(m.Results()) > 0
		for _, id := range identifiers(text.Clip(t, 16<<10)) {
			if ids[id]++; ids[id] == 1 {
				order = append(order, id)
			}
		}
		if result || t == "" || isMessage && window.Silent(m.Message) {
			continue
		}
		turn := session.IsTurn(r.Body)
		for _, line := range sentence.FindAllString(text.Clip(t, 8<<10), -1) {
			line = text.Clip(line, 240)
			if len(line) >= 12 && decision.MatchString(line) && !(turn && constraint.MatchString(line)) {
				s.Decisions = append(s.Decisions, line)
			}
		}
		switch {
		case turn:
			asked = append(asked, "- asked: "+text.OneLine(t, 200))
			s.Questions = nil
		case isMessage && m.Role == llm.Assistant:
			asked = append(asked, "  answered: "+text.OneLine(t, 200))
			s.Questions = questions(t)
		}
	}
	const lastAsked = 16
	if n := len(asked) - lastAsked; n > 0 {
		asked = asked[n:]
	}
	if len(asked) > 0 {
		s.Text = askedLast + strings.Join(asked, "\n")
	}
	s.Constraints, s.Decisions = demands(recs), union(nil, s.Decisions)
	for _, id := range order {
		if ids[id] > 1 || len(order) <= 60 {
			s.Identifiers = append(s.Identifiers, id)
		}
	}
	s.carry(prev)
	return s
}

// demands returns what the user wants to be remembered, kept to or avoided,
// in the user's words.
func demands(recs []session.Record) []string {
	var out []string
	for _, r := range recs {
		if !session.IsTurn(r.Body) {
			continue
		}
		for _, line := range sentence.FindAllString(text.Clip(plainText(r.Body), 8<<10), -1) {
			if line = text.Clip(line, 240); len(line) >= 12 && constraint.MatchString(line) {
				out = append(out, line)
			}
		}
	}
	return union(nil, out)
}

// questions returns the questions at the end of an answer.
func questions(answer string) []string {
	var out []string
	for _, line := range sentence.FindAllString(text.Tail(answer, 16<<10), -1) {
		if line = strings.TrimSpace(line); strings.HasSuffix(line, "?") {
			out = append(out, text.Clip(line, 240))
		}
	}
	return out
}
