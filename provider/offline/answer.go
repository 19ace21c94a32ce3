package offline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// What this model says about itself. The first answer of a conversation and
// every one that cannot help hold whatIAm; that it was said is read from there.
const (
	whatIAm = "not a language model"
	intro   = "I am goclaw's built-in offline model, " + whatIAm + ": I find and quote what was said, and follow a few plain requests. Say \"help\" for the list."
	cannot  = "I am the built-in offline model, " + whatIAm + ", and cannot work that out."
	connect = "To talk to a real model, set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start a local Ollama, and start goclaw again."
)

// How answers begin that only repeat what stands elsewhere. They are not
// searched.
const (
	foundOpening   = "What I found about "
	nothingOpening = "I found nothing about "
	recapOpening   = "What was said so far"
	helpOpening    = "I can do this without a network:"
	wordsOpening   = "Your words were"
)

func isMine(text string) bool {
	for _, o := range []string{foundOpening, nothingOpening, recapOpening, helpOpening, wordsOpening} {
		if strings.HasPrefix(text, o) {
			return true
		}
	}
	return strings.Contains(text, cannot)
}

// script carries out a wish. It returns the answer, or anything at all while
// calls are open.
type script func(*turn, wish) string

func line(s string) script { return func(*turn, wish) string { return s } }

var scripts = map[kind]script{
	statement: (*turn).fallback,
	greet:     line("Hello! Ask me what was said about something, or say \"help\"."),
	thank:     line("You are welcome."),
	bye:       line("Goodbye. The conversation is kept; it goes on where it stopped."),
	nod:       line("All right. I act on plain requests only; say \"help\" for the list."),
	whoami: line("I am goclaw's built-in offline model, " + whatIAm + ": no network, no key, no guessing. " +
		"I look for words in this conversation, in memory files and in the workspace, and quote what I find. " + connect),
	help:        (*turn).help,
	clock:       (*turn).clock,
	recap:       (*turn).recap,
	firstWords:  (*turn).words,
	lastWords:   (*turn).words,
	memories:    (*turn).memories,
	run:         (*turn).run,
	grep:        (*turn).grep,
	write:       (*turn).write,
	appendTo:    (*turn).append,
	create:      (*turn).create,
	replace:     (*turn).replace,
	remember:    (*turn).remember,
	forget:      (*turn).forget,
	findIn:      (*turn).findIn,
	list:        (*turn).list,
	read:        (*turn).read,
	digest:      (*turn).digest,
	openSession: (*turn).openSession,
	recall:      (*turn).recall,
}

// reply returns the answer, unless it leaves calls open.
func (t *turn) reply() string {
	var text string
	if t.asked == "" {
		text = t.unasked()
	} else {
		w := understand(t.asked)
		text = scripts[w.kind](t, w)
	}
	if len(t.open) > 0 {
		return ""
	}
	if text == noReply {
		return text
	}
	if !t.told && !strings.Contains(text, whatIAm) {
		text += "\n\n" + intro
	}
	return strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
}

// noReply is the answer to a notice that asks for nothing to be shown.
const noReply = "NO_REPLY"

// unasked answers where there are no words of the user.
func (t *turn) unasked() string {
	switch {
	case t.picture:
		return "I cannot see pictures: I am the built-in offline model, " + whatIAm + ". " + connect
	case strings.Contains(t.notice, noReply):
		return noReply
	case isNotice(t.notice):
		return "I have seen the notice. What is to be kept I write down when you say \"remember that ...\"."
	}
	return "I do not see what was asked; the beginning of it is no longer in view. Please say it again."
}

