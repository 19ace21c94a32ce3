package repl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"goclaw/internal/near"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/window"
)

// command is something that is said to the chat, not to the model.
type command struct {
	names []string // the first is the one that help shows
	args  string
	help  string
	run   func(r *REPL, ctx context.Context, arg string) error
	// complete returns what the argument can be; nil: anything.
	complete func(r *REPL) []string
}

var commands []command

// init breaks the circle: help lists the commands.
func init() {
	commands = []command{
		{[]string{"new"}, "[label]", "begin a new session", (*REPL).newSession, nil},
		{[]string{"sessions", "list"}, "[text|all]", "list the sessions, the one used last first", (*REPL).sessions, nil},
		{[]string{"switch"}, "KEY", "go to another session; a part of its key or title will do", (*REPL).switchTo, (*REPL).keys},
		{[]string{"history"}, "[n|all]", "show the last turns of this session", (*REPL).history, nil},
		{[]string{"delete"}, "KEY", "move a session to the trash", (*REPL).delete, (*REPL).keys},
		{[]string{"search", "find"}, "TEXT|N", "find what was said and noted; N opens the N-th hit", (*REPL).search, nil},
		{[]string{"context"}, "", "show what fills the model's window", (*REPL).context, nil},
		{[]string{"compact"}, "[--dry-run] [focus]", "fold the past into a summary; the focus is what it dwells on", (*REPL).compact, nil},
		{[]string{"undo"}, "", "take the last fold back", (*REPL).undo, nil},
		{[]string{"checkpoints"}, "", "list the summaries that were made ahead of time", (*REPL).checkpoints, nil},
		{[]string{"model"}, "[provider/model]", "show or change the model", (*REPL).model, (*REPL).models},
		{[]string{"title"}, "[text]", "show or change this session's title", (*REPL).title, nil},
		{[]string{"fork"}, "[key]", "go on in a copy of this session", (*REPL).fork, nil},
		{[]string{"merge"}, "", "take in what another program has said since in the session that this one continues", (*REPL).merge, nil},
		{[]string{"pin"}, "[record]", "keep a message word for word when the past is folded", (*REPL).pin, nil},
		{[]string{"unpin"}, "[record]", "take the pin away", (*REPL).unpin, nil},
		{[]string{"export"}, "[format] [file]", "write this session to a new file (markdown, native, claw0)", (*REPL).export, formats},
		{[]string{"continue"}, "", "go on with what was interrupted", (*REPL).goOn, nil},
		{[]string{"thinking"}, "[on|off]", "show what the model thinks", (*REPL).think, onOff},
		{[]string{"help", "?"}, "", "show this", (*REPL).help, nil},
		{[]string{"quit", "exit", "q"}, "", "leave; so do quit, exit and Ctrl-D", (*REPL).quit, nil},
	}
}

func find(name string) (command, bool) {
	for _, c := range commands {
		if slices.Contains(c.names, name) {
			return c, true
		}
	}
	return command{}, false
}

// command does what text, which begins with a slash, says.
func (r *REPL) command(ctx context.Context, text string) error {
	name, arg, _ := strings.Cut(text[1:], " ")
	if i := strings.IndexByte(name, '\n'); i >= 0 {
		name, arg = name[:i], name[i:]+" "+arg
	}
	name, arg = strings.ToLower(name), strings.TrimSpace(arg)
	c, ok := find(name)
	if !ok {
		return errors.New(unknown(name))
	}
	if c.args == "" && arg != "" {
		return fmt.Errorf("/%s takes no argument", c.names[0])
	}
	if err := c.checkFlags(arg); err != nil {
		return err
	}
	if c.args == "KEY" && arg == "" {
		return fmt.Errorf("/%s needs a KEY: /sessions lists them", c.names[0])
	}
	if c.takesText() {
		arg = plain(arg)
	}
	return c.run(r, ctx, arg)
}

// isFlag is what was meant as a flag. Some systems make one long dash of the two
// that are typed.
var isFlag = regexp.MustCompile(`^(--?|[–—])[\pL]`)

// checkFlags refuses a flag that the command does not have: to take it for
// text would do what was not asked for. In plain text, such as a title, only
// the beginning is looked at, and after "--" nothing is.
func (c command) checkFlags(arg string) error {
	for _, word := range strings.Fields(arg) {
		switch {
		case word == "--", !isFlag.MatchString(word) && c.takesText():
			return nil
		case !isFlag.MatchString(word) || slices.Contains(c.flags(), word):
			continue
		}
		if n := near.Nearest(word, c.flags()); n != "" {
			return fmt.Errorf("/%s does not know %s: did you mean %s?", c.names[0], word, n)
		}
		text := ""
		if c.takesText() {
			text = fmt.Sprintf("; /%s -- %s takes it as text", c.names[0], word)
		}
		return fmt.Errorf("/%s does not know %s%s", c.names[0], word, text)
	}
	return nil
}

