// Package transcript shows a session to people: as plain text in a terminal,
// or as a Markdown document.
package transcript

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/attach"
	"goclaw/internal/terminal"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// Style is how text is shown, for a terminal.Writer. The zero value is plain.
type Style struct {
	Colour bool
	Render bool // answers are rendered, not shown as the model wrote them
}

// Paint sets text in the style with that SGR code.
func (s Style) Paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return terminal.Paint(code, text)
}

// Bold, Dim, Red and so on paint text.
func (s Style) Bold(t string) string   { return s.Paint("1", t) }
func (s Style) Dim(t string) string    { return s.Paint("2", t) }
func (s Style) Red(t string) string    { return s.Paint("31", t) }
func (s Style) Green(t string) string  { return s.Paint("32", t) }
func (s Style) Yellow(t string) string { return s.Paint("33", t) }
func (s Style) Cyan(t string) string   { return s.Paint("36", t) }

// Line describes a record in one line of at most width columns.
func Line(r session.Record, st Style, width int) string {
	who, what := describe(r.Body)
	what = OneLine(Printable(what), max(width-len(who)-12, 8))
	stamp := "        "
	if !r.Time.IsZero() {
		stamp = r.Time.Local().Format(time.TimeOnly)
	}
	switch who = OneLine(Name(who), 24); who {
	case "user":
		who = st.Green(who)
	case "assistant":
		who = st.Cyan(who)
	case "result", "call":
		who = st.Yellow(who)
	default:
		who = st.Dim(who)
	}
	return fmt.Sprintf("%s  %s  %s", st.Dim(stamp), who, what)
}

// describe returns the speaker, or the kind, of b and its text.
func describe(b session.Body) (who, what string) {
	switch b := b.(type) {
	case session.Header:
		return "start", string(b.Key)
	case session.Message:
		return describeMessage(b)
	case session.Shell:
		return "shell", b.Command
	case session.Compaction:
		return "compaction", b.Summary
	case session.Undo:
		return "undo", b.Target
	case session.Checkpoint:
		return "checkpoint", b.Summary
	case session.Usage:
		return "usage", fmt.Sprintf("%d tokens in, %d out", b.Usage.Prompt(), b.Usage.Output)
	case session.Notice:
		return "notice", b.Text
	case session.BranchSummary:
		return "branch", b.Summary
	case session.CustomMessage:
		return "message", llm.Message{Blocks: b.Blocks}.Text()
	case session.Partial:
		return "part", b.Thinking + b.Text
	case session.Custom:
		return "data", b.Type
	case session.ModelChange:
		return "model", b.Provider + "/" + b.Model
	case session.ThinkingChange:
		return "thinking", b.Level
	case session.Label:
		return "label", b.Target + " " + b.Label
	case session.Title:
		return "title", b.Title
	case session.Moved:
		return "key", string(b.Key)
	case session.Marked:
		return "mark", b.Mark
	case session.Reset:
		return "reset", b.Reason
	case session.Leaf:
		return "rewind", b.Target
	case session.Edit:
		return "edit", b.Target
	case session.Redaction:
		return "redaction", Count(len(b.Targets), "record")
	case session.Refused:
		return "refused", b.Target + " " + b.Why
	case session.Unknown:
		return b.Type, ""
	}
	return "record", ""
}

func describeMessage(b session.Message) (who, what string) {
	if rs := b.Results(); len(rs) > 0 {
		return "result", resultText(rs[0])
	}
	what = b.Text()
	for _, c := range b.Calls() {
		what = strings.TrimSpace(what + " " + CallLine(c))
	}
	if b.Error != "" {
		what = strings.TrimSpace(what + " [" + b.Error + "]")
	}
	return string(b.Role), what
}

func resultText(r llm.ToolResult) string {
	t := r.Text()
	if r.IsError {
		t = "failed: " + t
	}
	if t == "" && len(r.Blocks) > 0 {
		t = "(image)"
	}
	if r.Name != "" {
		t = OneLine(Name(r.Name), 64) + ": " + t
	}
	return t
}

