package compact

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"goclaw/internal/text"
)

// Summary is the past of a conversation, structured. Task is what the user works
// on now, in the user's words if they are known: a later request replaces it, a
// follow-up does not.
type Summary struct {
	Task        string
	Earlier     []string // tasks
	Text        string   // what happened and where things stand
	Topics      []string
	Constraints []string
	Decisions   []string
	Requests    []string // what the user asked for and has not got
	Questions   []string
	Read        []string // files
	Written     []string
	Identifiers []string
	Pinned      []pin
}

// lists are the sections that are lists, in the order in which they are
// written, and the names that others give them.
var lists = []struct {
	title string
	of    func(*Summary) *[]string
	alias []string
}{
	{"Earlier tasks", func(s *Summary) *[]string { return &s.Earlier }, []string{"earliertasks", "earlier_tasks"}},
	{"Topics", func(s *Summary) *[]string { return &s.Topics }, nil},
	{"Constraints", func(s *Summary) *[]string { return &s.Constraints }, []string{"constraints & preferences", "preferences"}},
	{"Decisions", func(s *Summary) *[]string { return &s.Decisions }, []string{"key decisions", "keydecisions", "key_decisions"}},
	{"Open requests", func(s *Summary) *[]string { return &s.Requests }, []string{"openrequests", "open_requests", "requests"}},
	{"Open questions", func(s *Summary) *[]string { return &s.Questions }, []string{"openquestions", "open_questions", "questions"}},
	{"Files read", func(s *Summary) *[]string { return &s.Read }, []string{"filesread", "files_read", "read", "readfiles", "read_files"}},
	{"Files written", func(s *Summary) *[]string { return &s.Written }, []string{"fileswritten", "files_written", "written", "modifiedfiles", "modified_files"}},
	{"Identifiers", func(s *Summary) *[]string { return &s.Identifiers }, []string{"exact identifiers", "exactidentifiers", "ids"}},
}

var textTitles = []string{"summary", "text", "narrative", "progress"}
var taskTitles = []string{"task", "goal", "original task"}

// list returns the list that a title names, or nil.
func (s *Summary) list(title string) *[]string {
	for _, l := range lists {
		if isOne(title, l.alias) || isOne(title, []string{strings.ToLower(l.title)}) {
			return l.of(s)
		}
	}
	return nil
}

// isOne reports whether title is one of names, which are lower case.
func isOne(title string, names []string) bool {
	return slices.Contains(names, strings.ToLower(strings.TrimSpace(title)))
}

// String writes the summary as Markdown. parse reads it back.
func (s Summary) String() string {
	var b strings.Builder
	section := func(title string) {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "## %s\n", title)
	}
	if s.Task != "" {
		section("Task")
		b.WriteString(demote(s.Task) + "\n")
	}
	if s.Text != "" {
		section("Summary")
		b.WriteString(demote(s.Text) + "\n")
	}
	for _, l := range lists {
		items := *l.of(&s)
		if len(items) == 0 {
			continue
		}
		section(l.title)
		for _, it := range items {
			b.WriteString("- " + indent(it) + "\n")
		}
	}
	if len(s.Pinned) > 0 {
		section("Pinned")
		for _, p := range s.Pinned {
			fmt.Fprintf(&b, "<pinned id=%q bytes=\"%d\">\n%s\n</pinned>\n", p.ID, len(p.Text), p.Text)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// demote prevents a text from opening new sections.
func demote(text string) string {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "## ") && !strings.Contains(text, "<pinned ") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		switch {
		case strings.HasPrefix(l, "## "):
			lines[i] = "#" + l
		case strings.HasPrefix(l, "<pinned "):
			lines[i] = " " + l
		}
	}
	return strings.Join(lines, "\n")
}

func indent(item string) string {
	return strings.ReplaceAll(strings.TrimSpace(item), "\n", "\n  ")
}

// parse reads a summary, whoever wrote it. What is in no known section becomes
// part of the text.
func parse(text string) Summary {
	var s Summary
	var rest []string
	var into *[]string // the list that lines go to
	var para *[]string // or the text
	task, body := []string{}, []string{}
	para = &rest
	for len(text) > 0 {
		if p, after, ok := cutPinned(text); ok {
			s.Pinned = append(s.Pinned, p)
			text = after
			continue
		}
		line, after, _ := strings.Cut(text, "\n")
		text = after
		if line == extractMark {
			continue
		}
		if title, ok := strings.CutPrefix(line, "## "); ok {
			into, para = s.list(title), nil
			switch {
			case isOne(title, taskTitles):
				para = &task
			case isOne(title, textTitles):
				para = &body
			case strings.TrimSpace(title) == "Pinned":
				para = &[]string{}
			case into == nil:
				para = &rest
				rest = append(rest, "#"+line)
			}
			continue
		}
		if into == nil {
			*para = append(*para, line)
			continue
		}
		switch t := strings.TrimSpace(line); {
		case t == "":
		case strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* "):
			*into = append(*into, strings.TrimSpace(line[2:]))
		case strings.HasPrefix(line, "  ") && len(*into) > 0:
			(*into)[len(*into)-1] += "\n" + strings.TrimPrefix(line, "  ")
		default:
			*into = append(*into, t)
		}
	}
	s.Task = strings.TrimSpace(strings.Join(task, "\n"))
	s.Text = strings.TrimSpace(strings.Join(append(body, rest...), "\n"))
	return s
}