// flags are what the usage of the command has in brackets with dashes.
func (c command) flags() []string {
	var out []string
	for _, word := range strings.Fields(c.args) {
		if word = strings.Trim(word, "[]"); isFlag.MatchString(word) {
			out = append(out, word)
		}
	}
	return out
}

// takesText reports whether the argument is plain text from its first word on.
func (c command) takesText() bool {
	return slices.Contains([]string{"[label]", "[text]", "[text|all]", "TEXT|N"}, c.args)
}

// plain takes the "--" away that says that text follows.
func plain(text string) string {
	if rest, ok := strings.CutPrefix(text, "-- "); ok {
		return strings.TrimSpace(rest)
	}
	return text
}

func unknown(name string) string {
	var names []string
	for _, c := range commands {
		names = append(names, c.names...)
	}
	if n := near.Nearest(name, names); n != "" {
		return fmt.Sprintf("there is no /%s: did you mean /%s?", name, n)
	}
	return fmt.Sprintf("there is no /%s: /help lists the commands, and //%s says it to the model", name, name)
}

// Complete is the line.Completer of the chat: commands, and what they take.
func (r *REPL) Complete(before string) (from int, options []string) {
	if !strings.HasPrefix(before, "/") || strings.HasPrefix(before, "//") {
		return 0, nil
	}
	name, arg, ok := strings.Cut(before[1:], " ")
	if !ok {
		for _, c := range commands {
			for _, n := range c.names {
				if strings.HasPrefix(n, name) && len(n) > 1 {
					options = append(options, "/"+n)
				}
			}
		}
		return 0, options
	}
	c, ok := find(name)
	if !ok || c.complete == nil {
		return 0, nil
	}
	for _, o := range c.complete(r) {
		if strings.HasPrefix(o, arg) && !slices.Contains(options, o) {
			options = append(options, o)
		}
	}
	return len(before) - len(arg), options
}