// Printable replaces the characters that a terminal.Writer would escape, so that
// text can be measured before it is written: a log may contain anything.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if terminal.Hidden(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// Name shows a key, a title or the name of a tool, in one line and without
// invisible characters: what looks the same is the same.
func Name[S ~string](s S) string {
	before := ' '
	return strings.Map(func(r rune) rune {
		joins := (r == 0x200c || r == 0x200d) && before > unicode.MaxASCII // as in 👩‍👧
		before = r
		switch {
		case r == '\n' || r == '\t' || unicode.Is(unicode.Zs, r):
			return ' '
		case terminal.Invisible(r) && !joins:
			return '\uFFFD'
		}
		return r
	}, string(s))
}

// OneLine joins lines, collapses white space and cuts to n columns.
func OneLine(s string, n int) string {
	if len(s) > 8*n {
		s = strings.ToValidUTF8(s[:8*n], "")
	}
	s = strings.Join(strings.Fields(s), " ")
	if displaywidth.String(s) > n {
		return displaywidth.TruncateString(s, max(n, 1), "…")
	}
	return s
}

// Plain writes records as a conversation. Unless full, tool results are cut to a
// few lines and thinking is left out. Text is wrapped to width (0: it is not).
func Plain(w io.Writer, recs []session.Record, st Style, full bool, width int) {
	for _, r := range recs {
		switch b := r.Body.(type) {
		case session.Message:
			if window.Silent(b.Message) && !full {
				continue // the model had nothing to say
			}
			plainMessage(w, r, b, st, full, width)
		case session.Label, session.Custom, session.Partial, session.Leaf, session.Edit, session.Usage, session.Unknown, session.ThinkingChange:
			// of interest only to programs
		default:
			fmt.Fprintln(w, st.Dim(Line(r, Style{}, cmp.Or(width, 100))))
		}
	}
}

func plainMessage(w io.Writer, r session.Record, m session.Message, st Style, full bool, width int) {
	head := st.Cyan("assistant")
	if m.Role == llm.User {
		head = st.Green("user")
	}
	if len(m.Results()) == 0 {
		stamp := ""
		said := cmp.Or(m.At, r.Time) // At is earlier if the message was imported
		if !said.IsZero() {
			stamp = said.Local().Format("2006-01-02 15:04")
		}
		if r.Seq > 0 {
			stamp = strings.TrimLeft(fmt.Sprintf("%s  #%d", stamp, r.Seq), " ")
		}
		fmt.Fprintf(w, "%s  %s\n", st.Bold(head), st.Dim(stamp))
	}
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case llm.Text:
			if m.Role == llm.User && attach.Is(b) && !full {
				fmt.Fprintln(w, st.Dim(Wrap(head3(Printable(b.Text)), width)))
				continue
			}
			say(w, b.Text, st, width)
		case llm.Thinking:
			if full && b.Text != "" {
				fmt.Fprintln(w, st.Dim(Wrap(Printable(b.Text), width)))
			}
		case llm.ToolCall:
			fmt.Fprintln(w, st.Yellow(Wrap("→ "+CallLine(b), width)))
		case llm.ToolResult:
			t := Printable(resultText(b))
			if !full {
				t = head3(t)
			}
			if t = "← " + t; b.IsError { // mostly prose
				t = Wrap(t, width)
			}
			fmt.Fprintln(w, st.Dim(t))
		case llm.Image:
			fmt.Fprintf(w, "(image %s, %d bytes)\n", Name(b.MIME), len(b.Data)*3/4)
		}
	}
	if m.Error != "" {
		fmt.Fprintln(w, st.Red(Wrap("["+Name(m.Error)+"]", width)))
	} else if m.Stop == llm.StopAborted {
		fmt.Fprintln(w, st.Red("[stopped]"))
	}
	if len(m.Calls()) == 0 {
		fmt.Fprintln(w)
	}
}

// head3 keeps the first lines of a long text and says how many follow.
func head3(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) <= 4 {
		return strings.Join(lines, "\n")
	}
	return strings.Join(lines[:3], "\n") + fmt.Sprintf("\n… %d more lines", len(lines)-3)
}