func (t *turn) help(wish) string {
	var b strings.Builder
	b.WriteString(helpOpening + "\n")
	for _, l := range []struct{ tool, text string }{
		{"", "find what was said: \"what did I say about X\", \"what did we decide about X\", \"search X\""},
		{"", "go over the conversation: \"recap\", \"what did I just say\""},
		{"write_file", "remember: \"remember that X\" (it goes to " + memoryDir + "/, by day); \"what do you remember\""},
		{"read_file", "read: \"read F\", \"read F lines 10-20\", \"find X in F\""},
		{"list_directory", "list: \"list\", \"list D\", \"tree\""},
		{"write_file", "write: \"write F: TEXT\", \"append TEXT to F\""},
		{"edit_file", "change: \"replace A with B in F\""},
		{"bash", "run a command: \"$ CMD\", \"run CMD\", \"which files mention X\""},
		{"get_current_time", "tell the time: \"what time is it\""},
	} {
		if _, ok := t.tools[l.tool]; ok || l.tool == "" {
			b.WriteString("- " + l.text + "\n")
		}
	}
	b.WriteString("\nI am " + whatIAm + ": I do not reason or write. " + connect)
	return b.String()
}

func (t *turn) fallback(w wish) string {
	text := cannot
	lib := library{lex: lexicon{}}
	lib.conversation(t)
	if hits := lib.find(lib.query(w.text), 1); len(hits) > 0 && hits[0].cover >= 0.3 {
		text += " The closest to it in this conversation:\n\n" + strings.TrimSpace(quote(hits[0], nil))
	}
	if t.picture {
		text = "I cannot see pictures. " + text
	}
	return text + "\n\nWhat you said is kept: ask \"what did I say about ...\" at any time, or say \"remember that ...\" to have it in memory. " + connect
}

