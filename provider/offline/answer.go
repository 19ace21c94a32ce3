package offline

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"goclaw/internal/memoryfiles"
	"goclaw/internal/text"
	"goclaw/llm"
)

// What this model says about itself. The first answer of a conversation and every
// answer that does not help contain whatIAm, by which it knows that it has said so.
const (
	whatIAm = "not a language model"
	intro   = "I am goclaw's built-in offline model, " + whatIAm + ": I find and quote what was said, and follow a few plain requests. Say \"help\" for the list."
	cannot  = "I am the built-in offline model, " + whatIAm + ", and cannot work that out."
	connect = "To talk to a real model, set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start a local Ollama, and start goclaw again."
)

// scripts carry out wishes. Each returns the answer, or anything at all while
// calls are open.
var scripts = map[kind]func(*turn, wish) string{
	statement: func(t *turn, _ wish) string {
		text := cannot
		if t.picture {
			text = "I cannot see pictures. " + text
		}
		return text + "\n\nWhat you said is kept: ask \"what did I say about ...\" at any time, or say \"remember that ...\" to have it in memory. " + connect
	},
	greet:     func(*turn, wish) string { return "Hello! Ask me what was said about something, or say \"help\"." },
	whoami:    func(*turn, wish) string { return intro + " " + connect },
	help:      (*turn).help,
	clock:     (*turn).clock,
	recap:     (*turn).recap,
	memories:  (*turn).memories,
	run:       (*turn).run,
	remember:  (*turn).remember,
	list:      (*turn).list,
	read:      (*turn).read,
	search:    (*turn).search,
	summarise: func(_ *turn, w wish) string { return extract(w.text) },
}