// cutPinned cuts a pinned record off the beginning of text.
func cutPinned(text string) (p pin, rest string, ok bool) {
	if !strings.HasPrefix(text, "<pinned id=") {
		return p, text, false
	}
	head, body, _ := strings.Cut(text, "\n")
	id, tail, found := strings.Cut(strings.TrimPrefix(head, "<pinned id="), " bytes=\"")
	if !found {
		return p, text, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(tail, "\">"))
	p.ID, _ = strconv.Unquote(id)
	if err != nil || n < 0 || n > len(body) || !strings.HasPrefix(body[n:], "\n</pinned>") {
		return p, text, false
	}
	p.Text = body[:n]
	rest = strings.TrimPrefix(strings.TrimPrefix(body[n:], "\n</pinned>"), "\n")
	return p, rest, true
}

// carry adds to s what an earlier summary says and s does not, so that the
// second compaction keeps the substance of the first. The task stays if s knows none.
func (s *Summary) carry(prev Summary) {
	if s.Task == "" {
		s.Task = prev.Task
	}
	for _, l := range lists {
		switch l.title {
		case "Open requests", "Open questions": // they may have been answered since
			continue
		case "Earlier tasks": // see Cut.task
			continue
		}
		*l.of(s) = union(*l.of(&prev), *l.of(s))
	}
	if then := flat(prev.Text); then != "" && !tells(s.Text, then) {
		s.Text = strings.TrimSpace(s.Text + earlier + then)
	}
}

// flat returns the text of an earlier summary, with what it has from those
// before it, as one text.
func flat(text string) string {
	text = strings.TrimSpace(text)
	for strings.HasPrefix(text, "Earlier: ") {
		text = strings.TrimPrefix(text, "Earlier: ")
	}
	return strings.TrimSpace(strings.NewReplacer(earlier, "\n", askedLast, "").Replace(text))
}

// askedLast opens the text of an extract.
const askedLast = "What was asked last:\n"

// earlier separates the new text from the text of earlier summaries.
const earlier = "\n\nEarlier: "

// clipText shortens a text to n bytes: both its new part and its earlier part.
func clipText(s string, n int) string {
	now, then, ok := strings.Cut(s, earlier)
	if !ok || len(s) <= n {
		return text.Clip(s, n)
	}
	k := min(len(then), max(n/3, n-len(now)))
	return text.Clip(now, n-k) + earlier + text.Clip(then, k)
}

// tells reports whether text still says what old says: whether it has a third of
// its telling words.
func tells(text, old string) bool {
	have := map[string]bool{}
	for _, w := range telling(text) {
		have[w] = true
	}
	n, found := 0, 0
	for _, w := range telling(old) {
		n++
		if have[w] {
			found++
		}
	}
	if n == 0 {
		return strings.Contains(text, old)
	}
	return 3*found >= n
}

// says reports whether text has most of the telling words of a sentence.
func says(text, sentence string) bool {
	text = strings.ToLower(text)
	n, found := 0, 0
	for _, w := range telling(sentence) {
		n++
		if strings.Contains(text, w) {
			found++
		}
	}
	return n > 0 && 4*found >= 3*n
}

// telling returns the words of a text that are long or have digits.
func telling(text string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 0x7f)
	}) {
		if len(w) > 5 || strings.ContainsAny(w, "0123456789") {
			out = append(out, w)
		}
	}
	return out
}

// union returns a and what b has in addition, ignoring case, spaces and marks.
func union(a, b []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, list := range [][]string{a, b} {
		for _, it := range list {
			k := strings.ToLower(strings.Join(strings.Fields(strings.Trim(it, " .`*-")), " "))
			if k != "" && !seen[k] {
				seen[k] = true
				out = append(out, it)
			}
		}
	}
	return out
}

// fit shortens s until count(s) is at most limit. What takes the most room is
// shortened most: files and identifiers before decisions and constraints, the
// oldest of a list before the newest, and the end of the text. Open requests and
// pins are cut last, and the task may have a third of the limit.
func (s *Summary) fit(limit int, count func(string) int) {
	lists := []struct {
		of     *[]string
		weight int
	}{
		{&s.Earlier, 1}, {&s.Topics, 4}, {&s.Read, 3}, {&s.Written, 3}, {&s.Identifiers, 3}, {&s.Questions, 2}, {&s.Decisions, 1}, {&s.Constraints, 1},
	}
	if n := count(s.Task); n > limit/3 && count(s.String()) > limit { // leave room for the rest
		s.Task = text.Clip(s.Task, len(s.Task)*(limit/3)/n)
	}
	for {
		text := s.String()
		n := count(text)
		if n <= limit {
			return
		}
		shed := (n-limit)*len(text)/n + 1 // bytes to go
		for shed > 0 {
			most, which := len(s.Text), -1
			if most < 240 {
				most = 0
			}
			for i, l := range lists {
				if size := l.weight * listBytes(*l.of); size > most {
					most, which = size, i
				}
			}
			switch {
			case most == 0:
				s.shorten(limit, count)
				return
			case which < 0:
				less := max(200, len(s.Text)-max(shed, len(s.Text)/5))
				was := len(s.Text)
				s.Text = clipText(s.Text, less)
				shed -= max(1, was-len(s.Text))
			default:
				of := lists[which].of
				shed -= len((*of)[0]) + 3
				if *of = (*of)[1:]; len(*of) == 0 {
					*of = nil
				}
			}
		}
	}
}

// shorten cuts what is left when the lists are empty.
func (s *Summary) shorten(limit int, count func(string) int) {
	for n := 400; n >= 25 && count(s.String()) > limit; n /= 2 {
		s.Text, s.Task = clipText(s.Text, n), text.Clip(s.Task, n)
		if len(s.Requests) > 1 {
			s.Requests = s.Requests[len(s.Requests)/2:]
		}
		for i := range s.Requests {
			s.Requests[i] = text.Clip(s.Requests[i], n)
		}
	}
}

func listBytes(list []string) int {
	n := 0
	for _, it := range list {
		n += len(it) + 3
	}
	return n
}
