package offline

import (
	"fmt"
	"regexp"
	"strings"
)

// What is shown of a file or of a command's output.
const (
	maxShown      = 6000
	maxShownLines = 150
)

// fence puts text between marks that it does not hold itself.
func fence(text string) string {
	marks := "```"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	return marks + "\n" + strings.TrimRight(text, "\n") + "\n" + marks
}

// head returns the lines of text that are shown, and how many they are of all.
func head(text string) (shown string, lines, of int) {
	var b strings.Builder
	for l := range strings.Lines(text) {
		of++
		if lines == of-1 && lines < maxShownLines && b.Len()+len(l) <= maxShown {
			b.WriteString(l)
			lines++
		}
	}
	if lines == 0 && of > 0 {
		return clip(text, maxShown) + " …", 1, of
	}
	return b.String(), lines, of
}

func (t *turn) read(w wish) string {
	r := call("read_file", with(w.path, "path"))
	if !t.can(r) {
		r = call("memory_get", with(w.path, "path", "file"))
	}
	if !t.can(r) {
		return "I have no tool here to read files with."
	}
	first, limit := max(1, w.from), maxShownLines
	if w.from > 0 {
		r.args = append(r.args, with(w.from, "offset", "from", "from_line"))
	}
	if w.to >= first {
		limit = min(limit, w.to-first+1)
	}
	r.args = append(r.args, with(limit, "limit", "lines"))
	outs, ok := t.all(r)
	if !ok {
		return ""
	}
	o := outs[0]
	if o.failed {
		// A directory is asked for in the same words.
		if dir := call("list_directory", with(w.path, "path")); w.from == 0 && t.can(dir) {
			l, ok := t.all(dir)
			if !ok {
				return ""
			}
			if !l[0].failed {
				return listing(w.path, l[0].text)
			}
		}
		if !pathLike(&w) {
			// "what is in the budget" may mean no file.
			t.spent, w.kind, w.text = 2, recall, t.asked
			return t.recall(w)
		}
		return fmt.Sprintf("I could not read %s: %s", w.path, o.text)
	}
	if o.picture {
		return fmt.Sprintf("%s is a picture (%s). I cannot see pictures.", w.path, o.text)
	}
	body, more := o.text, ""
	if m := readOn.FindStringSubmatch(body); m != nil {
		body, more = strings.TrimSuffix(body, m[0]), m[1]
	}
	shown, n, of := head(body)
	text := w.path + ":\n" + fence(shown)
	if n < of || more != "" && (w.to == 0 || n < w.to-first+1) {
		text += fmt.Sprintf("\n\nThat is as far as line %d%s; say \"read %s from line %d\" to go on.", first+n-1, more, w.path, first+n)
	}
	return text
}

// readOn is how read_file says that there is more.
var readOn = regexp.MustCompile(`\n\[lines? [^\n]*?( of \d+)?[;,][^\n]*\]\n?$`)

func (t *turn) list(w wish) string {
	r := call("list_directory", with(w.path, "path"))
	if !t.can(r) {
		return "I have no tool here to list directories with."
	}
	if w.tree {
		r.args = append(r.args, with(3, "depth"))
	}
	outs, ok := t.all(r)
	switch {
	case !ok:
		return ""
	case !outs[0].failed:
		return listing(w.path, outs[0].text)
	case !pathLike(&w) && w.path != ".":
		// "list decisions" means no directory.
		t.spent, w.kind, w.text = 1, recall, w.path
		return t.recall(w)
	}
	return fmt.Sprintf("I could not list %s: %s", w.path, outs[0].text)
}

func listing(path, text string) string {
	if path == "." {
		path = "The workspace"
	}
	shown, n, of := head(text)
	out := path + ":\n" + fence(shown)
	if n < of {
		out += fmt.Sprintf("\n\n%d entries more are not shown.", of-n)
	}
	return out
}

// file returns what a file holds, or what is to be said instead: why it cannot
// be read, or nothing while it is being read.
func (t *turn) file(path string) (text, why string) {
	if !t.can(call("read_file", with(path, "path"))) {
		return "", "I have no tool here to read files with."
	}
	o, ok := t.one("read_file", with(path, "path"))
	switch {
	case !ok:
		return "", ""
	case o.failed:
		return "", fmt.Sprintf("I could not read %s: %s", path, o.text)
	case o.text == "":
		return "", path + " is empty."
	}
	return o.text, ""
}