// keys returns the keys of all sessions. Keys that could not be typed are
// left out.
func (r *REPL) keys() []string {
	var out []string
	for in, err := range r.Store.List(context.Background(), session.Query{}) {
		if err != nil {
			return out
		}
		if k := string(in.Key); transcript.OneLine(transcript.Printable(k), len(k)) == k {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

func (r *REPL) models() []string {
	if r.Models == nil {
		return nil
	}
	return r.Models()
}

func formats(*REPL) []string { return []string{"markdown", "native", "claw0"} }
func onOff(*REPL) []string   { return []string{"on", "off"} }

func (r *REPL) help(context.Context, string) error {
	width := 0
	for _, c := range commands {
		width = max(width, len(c.names[0])+len(c.args)+2)
	}
	for _, c := range commands {
		left := strings.TrimRight("/"+c.names[0]+" "+c.args, " ")
		also := ""
		if len(c.names) > 1 && c.names[1] != "?" && c.names[0] != "quit" {
			also = " (also /" + c.names[1] + ")"
		}
		r.print("  %s%s  %s", r.Style.Bold(left), strings.Repeat(" ", width-len(left)), c.help+also)
	}
	r.print("A line that ends in \\ goes on in the next, and so does Alt-Enter; //text says /text to the model.")
	r.print("Ctrl-C stops an answer, Tab completes, Ctrl-R searches what you typed before.")
	return nil
}

func (r *REPL) quit(context.Context, string) error {
	r.leaving = true
	return nil
}

func (r *REPL) goOn(ctx context.Context, _ string) error {
	s, err := r.opened(ctx)
	if err != nil {
		return err
	}
	if !runner.Resumable(s) {
		return errors.New("nothing was interrupted: there is nothing to go on with")
	}
	r.turn(ctx, llm.Message{})
	return nil
}

func (r *REPL) think(_ context.Context, arg string) error {
	switch arg {
	case "":
		r.thinking = !r.thinking
	case "on", "off":
		r.thinking = arg == "on"
	default:
		return fmt.Errorf("/thinking takes on or off, not %q", arg)
	}
	if r.thinking {
		r.note("thinking is shown")
	} else {
		r.note("thinking is not shown")
	}
	return nil
}

func (r *REPL) newSession(ctx context.Context, label string) error {
	label = strings.Join(strings.Fields(label), " ")
	key, err := r.freeKey(ctx, slug(label))
	if err != nil {
		return err
	}
	h := session.Header{Key: key, CWD: r.CWD}
	s := session.Draft(h, r.Clock)
	if label != "" { // asked for by name, it is kept without a word
		if s, err = session.Begin(ctx, r.Store, h, r.Clock); err != nil {
			return err
		}
		rec, err := r.Runner.Record(ctx, s.ID, session.Title{Title: label})
		if err != nil {
			return err
		}
		if err := s.Apply(rec.Record); err != nil {
			return err
		}
	}
	r.enter(ctx, s)
	if !r.Interactive {
		r.note("began %s", s.Key)
	}
	return nil
}

// freeKey returns a key of the default key's agent and channel that no
// session has. Without a peer it is the time.
func (r *REPL) freeKey(ctx context.Context, peer string) (session.Key, error) {
	if peer == "" {
		peer = r.Clock.Now().Format("20060102-150405")
	}
	p := r.DefaultKey.Parts()
	base := string(r.DefaultKey) + "-" + peer
	if p.Agent != "" && p.Channel != "" {
		base = p.Agent + ":" + p.Channel + ":" + peer
		if strings.HasPrefix(string(r.DefaultKey), "agent:") {
			base = "agent:" + base
		}
	}
	for n := 1; ; n++ {
		key := session.Key(base)
		if n > 1 {
			key = session.Key(fmt.Sprintf("%s-%d", base, n))
		}
		_, err := session.Current(ctx, r.Store, key)
		if errors.Is(err, session.ErrNotFound) {
			return key, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// maxSlug is how many characters of a label become part of a key.
const maxSlug = 40

// slug makes a label a part of a key: letters and digits, joined by '-'.
func slug(label string) string {
	words := strings.FieldsFunc(strings.ToLower(label), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	r := []rune(strings.Join(words, "-"))
	return strings.TrimRight(string(r[:min(len(r), maxSlug)]), "-")
}

func (r *REPL) switchTo(ctx context.Context, ref string) error {
	in, err := session.Find(ctx, r.Store, ref, false)
	if err != nil {
		return err
	}
	if in.ID == r.cur.ID {
		r.note("this is %s already", in.Key)
		return nil
	}
	s, err := session.Open(ctx, r.Store, in.ID)
	if err != nil {
		return err
	}
	if s.Turns == 0 {
		r.note("switched to %s", s.Key)
	}
	r.enter(ctx, s)
	return nil
}

// listed is how many sessions are listed unless all are wanted.
const listed = 20

func (r *REPL) sessions(ctx context.Context, text string) error {
	q := session.Query{Text: text}
	if text == "all" {
		q.Text = ""
	}
	if text == "" {
		q.Limit = listed + 1
	}
	var infos []session.Info
	for in, err := range session.List(ctx, r.Store, q) {
		if err != nil {
			return err
		}
		infos = append(infos, in)
	}
	rows := [][]string{{" ", "KEY", "TITLE", "MODEL", "TURNS", "LAST USED"}}
	for i, name := range transcript.Names(infos, 48) {
		in, mark := infos[i], " "
		if in.ID == r.cur.ID {
			mark = "*"
		}
		rows = append(rows, []string{mark, name, cell(in.Title, 40), cell(in.ModelName(), 32), fmt.Sprint(in.Turns), transcript.Ago(r.Clock.Now().Sub(in.Updated))})
	}
	switch {
	case len(rows) == 1 && q.Text == "":
		r.print("no sessions yet")
		return nil
	case len(rows) == 1:
		r.print("no session fits %q", text)
		return nil
	}
	more := q.Limit > 0 && len(rows) > q.Limit
	if more {
		rows = rows[:len(rows)-1]
	}
	for _, line := range transcript.Table(rows, r.Style, r.columns()) {
		r.print("%s", line)
	}
	if more {
		r.note("… there are more: /sessions all")
	}
	return nil
}

func cell(s string, n int) string { return transcript.OneLine(transcript.Printable(s), n) }

// shownTurns is how many turns /history shows.
const shownTurns = 5

func (r *REPL) history(ctx context.Context, arg string) error {
	n := shownTurns
	if arg != "" && arg != "all" {
		var err error
		if n, err = strconv.Atoi(arg); err != nil || n < 1 {
			return fmt.Errorf("/history takes a number of turns or all, not %q", arg)
		}
	}
	s, err := r.whole(ctx)
	if err != nil {
		return err
	}
	from := len(s.Branch)
	for turns := 0; from > 0 && (turns < n || arg == "all"); {
		from--
		if session.IsTurn(s.Branch[from].Body) {
			turns++
		}
	}
	if s.Turns == 0 {
		r.print("nothing was said yet")
		return nil
	}
	if left := s.Turns - n; left > 0 && arg != "all" {
		r.print("%s", r.Style.Dim("… "+transcript.Count(left, "turn")+" before: /history all"))
	}
	var b strings.Builder
	transcript.Plain(&b, s.Branch[from:], r.Style, false, r.columns())
	r.screen.print(strings.TrimRight(b.String(), "\n"))
	return nil
}

// errEmpty: the session has not begun.
var errEmpty = errors.New("nothing was said yet")

// begin begins this session if it has not begun.
func (r *REPL) begin(ctx context.Context) error {
	if r.cur.ID != "" {
		return nil
	}
	s, err := r.Runner.Begin(ctx, session.Header{Key: r.cur.Key, CWD: r.CWD})
	if err == nil {
		r.cur = s.Info
	}
	return err
}

// opened reads this session as far as its context needs it.
func (r *REPL) opened(ctx context.Context) (*session.Session, error) {
	if r.cur.ID == "" {
		return session.Draft(session.Header{Key: r.cur.Key, CWD: r.CWD}, r.Clock), nil
	}
	return session.Open(ctx, r.Store, r.cur.ID)
}

// whole replays this session from its first record.
func (r *REPL) whole(ctx context.Context) (*session.Session, error) {
	if r.cur.ID == "" {
		return r.opened(ctx)
	}
	return session.Replay(r.cur.ID, r.Store.Read(ctx, r.cur.ID, 0))
}

func (r *REPL) delete(ctx context.Context, ref string) error {
	in, err := session.Find(ctx, r.Store, ref, false)
	if err != nil {
		return err
	}
	if err := r.Store.Delete(ctx, in.ID); err != nil {
		return err
	}
	r.note("moved %s to the trash: goclaw sessions restore %s brings it back", in.Key, in.ID)
	if in.ID == r.cur.ID {
		return r.newSession(ctx, "")
	}
	return nil
}

func (r *REPL) model(ctx context.Context, spec string) error {
	if spec == "" {
		m := r.Model()
		size := ""
		if m.Budget.Window > 0 {
			size = fmt.Sprintf(", a window of %s tokens", window.Short(m.Budget.Window))
		}
		r.print("%s%s", m.Name, size)
		return nil
	}
	m, err := r.Choose(ctx, spec)
	if err != nil {
		return fmt.Errorf("%w (still asking %s)", err, r.Model().Name)
	}
	if r.cur.Mirror() { // another program's, where nothing of ours belongs
		own, err := session.Continue(ctx, r.Store, r.cur, r.Clock)
		if err != nil {
			return err
		}
		r.continued(runner.Continued{From: r.cur, To: own})
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	rec, err := r.Runner.Record(ctx, r.cur.ID, session.ModelChange{Provider: m.Provider, Model: m.Model, Chosen: true})
	if err != nil {
		return err
	}
	r.asked, r.told = m.Name, r.cur.ID // which says so
	r.recorded(rec)
	r.note("from now on %s is asked", m.Name)
	return nil
}

func (r *REPL) title(ctx context.Context, text string) error {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		if err := r.news(ctx); err != nil {
			return err
		}
		if t := session.Titled(ctx, r.Store, r.cur); t != "" {
			r.print("%s", transcript.Printable(t))
		} else {
			r.print("%s has no title yet", r.cur.Key)
		}
		return nil
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	rec, err := r.Runner.Record(ctx, r.cur.ID, session.Title{Title: text})
	if err != nil {
		return err
	}
	r.recorded(rec)
	r.note("%s is now called %q", r.cur.Key, text)
	return nil
}

func (r *REPL) merge(ctx context.Context, _ string) error {
	mirror, _, err := session.NewSince(ctx, r.Store, r.cur)
	if err != nil {
		return err
	}
	if mirror.ID == "" {
		return fmt.Errorf("%s does not continue another program's session", r.cur.Key)
	}
	n, err := session.Merge(ctx, r.Store, r.cur, r.Clock)
	if err != nil {
		return err
	}
	if r.cur, err = session.Stat(ctx, r.Store, r.cur.ID); err != nil {
		return err
	}
	r.note("%s", transcript.Merged(mirror, r.cur, n))
	return nil
}

func (r *REPL) fork(ctx context.Context, key string) error {
	if r.cur.ID == "" {
		return errEmpty
	}
	s, err := r.whole(ctx)
	if err != nil {
		return err
	}
	if key != "" {
		if _, err := session.Current(ctx, r.Store, session.Key(key)); err == nil {
			return fmt.Errorf("there is a session %s already: choose another key", key)
		} else if !errors.Is(err, session.ErrNotFound) {
			return err
		}
	}
	f, err := session.Fork(ctx, r.Store, s, session.Key(key), "", r.Clock)
	if err != nil {
		return err
	}
	r.note("forked %s as %s", s.Key, f.Key)
	r.enter(ctx, f)
	return nil
}

func (r *REPL) pin(ctx context.Context, ref string) error   { return r.label(ctx, ref, session.Pin) }
func (r *REPL) unpin(ctx context.Context, ref string) error { return r.label(ctx, ref, "") }

// label pins a message of this session, or takes its pin away.
func (r *REPL) label(ctx context.Context, ref, label string) error {
	s, err := r.whole(ctx)
	if err != nil {
		return err
	}
	pinned := map[string]bool{}
	for _, rec := range s.Branch {
		if l, ok := rec.Body.(session.Label); ok {
			pinned[l.Target] = l.Label == session.Pin
		}
	}
	target, err := message(s, ref, func(id string) bool { return label != "" || pinned[id] })
	if err != nil {
		return err
	}
	text := transcript.OneLine(transcript.Printable(target.Body.(session.Message).Text()), 60)
	switch {
	case label != "" && pinned[target.ID]:
		r.note("record %d is pinned already: %q", target.Seq, text)
		return nil
	case label == "" && !pinned[target.ID]:
		return fmt.Errorf("record %d is not pinned", target.Seq)
	}
	rec, err := r.Runner.Record(ctx, r.cur.ID, session.Label{Target: target.ID, Label: label})
	if err != nil {
		return err
	}
	r.recorded(rec)
	word := "pinned"
	if label == "" {
		word = "unpinned"
	}
	r.note("%s record %d: %q", word, target.Seq, text)
	return nil
}

// message finds a message of the live branch: the last one with words that
// fits, one by its number, or one by its id or a prefix of it.
func message(s *session.Session, ref string, fits func(id string) bool) (session.Record, error) {
	var found []session.Record
	seq, numErr := strconv.ParseInt(strings.TrimPrefix(ref, "#"), 10, 64)
	for _, rec := range s.Branch {
		m, ok := rec.Body.(session.Message)
		if !ok || strings.TrimSpace(m.Text()) == "" || rec.ID == "" {
			continue
		}
		switch {
		case ref == "" || ref == "last":
			if fits(rec.ID) {
				found = []session.Record{rec}
			}
		case rec.ID == ref, numErr == nil && rec.Seq == session.Seq(seq):
			return rec, nil
		case strings.HasPrefix(rec.ID, ref):
			found = append(found, rec)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return session.Record{}, fmt.Errorf("%q fits %d records: type more of the id, or a record's number", ref, len(found))
	case ref == "" || ref == "last":
		return session.Record{}, errors.New("there is no such message in this session")
	}
	return session.Record{}, fmt.Errorf("no message of this session is record %q: goclaw sessions show --records lists them", ref)
}

// extensions tell the format of a file.
var extensions = map[string]string{".md": "markdown", ".markdown": "markdown", ".jsonl": "native"}

func (r *REPL) export(ctx context.Context, arg string) error {
	if r.Export == nil {
		return errors.New("there is no export here")
	}
	if r.cur.ID == "" {
		return errEmpty
	}
	format, path, _ := strings.Cut(arg, " ")
	path = strings.TrimSpace(path)
	if path == "" && !slices.Contains([]string{"", "markdown", "md", "native", "jsonl", "openclaw", "pi", "claw0"}, format) {
		byName, ok := extensions[filepath.Ext(format)]
		if !ok {
			return fmt.Errorf("/export knows markdown, native and claw0, not %q; a file's name ends in .md or .jsonl", format)
		}
		format, path = byName, format
	}
	if format == "" {
		format = "markdown"
	}
	if path == "" {
		ext := ".jsonl"
		if format == "markdown" || format == "md" {
			ext = ".md"
		}
		name := slug(session.Titled(ctx, r.Store, r.cur))
		if name == "" {
			name = slug(string(r.cur.Key))
		}
		path = name + ext
	}
	if path == "-" {
		r.screen.finish()
		return r.Export(ctx, r.cur.ID, format, "")
	}
	if err := r.Export(ctx, r.cur.ID, format, path); err != nil {
		return err
	}
	r.note("wrote %s", path)
	return nil
}