// reply returns the answer, unless it leaves calls open.
func (t *turn) reply() string {
	if t.asked == "" {
		return t.unasked()
	}
	w := understand(t.asked)
	text := strings.TrimSpace(scripts[w.kind](t, w))
	if len(t.open) == 0 && w.kind != summarise && !t.told && !strings.Contains(text, whatIAm) {
		text += "\n\n" + intro
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// noReply is the answer to a notice that asks for nothing to be shown.
const noReply = "NO_REPLY"

// unasked answers if there is no message of the user to answer.
func (t *turn) unasked() string {
	switch {
	case t.picture:
		return "I cannot see pictures: I am the built-in offline model, " + whatIAm + ". " + connect
	case strings.Contains(t.notice, noReply):
		return noReply
	case isNotice(t.notice):
		return "I have seen the notice. Say \"remember that ...\" for what I should write down. " + cannot
	}
	return "I cannot see what you asked: it is no longer in my context. Please say it again. " + cannot
}

const helpOpening = "I can do this without a network:"

func (t *turn) help(wish) string {
	var b strings.Builder
	b.WriteString(helpOpening + "\n")
	for _, l := range []struct{ tool, text string }{
		{"session_search", "find what was said and noted: \"what did I say about X\", \"search X\", or any question"},
		{"", "go over this conversation: \"recap\""},
		{"write_file", "remember: \"remember that X\" (it goes to memory/, by day); \"what do you remember\""},
		{"read_file", "read: \"read F\", \"read F lines 10-20\""},
		{"list_directory", "list: \"list\", \"list D\""},
		{"bash", "run a command: \"run CMD\", \"$ CMD\""},
		{"get_current_time", "tell the time: \"what time is it\""},
	} {
		if _, ok := t.tools[l.tool]; ok || l.tool == "" {
			b.WriteString("- " + l.text + "\n")
		}
	}
	b.WriteString("\nI am " + whatIAm + ": I do not reason or write. " + connect)
	return b.String()
}

func (t *turn) clock(wish) string {
	o, ok := t.call("get_current_time", args{})
	if ok && o.IsError {
		return "I could not ask for the time: " + o.Text()
	}
	return "It is " + o.Text() + "."
}

const maxRecap = 25 // requests that a recap shows

// recap shows the user's requests in order, each with the first line of what
// was answered.
func (t *turn) recap(wish) string {
	var before, said []string
	for _, m := range t.past {
		for _, b := range m.Blocks {
			text, ok := b.(llm.Text)
			switch n := len(said); {
			case !ok || isNotice(text.Text) || strings.TrimSpace(text.Text) == t.asked:
			case m.Role == llm.Assistant && n > 0:
				said[n-1], _, _ = strings.Cut(said[n-1], "\n")
				said[n-1] += "\n  " + oneLine(text.Text)
			case m.Role == llm.Assistant:
			case isSummary(text.Text):
				s := strings.TrimSuffix(strings.TrimSpace(text.Text), "</summary>")
				before = append(before, s[strings.LastIndex(s, "<summary>")+len("<summary>"):])
			default:
				said = append(said, "> "+oneLine(text.Text))
			}
		}
	}
	if len(said)+len(before) == 0 {
		return "Nothing was said before this that I can see."
	}
	var b strings.Builder
	for _, s := range before {
		b.WriteString("A summary of what came first:\n" + quote(s, 1200) + "\n")
	}
	if n := len(said) - maxRecap; n > 0 {
		said = slices.Concat(said[:1], []string{fmt.Sprintf("(%d requests left out)", n)}, said[n+1:])
	}
	return b.String() + "What was said so far, each with the beginning of the answer:\n" + strings.Join(said, "\n")
}

// memories shows MEMORY.md and the notes of the last days.
func (t *turn) memories(wish) string {
	files := []string{memoryfiles.Main}
	dir, ok := t.call("list_directory", args{"path": memoryfiles.Dir})
	if !ok {
		return ""
	}
	for l := range strings.Lines(dir.Text()) {
		if name, _, _ := strings.Cut(strings.TrimSpace(l), "  "); !dir.IsError && strings.HasSuffix(name, ".md") {
			files = append(files, memoryfiles.Dir+"/"+name)
		}
	}
	slices.Sort(files) // upper case first, then by day
	files = slices.Concat(files[:1], files[max(1, len(files)-3):])
	var b strings.Builder
	for _, f := range files {
		if o, _ := t.call("read_file", args{"path": f}); !o.IsError && strings.TrimSpace(o.Text()) != "" {
			fmt.Fprintf(&b, "%s:\n%s\n", f, quote(o.Text(), 2000))
		}
	}
	if b.Len() == 0 {
		return "There is nothing in memory yet: neither in MEMORY.md nor in memory/*.md."
	}
	return b.String()
}

var day = regexp.MustCompile(`\d{4}-\d{2}-\d{2}`)

// remember adds a line to the day's memory file.
func (t *turn) remember(w wish) string {
	file := memoryfiles.Main
	now, ok := t.call("get_current_time", args{})
	if !ok {
		return ""
	}
	if d := day.FindString(now.Text()); d != "" && !now.IsError {
		file = memoryfiles.OfDay(d)
	}
	note := "- " + strings.ReplaceAll(strings.ToValidUTF8(w.text, "\uFFFD"), "\n", "\n  ") + "\n"
	o, ok := t.call("write_file", args{"path": file, "content": note, "append": true})
	if ok && o.IsError {
		return "I could not write it down: " + o.Text() + ". What you said is kept in this conversation."
	}
	return fmt.Sprintf("Noted in %s:\n%s", file, quote(note, 600))
}

var fenced = regexp.MustCompile("(?s)^```[^\n]*\n(.*?)\n?```$")

func (t *turn) run(w wish) string {
	command := w.text
	if m := fenced.FindStringSubmatch(command); m != nil {
		command = m[1]
	} else if command[0] == '`' {
		command = unquote(command)
	}
	o, ok := t.call("bash", args{"command": command})
	if ok && o.IsError {
		return "`" + command + "` did not succeed:\n" + show(o.Text())
	}
	return "`" + command + "`:\n" + show(o.Text())
}

func (t *turn) list(w wish) string {
	o, ok := t.call("list_directory", args{"path": w.path})
	switch {
	case !ok:
		return ""
	case o.IsError && !pathLike.MatchString(w.path) && w.path != ".":
		return t.search(wish{text: w.path}) // "list decisions" means no directory
	case o.IsError:
		return fmt.Sprintf("I could not list %s: %s", w.path, o.Text())
	case w.path == ".":
		return "The workspace:\n" + show(o.Text())
	}
	return w.path + ":\n" + show(o.Text())
}

func (t *turn) read(w wish) string {
	a := args{"path": w.path, "limit": maxLines}
	if w.from > 0 {
		a["offset"] = w.from
		if w.to >= w.from {
			a["limit"] = min(maxLines, w.to-w.from+1)
		}
	}
	o, ok := t.call("read_file", a)
	switch {
	case ok && o.IsError:
		return fmt.Sprintf("I could not read %s: %s", w.path, o.Text())
	case holdsImage(o.Blocks):
		return fmt.Sprintf("%s is a picture (%s). I cannot see pictures.", w.path, o.Text())
	}
	return w.path + ":\n" + show(o.Text())
}

// What is shown of a file or of a command's output.
const (
	maxLines = 150
	maxShown = 6000
)

// show puts text between marks that it does not contain.
func show(text string) string {
	marks := "```"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	return marks + "\n" + head(text, maxShown) + "\n" + marks
}

// quote marks text as quoted, at most max bytes of it.
func quote(text string, max int) string {
	return "> " + strings.ReplaceAll(head(text, max), "\n", "\n> ") + "\n"
}

// head returns at most max bytes of s, whole lines if possible, and says if that
// is not all.
func head(s string, max int) string {
	s = strings.Trim(s, "\n")
	if len(s) <= max {
		return s
	}
	s = text.Head(s, max)
	return s[:cmp.Or(strings.LastIndex(s, "\n")+1, len(s))] + "… (more is not shown)"
}

// oneLine returns the beginning of a text in one line.
func oneLine(s string) string { return text.OneLine(s, 140) }