// unsaid drops the lines of a search that repeat this conversation, which is
// quoted already: what a line says stands behind its last colon and space.
func (t *turn) unsaid(found string) string {
	var out []string
	for line := range strings.Lines(found) {
		_, says, ok := strings.Cut(line, "]: ")
		says = strings.TrimSpace(says)
		if ok && says != "" && t.said(says) {
			continue
		}
		if strings.TrimSpace(line) != "" && strings.TrimSpace(line) != "…" {
			out = append(out, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(out, "\n")
}

// said reports whether the beginning of text was said in this conversation,
// or is a call or a result of it.
func (t *turn) said(text string) bool {
	begin := strings.Join(strings.Fields(text), " ")
	begin = begin[:min(len(begin), 40)]
	for _, u := range t.past {
		past := strings.Join(strings.Fields(u.text), " ")
		if strings.HasPrefix(past, begin) || u.call.Name != "" && strings.HasPrefix(begin, u.call.Name+" ") {
			return true
		}
	}
	return false
}

// recall looks for what was said or noted and quotes it.
func (t *turn) recall(w wish) string {
	lib := library{lex: lexicon{}}
	lib.conversation(t)
	q := lib.query(w.text)
	if w.attached != "" {
		lib.add(passage{who: aside, weight: 1.2, where: "what you just sent", label: "What you just sent says:", thread: -1, turn: len(t.past)}, w.attached, 0)
	}
	if len(q.words) == 0 {
		return cannot + " Name what you look for, as in \"what did I say about the dentist\". " + connect
	}
	mem, ok := t.memory(w.text)
	if !ok {
		return ""
	}
	for i, f := range mem.files {
		lib.add(passage{who: aside, weight: 1.2, where: f.path, label: "{} says:", thread: -2 - i, turn: -1}, f.text, 1)
	}
	hits := lib.find(q, maxHits)
	enough := q.enough()
	var b strings.Builder
	fits := len(hits) > 0 && hits[0].cover >= enough
	if fits || len(mem.found) > 0 {
		fmt.Fprintf(&b, "%s%q:\n\n", foundOpening, q.topic())
	}
	if fits {
		said := false
		for _, h := range hits {
			if h.cover >= enough {
				b.WriteString(quote(h, q.words))
				said = said || h.turn >= 0
			}
		}
		if q.when && said {
			b.WriteString("Messages have no times in what I see, only their order.\n\n")
		}
	}
	for _, f := range mem.found {
		text := f.text
		if fits && f.tool == "session_search" {
			text = t.unsaid(text)
		}
		if text != "" {
			fmt.Fprintf(&b, "%s says:\n%s\n", f.tool, blockquote(text, 1500))
		}
	}
	if b.Len() > 0 {
		for _, p := range mem.problems {
			b.WriteString(p + "\n")
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%s%q in %s.\n\n", nothingOpening, q.topic(), strings.Join(mem.looked, ", "))
	if made := lib.decisions(maxHits); q.decide && len(made) > 0 {
		b.WriteString("These are decisions that I can see:\n\n")
		for _, h := range made {
			b.WriteString(quote(h, q.words))
		}
		return b.String()
	}
	if len(hits) > 0 {
		b.WriteString("The closest is this:\n\n" + quote(hits[0], q.words))
	}
	b.WriteString(cannot + " " + connect)
	return b.String()
}

// quote says where a passage stands and what it says.
func quote(h hit, words []word) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n> %s\n", h.label, excerpt(h.text, maxQuote, words))
	if h.reply != "" {
		by := "The answer was:"
		if h.by == user {
			by = "You replied:"
		}
		fmt.Fprintf(&b, "\n%s\n> %s\n", by, excerpt(h.reply, maxQuote, words))
	}
	if n := min(3, len(h.also)); n > 0 {
		fmt.Fprintf(&b, "\n(The same stands in %s.)\n", strings.Join(h.also[:n], ", "))
	}
	b.WriteString("\n")
	return b.String()
}

// blockquote marks text as quoted, at most max bytes of it, whole lines.
func blockquote(text string, max int) string {
	var b strings.Builder
	for l := range strings.Lines(strings.TrimSpace(text)) {
		if b.Len()+len(l) > max {
			if b.Len() == 0 {
				fmt.Fprintf(&b, "> %s\n", clip(strings.TrimRight(l, "\r\n"), max))
			}
			b.WriteString("> …\n")
			break
		}
		b.WriteString("> " + strings.TrimRight(l, "\r\n") + "\n")
	}
	return b.String()
}

// Where memory is kept in the workspace.
const (
	memoryDir  = "memory"
	memoryFile = "MEMORY.md"
	newest     = 3   // files of memoryDir that are read
	noteLines  = 200 // lines that are read of each
)

// note is the call that reads a memory file.
func note(p string) wanted {
	return call("read_file", with(p, "path"), with(noteLines, "limit"))
}

// memory is what was looked up outside of the conversation.
type memory struct {
	files    []file
	found    []found // by search tools
	looked   []string
	problems []string
}

type file struct{ path, text string }

type found struct{ tool, text string }

// memory searches memory and other sessions by the tools made for that, or
// else reads the memory files: MEMORY.md and the newest days.
func (t *turn) memory(question string) (memory, bool) {
	m := memory{looked: []string{"this conversation"}}
	var searches []wanted
	for _, name := range []string{"memory_search", "session_search"} {
		if s := call(name, with(question, "query", "q", "text")); question != "" && t.can(s) {
			searches = append(searches, s)
		}
	}
	outs, ok := t.all(searches...)
	if !ok {
		return m, false
	}
	covered := false // memory was searched
	for i, o := range outs {
		name := searches[i].name
		if o.failed {
			m.problems = append(m.problems, name+" failed: "+o.text)
			continue
		}
		m.found = append(m.found, found{name, o.text})
		covered = covered || name == "memory_search"
	}
	if covered {
		return m, true
	}
	t.spent += len(searches)
	return t.memoryFiles(m)
}

func (t *turn) memoryFiles(m memory) (memory, bool) {
	dir, main := call("list_directory", with(memoryDir, "path")), note(memoryFile)
	if !t.can(main) {
		return m, true
	}
	calls := []wanted{main}
	if t.can(dir) {
		calls = append(calls, dir)
	}
	outs, ok := t.all(calls...)
	if !ok {
		return m, false
	}
	paths := []string{memoryFile}
	if len(outs) == 2 {
		if outs[1].failed {
			m.looked = append(m.looked, memoryDir+"/ ("+outs[1].text+")")
		} else {
			for _, n := range newestIn(outs[1].text, maxCalls-2-t.spent) {
				paths = append(paths, memoryDir+"/"+n)
			}
		}
	}
	calls = calls[:0]
	for _, p := range paths {
		calls = append(calls, note(p))
	}
	if outs, ok = t.all(calls...); !ok {
		return m, false
	}
	for i, o := range outs {
		if o.failed {
			m.looked = append(m.looked, fmt.Sprintf("%s (%s)", paths[i], o.text))
			continue
		}
		m.looked = append(m.looked, paths[i])
		m.files = append(m.files, file{paths[i], o.text})
	}
	return m, true
}

// newestIn returns the Markdown files of a listing that were named by the
// latest days.
func newestIn(listing string, limit int) []string {
	var names []string
	for _, n := range namesIn(listing) {
		if strings.HasSuffix(n, ".md") && !strings.Contains(n, "/") {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names[:max(0, min(newest, limit, len(names)))]
}

// namesIn returns the names in a listing: a line each, the size two spaces
// behind.
func namesIn(listing string) []string {
	var names []string
	for l := range strings.Lines(listing) {
		name, _, _ := strings.Cut(strings.TrimSpace(l), "  ")
		if name != "" {
			names = append(names, strings.TrimSuffix(name, "/"))
		}
	}
	return names
}

func (t *turn) memories(wish) string {
	m, ok := t.memoryFiles(memory{})
	if !ok {
		return ""
	}
	var b strings.Builder
	for _, f := range m.files {
		if strings.TrimSpace(f.text) != "" {
			fmt.Fprintf(&b, "%s says:\n%s\n", f.path, blockquote(f.text, 2000))
		}
	}
	if b.Len() == 0 {
		if len(m.looked) == 0 {
			return "I have no tool here to read memory files with."
		}
		return fmt.Sprintf("There is nothing in memory yet. I looked at %s.", strings.Join(m.looked, ", "))
	}
	return b.String()
}

// remember adds a line to the day's memory file. What the file held is never
// put at risk: it is added to, or written anew only if it was read whole.
func (t *turn) remember(w wish) string {
	text := w.text
	if isPointer(text) {
		if text = t.previous(); text == "" {
			return "There is nothing before this that I could note. Say \"remember that ...\"."
		}
	}
	if !t.can(call("write_file", with("", "path"), with("", "content"))) {
		return "I have no tool here to write a memory file with. What you said is kept in this conversation, and I will find it there."
	}
	target, heading, why := memoryFile, "# Memory\n\n", ""
	if now := call("get_current_time"); t.can(now) {
		outs, ok := t.all(now)
		if !ok {
			return ""
		}
		if day := dayIn.FindString(outs[0].text); day != "" && !outs[0].failed {
			target, heading = memoryDir+"/"+day+".md", "# "+day+"\n\n"
		} else {
			why = fmt.Sprintf(" (not under a day: the clock said %q)", clip(outs[0].text, 80))
		}
	}
	bullet := "- " + strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool { return r == '\n' || r == '\r' }), "\n  ") + "\n"
	old, there, ok := t.look(target, true)
	if !ok {
		return ""
	}
	if !old.failed {
		n := 0
		for l := range strings.Lines(old.text) {
			if n++; strings.TrimRight(l, "\r\n")+"\n" == bullet {
				return fmt.Sprintf("That is in memory already, %s:%d:\n%s", target, n, blockquote(bullet, maxQuote))
			}
		}
	}
	if !there {
		bullet = heading + bullet
	}
	problem, _, ok := t.addTo(target, bullet, old, there)
	if !ok {
		return ""
	}
	if problem != "" {
		return "I could not note it: " + problem
	}
	return fmt.Sprintf("Noted in %s%s:\n%s", target, why, blockquote(strings.TrimPrefix(bullet, heading), 600))
}

var dayIn = regexp.MustCompile(`\d{4}-\d{2}-\d{2}`)

// isPointer reports whether words only point at something said before.
func isPointer(s string) bool {
	switch strings.ToLower(strings.Trim(s, " .!")) {
	case "", "this", "that", "it":
		return true
	}
	return false
}

// previous returns what the user said before this.
func (t *turn) previous() string {
	for _, u := range slices.Backward(t.past) {
		if u.who == user {
			return u.text
		}
	}
	return ""
}

// look reads a file that may not be there. If adding is all that follows and
// the tool can add, a few lines do and the words of a failure say whether it is
// there. Else it is read whole, and one that cannot be read but stands in its
// directory is there.
func (t *turn) look(p string, add bool) (old outcome, there, ok bool) {
	add = add && t.takes("write_file", "append")
	r := call("read_file", with(p, "path"))
	if add {
		r = note(p)
	}
	outs, ok := t.all(r)
	old = outs[0]
	if !ok || !old.failed {
		return old, true, ok
	}
	if dir := call("list_directory", with(path.Dir(p), "path")); !add && t.can(dir) {
		outs, ok := t.all(dir)
		there = ok && !outs[0].failed && slices.Contains(namesIn(outs[0].text), path.Base(p))
		return old, there, ok
	}
	return old, !saysAbsent.MatchString(old.text), true
}

var saysAbsent = regexp.MustCompile(`(?i)not exist|no such file|not found`)

// addTo adds text to the end of a file that was looked at. It returns what
// went wrong, or what the tool said.
func (t *turn) addTo(p, text string, old outcome, there bool) (problem, said string, ok bool) {
	args := []arg{with(p, "path"), with(text, "content")}
	switch {
	case t.takes("write_file", "append"):
		args = append(args, with(true, "append"))
	case !there:
	case old.failed:
		return old.text, "", true
	case !isWhole(old):
		return p + " is too long for me to read whole, and I will not write it anew without the rest.", "", true
	default:
		before := strings.TrimRight(strings.TrimSuffix(old.text, emptyFile), "\n")
		if before != "" {
			text = before + "\n" + text
		}
		args[1] = with(text, "content")
	}
	o, ok := t.one("write_file", args...)
	if !ok {
		return "", "", false
	}
	if o.failed {
		return o.text, "", true
	}
	return "", o.text, true
}

const emptyFile = "(the file is empty)"

// isWhole reports whether a read shows a file as it is. Notes of what was left
// out stand in brackets on the last line; a file that ends so by itself is
// given up with them.
func isWhole(o outcome) bool {
	text := strings.TrimRight(o.text, "\n")
	last := text[strings.LastIndex(text, "\n")+1:]
	return !o.failed && !o.picture && !strings.Contains(text, "bytes cut") && !(strings.HasPrefix(last, "[") && strings.HasSuffix(last, "]"))
}

func (t *turn) forget(w wish) string {
	lib := library{lex: lexicon{}}
	q := lib.query(w.text)
	m, ok := t.memoryFiles(memory{})
	if !ok {
		return ""
	}
	for i, f := range m.files {
		lib.add(passage{who: aside, weight: 1, where: f.path, label: "{} says:", thread: i}, f.text, 1)
	}
	var b strings.Builder
	b.WriteString("I do not delete: the conversation is a log that is only added to, and memory files are yours to edit.\n\n")
	for _, h := range lib.find(q, maxHits) {
		if h.cover >= 0.5 {
			b.WriteString(quote(h, q.words))
		}
	}
	if !strings.Contains(b.String(), ">") {
		fmt.Fprintf(&b, "In memory I find nothing about %q. To drop a whole conversation, use /delete.", clip(w.text, 120))
	} else {
		b.WriteString("To take a line out, say: replace `THE LINE` with nothing in THE FILE.")
	}
	return b.String()
}

var zone = regexp.MustCompile(`^(?:[A-Za-z_]+/[A-Za-z_/+-]+|UTC|GMT)$`)

func (t *turn) clock(w wish) string {
	var args []arg
	note := ""
	if zone.MatchString(w.path) {
		args = append(args, with(w.path, "timezone"))
	} else if w.path != "" {
		note = fmt.Sprintf("\n\nThat is the time here. For %s give its zone, as in \"what time is it in Asia/Tokyo\".", w.path)
	}
	if !t.can(call("get_current_time", args...)) {
		return "I have no clock of my own, and no tool here to ask for the time."
	}
	o, ok := t.one("get_current_time", args...)
	switch {
	case !ok:
		return ""
	case o.failed:
		return "I asked for the time and was told: " + o.text
	}
	return "It is " + o.text + "." + note
}

// words quotes the user's first or last words.
func (t *turn) words(w wish) string {
	var first, last *utterance
	for i, u := range t.past {
		if u.who == user {
			if last = &t.past[i]; first == nil {
				first = last
			}
		}
	}
	u := last
	if w.kind == firstWords {
		u = first
	}
	if u == nil {
		return "You have said nothing before this that I can see."
	}
	return fmt.Sprintf("%s (your message %d of %d):\n%s", wordsOpening, u.n, t.spoken+1, blockquote(u.text, 1500))
}

const maxRecap = 25 // requests that a recap shows

// recap is a digest: the user's requests in order, each with the first line of
// what came of it.
func (t *turn) recap(wish) string {
	type exchange struct {
		n       int
		asked   string
		outcome string
		tools   []string
	}
	var all []*exchange
	var before []string
	for _, u := range t.past {
		switch u.who {
		case summary:
			before = append(before, u.text)
		case user:
			all = append(all, &exchange{n: u.n, asked: u.text})
		}
		if len(all) == 0 {
			continue
		}
		e := all[len(all)-1]
		switch u.who {
		case assistant:
			if s := firstLine(u.text); s != "" {
				e.outcome = s
			}
		case tool:
			s := nameCall(u.call)
			if u.bad {
				s += " (failed)"
			}
			e.tools = append(e.tools, s)
		}
	}
	if len(all)+len(before) == 0 {
		return "Nothing was said before this that I can see."
	}
	var b strings.Builder
	b.WriteString(recapOpening + ", in extracts:\n\n")
	for _, s := range before {
		fmt.Fprintf(&b, "Before that, by its summary:\n%s\n", blockquote(s, 1200))
	}
	for i, e := range all {
		if left := len(all) - maxRecap; left > 0 && i > 0 && i <= left {
			if i == 1 {
				fmt.Fprintf(&b, "   (%d requests left out)\n", left)
			}
			continue
		}
		fmt.Fprintf(&b, "%d. %s\n", e.n, excerpt(e.asked, 140, nil))
		switch {
		case e.outcome != "":
			fmt.Fprintf(&b, "   → %s\n", excerpt(e.outcome, 140, nil))
		case len(e.tools) > 0:
			fmt.Fprintf(&b, "   → called %s\n", excerpt(strings.Join(e.tools, ", "), 140, nil))
		default:
			b.WriteString("   → no answer\n")
		}
	}
	return b.String()
}

// firstLine returns the first line that says something, if possible one that
// does not only announce the next.
func firstLine(text string) string {
	first := ""
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(l), "#>*- "))
		if l == "" || strings.HasPrefix(l, "```") {
			continue
		}
		if !strings.HasSuffix(l, ":") {
			return l
		}
		if first == "" {
			first = l
		}
	}
	return first
}