// Markdown writes a session as one document, with tool output in collapsed
// sections.
func Markdown(w io.Writer, s *session.Session) error {
	e := bufio.NewWriter(w) // keeps the first error
	fmt.Fprintf(e, "# %s\n\n", OneLine(cmp.Or(s.Title, string(s.Key)), 200))
	fmt.Fprintf(e, "- Session: `%s`\n- Id: `%s`\n", s.Key, s.ID)
	if o := s.Origin; o.Program != "" {
		fmt.Fprintf(e, "- From: %s", o.Program)
		if o.Path != "" {
			fmt.Fprintf(e, ", `%s`", OneLine(o.Path, 1000))
		} else if o.Key != "" {
			fmt.Fprintf(e, ", `%s`", OneLine(string(o.Key), 200))
		}
		fmt.Fprintln(e)
	}
	if m := s.ModelName(); m != "" {
		fmt.Fprintf(e, "- Model: %s\n", m)
	}
	if !s.Created.IsZero() {
		fmt.Fprintf(e, "- From %s to %s\n", s.Created.UTC().Format(time.RFC3339), s.Updated.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(e, "- Turns: %d\n", s.Turns)
	for _, r := range s.Branch {
		markdownRecord(e, r)
	}
	return e.Flush()
}

func markdownRecord(w io.Writer, r session.Record) {
	switch b := r.Body.(type) {
	case session.Message:
		markdownMessage(w, r, b)
	case session.Compaction:
		fmt.Fprintf(w, "\n---\n\n*Earlier turns were compacted here:*\n\n%s\n", quote(b.Summary))
	case session.BranchSummary:
		fmt.Fprintf(w, "\n*Back from a branch:*\n\n%s\n", quote(b.Summary))
	case session.CustomMessage:
		fmt.Fprintf(w, "\n%s\n", quote(llm.Message{Blocks: b.Blocks}.Text()))
	case session.Shell:
		fmt.Fprintf(w, "\n%s\n", details("ran "+b.Command, b.Output))
	case session.Reset:
		fmt.Fprintf(w, "\n---\n\n*Started over (%s).*\n", b.Reason)
	case session.ModelChange:
		fmt.Fprintf(w, "\n*Model: %s/%s*\n", b.Provider, b.Model)
	}
}

func markdownMessage(w io.Writer, r session.Record, m session.Message) {
	if len(m.Results()) == 0 {
		head := "Assistant"
		if m.Role == llm.User {
			head = "User"
		}
		fmt.Fprintf(w, "\n## %s", head)
		if !r.Time.IsZero() {
			fmt.Fprintf(w, " (%s)", r.Time.UTC().Format("2006-01-02 15:04"))
		}
		fmt.Fprintln(w)
	}
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case llm.Text:
			fmt.Fprintf(w, "\n%s\n", strings.TrimRight(b.Text, "\n"))
		case llm.Thinking:
			if b.Text != "" {
				fmt.Fprintf(w, "\n%s\n", details("thinking", b.Text))
			}
		case llm.ToolCall:
			fmt.Fprintf(w, "\n%s\n", details("call "+b.Name, string(b.Args)))
		case llm.ToolResult:
			name := "result"
			if b.IsError {
				name = "failed"
			}
			fmt.Fprintf(w, "\n%s\n", details(name+" "+b.Name, b.Text()))
		case llm.Image:
			fmt.Fprintf(w, "\n![image](data:%s;base64,%s)\n", b.MIME, b.Data)
		}
	}
	if m.Error != "" {
		fmt.Fprintf(w, "\n*[%s]*\n", m.Error)
	}
}

func quote(s string) string {
	return "> " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n> ")
}

// details puts text into a collapsed section. Its fence is longer than any in
// the text.
func details(summary, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fmt.Sprintf("<details><summary>%s</summary>\n\n%s\n%s\n%s\n\n</details>", htmlText(OneLine(summary, 120)), fence, strings.TrimRight(text, "\n"), fence)
}

func htmlText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// Silent explains why no answer is shown.
const Silent = "the model answered NO_REPLY: it has nothing to say"

// Model says that a session uses another model than before.
func Model(name, before string) string {
	return fmt.Sprintf("model: %s (this session last used %s)", Name(name), Name(before))
}

// GoneOn says that a mirror has messages that its continuation own does not
// have, and how to add them.
func GoneOn(mirror, own session.Info, n int, how string) string {
	return fmt.Sprintf("%s has %s that %s does not have: %s adds them", Name(mirror.Key), Count(n, "new message"), Name(own.Key), Name(how))
}

// Merged says what a merge added.
func Merged(mirror, own session.Info, n int) string {
	if n == 0 {
		return fmt.Sprintf("there is nothing new in %s", Name(mirror.Key))
	}
	return fmt.Sprintf("%s of %s added at the end of %s", Count(n, "message"), Name(mirror.Key), Name(own.Key))
}