// digest shows what a file is about as far as that can be told without
// understanding it.
func (t *turn) digest(w wish) string {
	text, why := t.file(w.path)
	if text == "" {
		return why
	}
	var headings, lines []string
	n := 0
	for l := range strings.Lines(text) {
		n++
		l = strings.TrimRight(l, " \t\r\n")
		switch {
		case strings.HasPrefix(l, "#") && len(headings) < 30:
			headings = append(headings, clip(l, 200))
		case l != "" && len(lines) < 12:
			lines = append(lines, clip(l, 300))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "I cannot summarise, being %s. %s has %d lines that I was shown.", whatIAm, w.path, n)
	if len(headings) > 0 {
		b.WriteString(" Its headings:\n" + blockquote(strings.Join(headings, "\n"), 3000))
	}
	if len(lines) > 0 {
		b.WriteString("\nIt begins:\n" + blockquote(strings.Join(lines, "\n"), 3000))
	}
	return b.String()
}

const maxLines = 20 // of a file that are quoted for one search

// findIn quotes the lines of a file that hold the words.
func (t *turn) findIn(w wish) string {
	held, why := t.file(w.path)
	if held == "" {
		return why
	}
	var literal, stems []string
	lex := lexicon{}
	want := lex.words(w.old)
	n := 0
	for l := range strings.Lines(held) {
		n++
		l = strings.TrimRight(l, "\r\n")
		line := fmt.Sprintf("%s:%d: %s", w.path, n, excerpt(l, maxQuote, want))
		if strings.Contains(strings.ToLower(l), strings.ToLower(w.old)) {
			literal = append(literal, line)
		} else if holdsAll(lex.words(l), want) {
			stems = append(stems, line)
		}
	}
	hits := append(literal, stems...)
	if len(hits) == 0 {
		return fmt.Sprintf("%q is in none of the %d lines of %s that I was shown.", w.old, n, w.path)
	}
	text := blockquote(strings.Join(hits[:min(maxLines, len(hits))], "\n"), maxShown)
	if len(hits) > maxLines {
		text += fmt.Sprintf("\n%d lines more hold it.", len(hits)-maxLines)
	}
	return fmt.Sprintf("%q in %s:\n%s", w.old, w.path, text)
}

// holdsAll reports whether every word of want is among words.
func holdsAll(words, want []word) bool {
	have := map[string]bool{}
	for _, w := range words {
		have[w.stem] = true
	}
	for _, w := range want {
		if !have[w.stem] {
			return false
		}
	}
	return len(want) > 0
}

const noWriting = "I have no tool here to write files with."

// write puts text into a file. What the file held is read first, so that it
// stays in the log.
func (t *turn) write(w wish) string {
	text := w.text
	if isPointer(text) {
		if text = t.previous(); text == "" {
			return fmt.Sprintf("There is nothing before this that I could write to %s.", w.path)
		}
	}
	if !t.can(call("write_file", with("", "path"), with("", "content"))) {
		return noWriting
	}
	before := ""
	if t.can(call("read_file", with(w.path, "path"))) {
		old, ok := t.one("read_file", with(w.path, "path"))
		if !ok {
			return ""
		}
		if !old.failed {
			before = " What it held before was read first, and stands in the log of this conversation"
			if !isWhole(old) {
				before += " as far as it could be read"
			}
			before += "."
		}
	}
	o, ok := t.one("write_file", with(w.path, "path"), with(content(text), "content"))
	switch {
	case !ok:
		return ""
	case o.failed:
		return fmt.Sprintf("I could not write %s: %s", w.path, o.text)
	}
	return "Done: " + o.text + "." + before
}

func (t *turn) append(w wish) string {
	text := w.text
	if isPointer(text) {
		text = t.previous()
	}
	if text == "" {
		return fmt.Sprintf("There is nothing before this that I could add to %s.", w.path)
	}
	if !t.can(call("write_file", with("", "path"), with("", "content"))) {
		return noWriting
	}
	old, there, ok := t.look(w.path, true)
	if !ok {
		return ""
	}
	problem, said, ok := t.addTo(w.path, content(text), old, there)
	switch {
	case !ok:
		return ""
	case problem != "":
		return fmt.Sprintf("I could not add to %s: %s", w.path, problem)
	}
	return "Done: " + said + "."
}

// create makes a file, never in the place of another.
func (t *turn) create(w wish) string {
	if !t.can(call("write_file", with("", "path"), with("", "content"))) {
		return noWriting
	}
	_, there, ok := t.look(w.path, false)
	switch {
	case !ok:
		return ""
	case there:
		return fmt.Sprintf("%s is there already; I left it as it is. To replace what it holds, say \"write %s: TEXT\".", w.path, w.path)
	}
	o, ok := t.one("write_file", with(w.path, "path"), with(content(w.text), "content"))
	switch {
	case !ok:
		return ""
	case o.failed:
		return fmt.Sprintf("I could not make %s: %s", w.path, o.text)
	}
	return "Done: " + o.text + "."
}

var fenced = regexp.MustCompile("(?s)^```[^\n]*\n(.*?)\n?```$")

// content is a text as it is written to a file: out of its quotes or code
// marks, with a line break at its end.
func content(text string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
	if m := fenced.FindStringSubmatch(text); m != nil {
		text = m[1]
	} else if q := unquote(text); !strings.ContainsAny(q, "\"`") {
		text = q
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

func (t *turn) replace(w wish) string {
	args := []arg{with(w.path, "path"), with(w.old, "old_string"), with(w.new, "new_string")}
	if !t.can(call("edit_file", args...)) {
		return "I have no tool here to change files with."
	}
	if w.all {
		args = append(args, with(true, "replace_all"))
	}
	o, ok := t.one("edit_file", args...)
	switch {
	case !ok:
		return ""
	case o.failed:
		return fmt.Sprintf("I could not change %s: %s", w.path, o.text)
	}
	return "Done:\n" + fence(o.text)
}

var inWords = regexp.MustCompile(`(?i)^(?:the|a|an|my|our|this|that|it|all|some|your|die|der|das|le|la|les|el|los|las)(?:\s|$)`)

func (t *turn) run(w wish) string {
	command := w.text
	if m := fenced.FindStringSubmatch(command); m != nil {
		command = m[1]
	} else if q := unquote(command); q != command && command[0] == '`' {
		command = q
	} else if inWords.MatchString(command) && !strings.HasPrefix(t.asked, "$") {
		return fmt.Sprintf("I do not know which command %q is. Give it as you would type it, as in `run go test ./...`. %s", clip(command, 120), cannot)
	}
	return t.bash(command)
}

func (t *turn) bash(command string) string {
	if strings.TrimSpace(command) == "" {
		return "There is no command to run."
	}
	if !t.can(call("bash", with(command, "command"))) {
		return "I have no tool here to run commands with."
	}
	o, ok := t.one("bash", with(command, "command"))
	if !ok {
		return ""
	}
	shown, n, of := head(o.text)
	text := fence(shown)
	if n < of {
		text += fmt.Sprintf("\n\n%d lines more are not shown.", of-n)
	}
	if o.failed {
		return "`" + command + "` did not succeed:\n" + text
	}
	return "`" + command + "`:\n" + text
}

// grep looks through the files of the workspace.
func (t *turn) grep(w wish) string {
	if !t.can(call("bash", with("", "command"))) {
		return "Looking through all files needs the tool bash, which is not offered here. I can look into one: \"find X in F\"."
	}
	word := "'" + strings.ReplaceAll(w.old, "'", `'\''`) + "'"
	return t.bash("grep -rnIi --exclude-dir=.git --exclude-dir=node_modules -m 5 -F -e " + word + " . | head -n 60")
}

func (t *turn) openSession(w wish) string {
	r := call("session_read", with(w.path, "session", "key", "id", "session_id"))
	if !t.can(r) {
		return fmt.Sprintf("I have no tool here to read other sessions with. In the chat, /switch %s opens it.", w.path)
	}
	outs, ok := t.all(r)
	switch {
	case !ok:
		return ""
	case outs[0].failed:
		return fmt.Sprintf("I could not read session %s: %s", w.path, outs[0].text)
	}
	shown, n, of := head(outs[0].text)
	text := "Session " + w.path + ":\n" + fence(shown)
	if n < of {
		text += fmt.Sprintf("\n\n%d lines more are not shown.", of-n)
	}
	return text
}
