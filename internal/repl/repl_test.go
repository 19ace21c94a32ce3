package repl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/internal/naming"
	"goclaw/internal/repl/line"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/memory"
	"goclaw/tool"
	"goclaw/window"
)

// The words that logs are made of.
var (
	User, Answer, Called, Calls = sessiontest.User, sessiontest.Answer, sessiontest.Call, sessiontest.Calls
	Result, By, Title, Log      = sessiontest.Result, sessiontest.By, sessiontest.Title, sessiontest.Log
	Start                       = sessiontest.Start
)

type Clock = sessiontest.Clock

func TestMain(m *testing.M) {
	time.Local = time.UTC // transcripts show local times
	os.Exit(m.Run())
}

// quarter counts four bytes as a token.
type quarter struct{}

func (quarter) Count(s string) int { return (len(s) + 3) / 4 }

// tools are two: one that works, one that does not.
type tools struct{}

func (tools) Specs() []llm.ToolSpec {
	return []llm.ToolSpec{{Name: "look", Description: "looks", Schema: json.RawMessage(`{"type":"object"}`)}}
}

func (tools) Run(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	if c.Name == "look" {
		return llm.Result(c, "seen"), nil
	}
	return llm.Failed(c, "there is no \x1b[31mtool\nlike this"), nil
}

// bench is what outlives a chat: a store, a clock, and the model's script.
type bench struct {
	store session.Store
	clock *Clock
	model *llmtest.Model
	tools agent.Tools
	who   string
	wait  time.Duration
	ttl   time.Duration
	price func(llm.Usage) llm.Cost
}

func newBench(steps ...llmtest.Step) *bench {
	return &bench{store: memory.New(), clock: &Clock{Step: time.Second}, model: llmtest.New(steps...), tools: tools{}, who: "the test"}
}

// seed appends a literal log of key.
func (b *bench) seed(t *testing.T, id session.ID, key session.Key, bodies ...session.Body) {
	t.Helper()
	b.seedIn(t, "", id, key, bodies...)
}

// seedIn is seed for a session that began in folder.
func (b *bench) seedIn(t *testing.T, folder string, id session.ID, key session.Key, bodies ...session.Body) {
	t.Helper()
	head := session.Header{Version: session.Version, ID: id, Key: key, CWD: folder}
	if err := b.store.Append(context.Background(), id, Log(append([]session.Body{head}, bodies...)...)...); err != nil {
		t.Fatal(err)
	}
}

var models = map[string]Model{
	"test/one": {Provider: "test", Model: "one", Name: "test/one", Budget: window.Budget{Window: 1000, Reserve: 100}},
	"test/two": {Provider: "test", Model: "two", Name: "test/two"},
}

// options returns the options of a chat as after a start of the program.
func (b *bench) options(out, errs io.Writer) Options {
	now := "test/one"
	model := func() Model {
		m := models[now]
		m.Tokens, m.Prompt = quarter{}, window.Prompt{Provider: m.Provider, Model: m.Model, System: "be kind", Tools: b.tools.Specs()}
		return m
	}
	o := Options{
		Store: b.store, Clock: b.clock, Out: out, Err: errs, DefaultKey: "main:cli:user", Model: model,
		Choose: func(_ context.Context, spec string) (Model, error) {
			if _, ok := models[spec]; !ok {
				return Model{}, fmt.Errorf("model %q is not known", spec)
			}
			now = spec
			return model(), nil
		},
		Decide: func(_ context.Context, s *session.Session) (Model, string, error) {
			now = "test/one"
			if c, ok := s.Chosen(); ok {
				now = c.Body.(session.ModelChange).Name()
			}
			return model(), "", nil
		},
		Models: func() []string { return []string{"test/one", "test/two"} },
	}
	o.Runner = runner.New(runner.Options{Store: b.store, Clock: b.clock, Who: b.who, Wait: b.wait, TTL: b.ttl,
		Env: func(context.Context, *session.Session) (agent.Env, error) {
			m := model()
			return agent.Env{Provider: b.model, Prompt: m.Prompt, Tools: b.tools, Budget: m.Budget, Tokens: m.Tokens, API: "test", Price: b.price}, nil
		}})
	o.Export = func(ctx context.Context, id session.ID, format, path string) error {
		if path == "" {
			_, err := fmt.Fprintf(out, "<%s>\n", format)
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(format)
		return err
	}
	return o
}

// pipe runs a chat on what a pipe sends.
func (b *bench) pipe(t *testing.T, in string, opts ...func(*Options)) (out, errs string, err error) {
	t.Helper()
	var out1, errs1 strings.Builder
	o := b.options(&out1, &errs1)
	for _, f := range opts {
		f(&o)
	}
	err = New(o).Run(context.Background(), line.NewPlain(strings.NewReader(in), nil))
	return out1.String(), errs1.String(), err
}

// person runs a chat with a person at a terminal that can do nothing: questions
// and answers are all on one stream.
func (b *bench) person(t *testing.T, in string, opts ...func(*Options)) string {
	t.Helper()
	var all strings.Builder
	o := b.options(&all, &all)
	o.Interactive = true
	for _, f := range opts {
		f(&o)
	}
	if err := New(o).Run(context.Background(), line.NewPlain(strings.NewReader(in), &all)); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// talk is a log with two turns.
var talk = []session.Body{
	User("first question"), By("test", "one", Answer("first answer")), Title("About things"),
	User("second question"), By("test", "one", Answer("second answer")),
}

// want says what a chat prints.
func want(t *testing.T, what, got, want string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestPipe(t *testing.T) {
	b := newBench()
	out, errs, err := b.pipe(t, "hello\n\n  \nmore\\\nlines\n/quit\nnever\n")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "answers", out, "echo: hello\necho: more\nlines\n")
	want(t, "notes", errs, "")
	if n := len(b.model.Requests()); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}
	out, errs, err = b.pipe(t, "again")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "answers", out, "echo: again\n")
	want(t, "notes", errs, "Restored: 2 previous turns of main:cli:user (more)\n")
	if n := len(b.model.Requests()[2].Messages); n != 5 {
		t.Errorf("after a restart %d messages are sent, want 5", n)
	}
}

func TestCommands(t *testing.T) {
	const about = "Restored: 2 previous turns of main:cli:user (About things)\n"
	for name, c := range map[string]struct {
		in, out, errs string
	}{
		"unknown":              {"/swich x\n", "", "error: there is no /swich: did you mean /switch?\n"},
		"unknown altogether":   {"/frobnicate\n", "", "error: there is no /frobnicate: /help lists the commands, and //frobnicate sends it to the model\n"},
		"with a number":        {"/show9\n/pin_2\n", "", "error: there is no /show9: did you mean /show?\nerror: there is no /pin_2: /help lists the commands, and //pin_2 sends it to the model\n"},
		"slash alone":          {"/\n", "", "error: there is no /: /help lists the commands, and // sends it to the model\n"},
		"said with a slash":    {"//help me\n", "echo: /help me\n", ""},
		"a path is no command": {"/etc/hosts is odd\n", "echo: /etc/hosts is odd\n", ""},
		"quit":                 {"/quit\nx\n", "", ""},
		"quit in a word":       {"quit\nx\n", "", ""},
		"exit":                 {"EXIT\nx\n", "", ""},
		"too much":             {"/quit now\n", "", "error: /quit takes no argument\n"},
		"the list": {"/sessions\n", "" +
			"#   KEY            TITLE         TURNS  CONTEXT  LAST USED  FOLDER  MODEL     FROM\n" +
			"1*  main:cli:user  About things  2               now                test/one  goclaw\n" +
			"2   ops:cli:user   x             1               now                test/one  goclaw\n", ""},
		"the list under its other name": {"/list ops\n", "#  KEY           TITLE  TURNS  CONTEXT  LAST USED  FOLDER  MODEL     FROM\n1  ops:cli:user  x      1               now                test/one  goclaw\n", ""},
		"an empty list":                 {"/sessions zzz\n", "no session matches \"zzz\"\n", ""},
		"switch":                        {"/switch ops\nhi\n", "echo: hi\n", "Restored: 1 previous turn of ops:cli:user\n"},
		"search where there is none":    {"/search x\n", "", "error: there is no search here\n"},
		"switch to a number": {"/sessions ops\n/switch 1\n", "" +
			"#  KEY           TITLE  TURNS  CONTEXT  LAST USED  FOLDER  MODEL     FROM\n1  ops:cli:user  x      1               now                test/one  goclaw\n", "Restored: 1 previous turn of ops:cli:user\n"},
		"a number without a list": {"/switch 1\n", "", "error: there is no session \"1\": no list of sessions was printed here yet\n"},
		"several fit": {"/switch cli\n/switch 2\n", "" +
			"#   KEY            TITLE         TURNS  CONTEXT  LAST USED  FOLDER  MODEL     FROM\n" +
			"1*  main:cli:user  About things  2               now                test/one  goclaw\n" +
			"2   ops:cli:user   x             1               now                test/one  goclaw\n", "error: session \"cli\" is ambiguous: 2 sessions fit\nRestored: 1 previous turn of ops:cli:user\n"},
		"switch to itself":              {"/switch main\n", "", "already in main:cli:user\n"},
		"switch to nothing":             {"/switch zzz\n", "", "error: there is no session \"zzz\"\n"},
		"switch by a part of the key":   {"/new my-project\n/switch about\n/switch my-p\n", "", "started main:cli:my-project\n" + about + "switched to main:cli:my-project\n"},
		"switch by a word of the title": {"/switch ops\n/switch thing\n", "", "Restored: 1 previous turn of ops:cli:user\n" + about},
		"a flag that is not known":      {"/compact --dryrun\n", "", "error: /compact has no flag --dryrun: did you mean --dry-run?\n"},
		"a flag after the focus":        {"/compact the plan -n\n", "", "error: /compact has no flag -n\n"},
		"a flag in a title":             {"/title -x y\n/title a -x\n", "", "error: /title has no flag -x; /title -- -x uses it as text\nmain:cli:user is now called \"a -x\"\n"},
		"a far word":                    {"/foo\n/hat\n", "", "error: there is no /foo: /help lists the commands, and //foo sends it to the model\nerror: there is no /hat: /help lists the commands, and //hat sends it to the model\n"},
		"switch without a key":          {"/switch\n", "", "error: /switch needs a KEY: /sessions lists them\n"},
		"new":                           {"/new\nhi\n", "echo: hi\n", "started main:cli:20261115-000000\n"},
		"new with a label":              {"/new  Trip to Österreich, 2027!\n/title\n", "Trip to Österreich, 2027!\n", "started main:cli:trip-to-österreich-2027\n"},
		"new twice":                     {"/new a\n/new a\n", "", "started main:cli:a\nstarted main:cli:a-2\n"},
		"history": {"/history 1\n", "… 1 earlier turn: /history all\nuser  2026-11-15 00:00  #5\nsecond question\n\n" +
			"assistant  2026-11-15 00:00  #6\nsecond answer\n", ""},
		"all history": {"/history all\n", "user  2026-11-15 00:00  #2\nfirst question\n\nassistant  2026-11-15 00:00  #3\nfirst answer\n\n" +
			"00:00:00  title  About things\nuser  2026-11-15 00:00  #5\nsecond question\n\nassistant  2026-11-15 00:00  #6\nsecond answer\n", ""},
		"history of nothing":   {"/new x\n/history\n", "nothing has been said yet\n", "started main:cli:x\n"},
		"wrong history":        {"/history -1\n", "", "error: /history takes a number of turns or all, not \"-1\"\n"},
		"delete another":       {"/delete ops\n/sessions ops\n", "no session matches \"ops\"\n", "moved ops:cli:user to the trash: goclaw sessions restore s2 brings it back\n"},
		"delete this":          {"/delete main\nhi\n", "echo: hi\n", "moved main:cli:user to the trash: goclaw sessions restore s1 brings it back\nstarted main:cli:20261115-000000\n"},
		"delete nothing":       {"/delete zzz\n", "", "error: there is no session \"zzz\"\n"},
		"model":                {"/model\n", "test/one, a window of 1k tokens\n", ""},
		"another model":        {"/model test/two\n/model\n", "test/two\n", "now using test/two\n"},
		"a wrong model":        {"/model zzz\n/model\n", "test/one, a window of 1k tokens\n", "error: model \"zzz\" is not known (still using test/one)\n"},
		"title":                {"/title\n", "About things\n", ""},
		"another title":        {"/title  New   name \n/title\n", "New name\n", "main:cli:user is now called \"New name\"\n"},
		"no title":             {"/new\n/title\n", "main:cli:20261115-000000 has no title yet\n", "started main:cli:20261115-000000\n"},
		"fork":                 {"/fork\n/title\n", "About things\n", "forked main:cli:user as main:cli:user-2\nRestored: 2 previous turns of main:cli:user-2 (About things)\n"},
		"fork with a key":      {"/fork main:cli:x\n", "", "forked main:cli:user as main:cli:x\nRestored: 2 previous turns of main:cli:x (About things)\n"},
		"fork onto another":    {"/fork ops:cli:user\n", "", "error: there already is a session ops:cli:user: choose another key\n"},
		"pin":                  {"/pin\n/pin last\n", "", "pinned record 6: \"second answer\"\nrecord 6 is already pinned: \"second answer\"\n"},
		"pin by number":        {"/pin 2\n/pin #3\n", "", "pinned record 2: \"first question\"\npinned record 3: \"first answer\"\n"},
		"pin by id":            {"/pin e4\n/pin e4x\n", "", "pinned record 5: \"second question\"\nerror: this session has no message \"e4x\": goclaw sessions show --records lists them\n"},
		"pin too much":         {"/pin e\n", "", "error: \"e\" matches 4 records: type more of the id, or a record number\n"},
		"pin a title":          {"/pin 4\n", "", "error: this session has no message \"4\": goclaw sessions show --records lists them\n"},
		"pin nothing":          {"/new x\n/pin\n", "", "started main:cli:x\nerror: there is no such message in this session\n"},
		"unpin":                {"/pin 2\n/unpin\n/unpin\n", "", "pinned record 2: \"first question\"\nunpinned record 2: \"first question\"\nerror: there is no such message in this session\n"},
		"unpin what is not":    {"/unpin 2\n", "", "error: record 2 is not pinned\n"},
		"continue nothing":     {"/continue\n", "", "error: nothing was interrupted: there is nothing to continue\n"},
		"thinking":             {"/thinking\n/thinking off\n/thinking loud\n", "", "thinking is shown\nthinking is hidden\nerror: /thinking takes on or off, not \"loud\": it shows or hides; /think says how much\n"},
		"export to the screen": {"/export native -\n", "<native>\n", ""},
		"wrong export":         {"/export pdf\n", "", "error: /export writes markdown, native and claw0, not \"pdf\"; file names end in .md or .jsonl\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.clock = &Clock{} // times are told
			b.seed(t, "s1", "main:cli:user", talk...)
			b.seed(t, "s2", "ops:cli:user", User("x"), By("test", "one", Answer("y")))
			out, errs, err := b.pipe(t, c.in)
			if err != nil {
				t.Errorf("the chat ends with %v, want nil", err)
			}
			want(t, "out", out, c.out)
			want(t, "err", errs, about+c.errs)
		})
	}
}

func TestRecordsOfCommands(t *testing.T) {
	b := newBench()
	b.seed(t, "s1", "main:cli:user", talk...)
	if _, _, err := b.pipe(t, "/title T\n/model test/two\n/pin 2\n/unpin 2\n"); err != nil {
		t.Fatal(err)
	}
	recs, err := sessiontest.Collect(b.store.Read(context.Background(), "s1", 6))
	if err != nil {
		t.Fatal(err)
	}
	var got []session.Body
	for _, r := range recs {
		got = append(got, r.Body)
	}
	wantBodies := []session.Body{
		session.Title{Title: "T"}, session.ModelChange{Provider: "test", Model: "two", Chosen: true},
		session.Label{Target: "e1", Label: session.Pin}, session.Label{Target: "e1"},
	}
	if d := cmp.Diff(wantBodies, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestHelpNamesEveryCommand(t *testing.T) {
	out, _, err := newBench().pipe(t, "/help\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"new", "sessions", "list", "switch", "history", "delete", "context", "model", "title", "fork", "pin", "export", "continue", "help", "quit"} {
		if !strings.Contains(out, "/"+c) {
			t.Errorf("help does not tell of /%s:\n%s", c, out)
		}
	}
	for _, key := range []string{"Tab", "Esc", "Ctrl-R", "Alt-Enter"} { // which lines do not have
		if strings.Contains(out, key) {
			t.Errorf("help tells of %s:\n%s", key, out)
		}
	}
}

func TestContext(t *testing.T) {
	b := newBench()
	b.seed(t, "s1", "main:cli:user",
		User(strings.Repeat("u", 400)), Called("c1", "look"), Result("c1", strings.Repeat("r", 800)), Answer(strings.Repeat("a", 200)))
	out, errs, err := b.pipe(t, "/context\n")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "out", out, ""+
		"[███████████████·····················░░░░] [Context: 390/1k tokens (39%)]\n"+
		"  system prompt                  2    0%\n"+
		"  tools                         12    3%\n"+
		"  results of look              208   53%  1 result\n"+
		"  you                          104   26%  1 message\n"+
		"  answers                       64   16%  2 messages\n"+
		"  100 tokens are kept free for the answer\n"+
		"  spent so far: 0 tokens in, 0 out\n")
	want(t, "err", errs, "Restored: 1 previous turn of main:cli:user\n")
	out, _, err = b.pipe(t, "/model test/two\n/context\n")
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(out, "\n"); first != "390 tokens; the model's window is not known" {
		t.Errorf("without a known window the first line is %q", first)
	}
}

func TestCompactAndUndo(t *testing.T) {
	b := newBench()
	var log []session.Body
	for i := range 12 {
		log = append(log, User(fmt.Sprint("question ", i, strings.Repeat(" word", 30))), Answer(fmt.Sprint("answer ", i, strings.Repeat(" word", 30))))
	}
	b.seed(t, "s1", "main:cli:user", append(log, session.Checkpoint{Summary: "## Summary\nall was asked", Topics: []string{"words"}, Covers: "e4", Tokens: 160, Messages: 4, Model: "test/one"})...)
	out, errs, err := b.pipe(t, "/undo\n/compact --dry-run\n/compact the words\n/undo\n/undo\n/checkpoints\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"would compact 18 messages and keep 6 messages", "for the summary: about", "topics: words", "4 messages, 160 tokens, by test/one"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for _, want := range []string{"compacted 18 messages, kept 6 messages", "an extract", "is undone: the earlier turns are sent again"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not in\n%s", want, errs)
		}
	}
	if n := strings.Count(errs, "nothing is compacted"); n != 2 {
		t.Errorf("%d of 2 undos had nothing to undo:\n%s", n, errs)
	}
	if out, errs, _ = newBench().pipe(t, "/compact\n"); !strings.Contains(errs, "too short to compact") {
		t.Errorf("%s%s", out, errs)
	}
}

func TestToolsAreNotes(t *testing.T) {
	b := newBench(
		llmtest.Answer(llm.Text{Text: "\n\nI look. "}, llm.ToolCall{ID: "c1", Name: "look", Args: json.RawMessage(`{"at":"\u001b[2J"}`)}),
		llmtest.Call("c2", "nope", `{}`),
		llmtest.Answer(llm.Text{Text: "do\x1b]0;evil\x07ne\r\n"}))
	out, errs, err := b.pipe(t, "go\n")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "answers", out, "I look. \ndo\uFFFD]0;evil\uFFFDne\n")
	want(t, "notes", errs, "→ look(at: \"\\u001b[2J\")\n  seen\n← 1.0 s\n→ nope()\n← nope failed: there is no \uFFFD[31mtool like this\n")
}

func TestFoldingIsTold(t *testing.T) {
	var e strings.Builder
	c := New(newBench().options(io.Discard, &e))
	for _, ev := range []agent.Event{
		agent.Learnt{Provider: "test", Model: "one", Window: 8192}, agent.Squeezed{To: window.Results}, agent.Compacting{},
		agent.NotCompacted{Err: &compact.LargerError{Before: 1800, After: 2800}},
		agent.Recorded{Record: session.Record{Seq: 9, Body: session.Compaction{Summary: "s"}}, Info: session.Info{Last: 9}},
	} {
		c.show(ev)
	}
	want(t, "notes", e.String(), "test/one takes only 8.1k tokens: remembered\ntoo long for the model: asking again with shorter tool results\n"+
		"the window is full: compacting the past\nnot compacted: the summary would take more room than what it replaces (1.8k tokens now, about 2.8k then)\nthe earlier turns are now a summary; nothing was deleted, and /undo brings them back\n")
	if c.cur.Last != 9 {
		t.Errorf("the chat knows %d records, want 9", c.cur.Last)
	}
}

func TestThinking(t *testing.T) {
	step := llmtest.Answer(llm.Thinking{Text: "hmm\x1b[1m", Signature: "s"}, llm.Text{Text: "yes"})
	out, errs, err := newBench(step, step).pipe(t, "one\n/thinking on\ntwo\n")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "answers", out, "yes\nyes\n")
	want(t, "notes", errs, "thinking is shown\nhmm\uFFFD[1m\n")
}

func TestTurnFails(t *testing.T) {
	b := newBench(llmtest.Fail(&llm.APIError{Provider: "test", Status: 401, Message: "bad\nkey", Kind: llm.ErrAuth}), llmtest.Break("half an ", llm.ErrNetwork))
	out, errs, err := b.pipe(t, "one\ntwo\n/continue\nthree\n", func(o *Options) {
		o.Hint = func(err error) string {
			if errors.Is(err, llm.ErrAuth) {
				return "look at the key"
			}
			return ""
		}
	})
	if !errors.Is(err, ErrFailed) {
		t.Errorf("the chat ends with %v, want ErrFailed", err)
	}
	want(t, "answers", out, "half an \necho: one\ntwo\necho: three\n")
	for _, part := range []string{"error: ", "bad; key", "  look at the key\n", "  your message is saved: /continue asks again\n"} {
		if !strings.Contains(errs, part) {
			t.Errorf("the notes lack %q:\n%s", part, errs)
		}
	}
	if out := newBench(llmtest.Fail(llm.ErrNetwork)).person(t, "one\n"); !strings.Contains(out, "error: ") {
		t.Errorf("a person does not see the error:\n%s", out)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	cut := func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			if yield(llm.Delta{Text: "too lo"}, nil) {
				yield(llm.Delta{End: &llm.Answer{Message: llm.AssistantText("too lo"), Stop: llm.StopLength}}, nil)
			}
		}
	}
	out, errs, err := newBench(cut, llmtest.Answer()).pipe(t, "one\ntwo\n")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "answers", out, "too lo\n")
	want(t, "notes", errs, "[the answer reached its length limit and was cut off; say \"continue\" for more]\n[the model gave an empty answer]\n")
}

func TestInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		log  []session.Body
		says string
	}{
		"a part of it": {[]session.Body{User("q"), session.Partial{Text: "So far"}}, "The last turn was interrupted: only the beginning of the answer to \"q\" is there.\n"},
		"no answer":    {[]session.Body{User("a question\x1b[2J of mine")}, "The last turn was interrupted: \"a question\uFFFD[2J of mine\" has no answer yet.\n"},
		"a tool": {[]session.Body{User("do it"), Called("c1", "bash")},
			"The last turn (\"do it\") was interrupted while it ran bash. This may have had effects, and is not repeated automatically.\n"},
		"two tools": {[]session.Body{User("do it"), Calls(llm.ToolCall{ID: "c1", Name: "bash"}, llm.ToolCall{ID: "c2", Name: "look"})},
			"The last turn (\"do it\") was interrupted while it ran bash, look. This may have had effects, and is not repeated automatically.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(llmtest.Say("done now"), llmtest.Say("done again"))
			b.seed(t, "s1", "main:cli:user", c.log...)
			_, errs, err := b.pipe(t, "")
			if err != nil {
				t.Fatal(err)
			}
			want(t, "in a pipe", errs, "Restored: 1 previous turn of main:cli:user\n"+c.says+"/continue resumes it.\n")
			if n := len(b.model.Requests()); n != 0 {
				t.Fatalf("the model was asked %d times without a word", n)
			}
			if got := b.person(t, "n\n"); !strings.Contains(got, c.says+"Continue it? [Y/n] /continue resumes it later.\n> ") {
				t.Errorf("to a person who says no the chat says\n%s", got)
			}
			if got := b.person(t, "\n"); !strings.Contains(got, "Continue it? [Y/n] done now\n\n> ") {
				t.Errorf("to a person who says yes the chat says\n%s", got)
			}
			if got := b.person(t, ""); strings.Contains(got, "interrupted") {
				t.Errorf("what was gone on with is still called interrupted:\n%s", got)
			}
		})
	}
	t.Run("a command as the answer", func(t *testing.T) {
		b := newBench(llmtest.Say("done now"))
		b.seed(t, "s1", "main:cli:user", User("do it"), Called("c1", "bash"))
		if got := b.person(t, "/title Later\n"); !strings.Contains(got, "Continue it? [Y/n] /continue resumes it later.\n") || !strings.Contains(got, "Later") {
			t.Errorf("to a command the chat says\n%s", got)
		}
		if n := len(b.model.Requests()); n != 0 {
			t.Errorf("the model was asked %d times after a command", n)
		}
		if got := b.person(t, "/continue\n"); !strings.Contains(got, "Continue it? [Y/n] done now\n") {
			t.Errorf("to /continue the chat says\n%s", got)
		}
	})
	t.Run("continue", func(t *testing.T) {
		b := newBench(llmtest.Say("done"))
		b.seed(t, "s1", "main:cli:user", User("do it"), Called("c1", "bash"))
		out, _, err := b.pipe(t, "/continue\n")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "out", out, "done\n")
		last := b.model.Requests()[0].Messages
		if rs := last[len(last)-1].Results(); len(rs) != 1 || !rs[0].IsError {
			t.Errorf("the interrupted call is answered with %v, want one failed result", rs)
		}
	})
	t.Run("held by another", func(t *testing.T) {
		b := newBench()
		b.seed(t, "s1", "main:cli:user", User("do it"))
		release, err := b.store.Lock(context.Background(), "s1", "goclaw on this host")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		_, errs, err := b.pipe(t, "")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "err", errs, fmt.Sprintf("Restored: 1 previous turn of main:cli:user\n"+
			"goclaw on this host (pid %d) is working in this session: your messages wait until it is done\n", os.Getpid()))
	})
}

func TestHeldSession(t *testing.T) {
	b := newBench()
	b.seed(t, "s1", "main:cli:user", talk...)
	release, err := b.store.Lock(context.Background(), "s1", "another chat")
	if err != nil {
		t.Fatal(err)
	}
	_, errs, err := b.pipe(t, "hi\n")
	if !errors.Is(err, ErrFailed) || !strings.Contains(errs, "held by another chat") {
		t.Errorf("without waiting: %v, %q", err, errs)
	}
	b.wait = time.Minute
	var o strings.Builder
	in := line.NewPlain(strings.NewReader("hi\n"), nil)
	opts := b.options(&o, writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "waiting: this session has been locked by another chat (pid") {
			release()
		}
		return len(p), nil
	}))
	if err := New(opts).Run(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	want(t, "after it was let go", o.String(), "echo: hi\n")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestAnotherProgramAppends(t *testing.T) {
	b := newBench()
	said := false
	b.model.Rest = func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] { return llmtest.Echo(ctx, req) }
	var o, e strings.Builder
	pr, pw := io.Pipe()
	opts := b.options(writerFunc(func(p []byte) (int, error) {
		o.Write(p)
		if !said && strings.Contains(o.String(), "\n") {
			said = true
			go func() {
				// After the first turn, before the second.
				for {
					in, err := session.Current(context.Background(), b.store, "main:cli:user")
					if err != nil {
						t.Error(err)
						break
					}
					s, err := session.Open(context.Background(), b.store, in.ID)
					if err != nil {
						t.Error(err)
						break
					}
					if s.Title == "" { // the turn's last record
						time.Sleep(time.Millisecond)
						continue
					}
					first := s.Next(User("from elsewhere"), b.clock)
					if err := s.Apply(first); err != nil {
						t.Error(err)
						break
					}
					if err := b.store.Append(context.Background(), in.ID, first, s.Next(Answer("noted"), b.clock)); err != nil {
						t.Error(err)
					}
					break
				}
				io.WriteString(pw, "two\n")
				pw.Close()
			}()
		}
		return len(p), nil
	}), &e)
	go io.WriteString(pw, "one\n")
	if err := New(opts).Run(context.Background(), line.NewPlain(pr, nil)); err != nil {
		t.Fatal(err)
	}
	want(t, "notes", e.String(), "another program has added 2 records to this session: /history shows them\n")
	reqs := b.model.Requests()
	if got := reqs[len(reqs)-1].Messages[2].Text(); got != "from elsewhere" {
		t.Errorf("the next turn sends %q, want what came from elsewhere", got)
	}
}

func TestDeletedElsewhere(t *testing.T) {
	b := newBench()
	b.seed(t, "s1", "main:cli:user", talk...)
	b.model.Rest = func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		return llmtest.Echo(ctx, req)
	}
	var e strings.Builder
	in := line.NewPlain(strings.NewReader("hi\n"), nil)
	o := b.options(io.Discard, writerFunc(func(p []byte) (int, error) {
		if strings.HasPrefix(string(p), "Restored") {
			if err := b.store.Delete(context.Background(), "s1"); err != nil {
				t.Error(err)
			}
		}
		return e.Write(p)
	}))
	if err := New(o).Run(context.Background(), in); !errors.Is(err, ErrFailed) {
		t.Errorf("the chat ends with %v, want ErrFailed", err)
	}
	if !strings.Contains(e.String(), "error: this session was deleted by another program") {
		t.Errorf("the notes are\n%s", e.String())
	}
}

func TestStart(t *testing.T) {
	at := func(d time.Duration, b *bench, t *testing.T, id session.ID, key session.Key) {
		recs := Log(session.Header{Version: session.Version, ID: id, Key: key}, User("hi"), Answer("ho"))
		for i := range recs {
			recs[i].Time = Start.Add(d)
		}
		if err := b.store.Append(context.Background(), id, recs...); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		ref  string
		ttl  time.Duration
		want session.Key
		errs string
	}{
		"the one used last":       {"", 0, "main:cli:later", "Restored: 1 previous turn of main:cli:later\n"},
		"by key":                  {"main:cli:user", 0, "main:cli:user", "Restored: 1 previous turn of main:cli:user\n"},
		"by prefix":               {"main:tele", 0, "main:telegram:7", "Restored: 1 previous turn of main:telegram:7\n"},
		"by id":                   {"s3", 0, "main:telegram:7", "Restored: 1 previous turn of main:telegram:7\n"},
		"a new key":               {"main:cli:fresh", 0, "main:cli:fresh", "a new session, main:cli:fresh\n"},
		"by a part of the key":    {"later", 0, "main:cli:later", "Restored: 1 previous turn of main:cli:later\n"},
		"a prefix of three parts": {"main:cli:lat", 0, "main:cli:later", "Restored: 1 previous turn of main:cli:later\n"},
		"idle for too long":       {"", time.Minute, "main:cli:later", "main:cli:later was idle for too long: this is a new session, the old one is s2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.ttl = c.ttl
			b.clock.Move(time.Hour)
			at(0, b, t, "s1", "main:cli:user")
			at(time.Second, b, t, "s2", "main:cli:later")
			at(2*time.Second, b, t, "s3", "main:telegram:7")
			at(3*time.Second, b, t, "s4", "ops:cli:user")
			var key session.Key
			_, errs, err := b.pipe(t, "hi\n", func(o *Options) {
				o.Session, o.Begin = c.ref, naming.WholeKey
				o.Hint = nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for in, err := range b.store.List(context.Background(), session.Query{Limit: 1}) {
				if err != nil {
					t.Fatal(err)
				}
				key = in.Key
			}
			if key != c.want {
				t.Errorf("the turn is in %s, want %s", key, c.want)
			}
			want(t, "err", errs, c.errs)
		})
	}
	t.Run("the one used last, behind many others", func(t *testing.T) {
		b := newBench()
		at(0, b, t, "s1", "main:cli:a")
		for i := range 300 {
			at(time.Minute, b, t, session.ID(fmt.Sprintf("t%d", i)), session.Key(fmt.Sprintf("main:telegram:%d", i)))
		}
		_, errs, err := b.pipe(t, "")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "err", errs, "Restored: 1 previous turn of main:cli:a\n")
	})
	t.Run("ambiguous", func(t *testing.T) {
		b := newBench()
		at(0, b, t, "s1", "main:cli:a")
		at(0, b, t, "s2", "main:cli:b")
		_, _, err := b.pipe(t, "", func(o *Options) { o.Session = "main" })
		var amb *naming.AmbiguousError
		if !errors.As(err, &amb) {
			t.Errorf("the chat ends with %v, want an *AmbiguousError", err)
		}
	})
	t.Run("a key without parts", func(t *testing.T) {
		b := newBench()
		at(0, b, t, "s1", "main:cli:a")
		_, errs, err := b.pipe(t, "/new\n", func(o *Options) { o.DefaultKey = "me" })
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(errs, "started me-2026") {
			t.Errorf("the notes are %q", errs)
		}
	})
	t.Run("openclaw's keys", func(t *testing.T) {
		_, errs, err := newBench().pipe(t, "/new x\n", func(o *Options) { o.DefaultKey = "agent:main:cli:direct:user" })
		if err != nil {
			t.Fatal(err)
		}
		want(t, "err", errs, "started agent:main:cli:x\n")
	})
}

// TestInherited: where nothing was said here yet, the chat offers the main
// session that another program left, and later goes on with what continues it.
func TestInherited(t *testing.T) {
	inherit := func(t *testing.T) *bench {
		b := newBench(llmtest.Say("hello to you"), llmtest.Say("and again"))
		for i, key := range []session.Key{"agent:main:main", "agent:ops:main", "agent:main:telegram:direct:7"} {
			id := session.ID(fmt.Sprint("m", i))
			head := session.Header{Version: session.Version, ID: id, Key: key, Origin: session.Origin{Program: "openclaw", Path: "/x", Key: key, ID: id}}
			if err := b.store.Append(context.Background(), id, Log(append([]session.Body{head}, talk...)...)...); err != nil {
				t.Fatal(err)
			}
		}
		return b
	}
	t.Run("yes", func(t *testing.T) {
		b := inherit(t)
		got := b.person(t, "\nhello\n")
		for _, want := range []string{"Continue agent:main:main of openclaw (2 turns)? [Y/n] ", "Restored: 2 previous turns of agent:main:main", "the conversation continues in goclaw:main:main", "hello to you"} {
			if !strings.Contains(got, want) {
				t.Errorf("it does not say %q:\n%s", want, got)
			}
		}
		if _, errs, err := b.pipe(t, ""); err != nil || !strings.Contains(errs, "Restored: 3 previous turns of goclaw:main:main") {
			t.Errorf("the next time: %v\n%s", err, errs)
		}
	})
	t.Run("no", func(t *testing.T) {
		b := inherit(t)
		if got := b.person(t, "n\nhello\n"); !strings.Contains(got, "New session main:cli:user") {
			t.Errorf("it says\n%s", got)
		}
		if got := b.person(t, ""); strings.Contains(got, "Continue agent") || !strings.Contains(got, "Restored: 1 previous turn of main:cli:user") {
			t.Errorf("the next time it says\n%s", got)
		}
	})
	t.Run("in a pipe", func(t *testing.T) {
		_, errs, err := inherit(t).pipe(t, "hello\n")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "err", errs, "goclaw --session agent:main:main continues agent:main:main of openclaw (2 turns)\n")
	})
}

func TestSessionRemembersItsModel(t *testing.T) {
	b := newBench()
	for _, step := range []struct{ in, out, errs string }{
		{"/model test/two\nhi\n", "echo: hi\n", "now using test/two\n"},
		{"/model\n", "test/two\n", "Restored: 1 previous turn of main:cli:user\n"},
		{"/new x\n/model\n/switch main:cli:user\n/model\n", "test/one, a window of 1k tokens\ntest/two\n",
			"Restored: 1 previous turn of main:cli:user\nmodel: test/one\nstarted main:cli:x\nmodel: test/two\nRestored: 1 previous turn of main:cli:user\n"},
	} {
		out, errs, err := b.pipe(t, step.in, func(o *Options) { o.Session = "main:cli:user" })
		if err != nil {
			t.Fatal(err)
		}
		want(t, "out", out, step.out)
		want(t, "err", errs, step.errs)
	}
}

func TestExportToFiles(t *testing.T) {
	b := newBench()
	b.seed(t, "s1", "main:cli:user", talk...)
	dir := t.TempDir()
	t.Chdir(dir)
	_, errs, err := b.pipe(t, "/export\n/export\n/export native\n/export notes.jsonl\n/export claw0 x y.txt\n")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "err", errs, "Restored: 2 previous turns of main:cli:user (About things)\nwrote about-things.md\n"+
		"error: open about-things.md: file exists\nwrote about-things.jsonl\nwrote notes.jsonl\nwrote x y.txt\n")
	for name, format := range map[string]string{"about-things.md": "markdown", "about-things.jsonl": "native", "notes.jsonl": "native", "x y.txt": "claw0"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); string(data) != format || err != nil {
			t.Errorf("%s holds %q (%v), want %q", name, data, err, format)
		}
	}
}

func TestPersonSeesWhere(t *testing.T) {
	b := newBench()
	got := b.person(t, "hello\n", func(o *Options) { o.Model = withNote(o.Model, "no key: offline") })
	want(t, "first", got, "no key: offline\nNew session main:cli:user with test/one. /help lists the commands.\n> echo: hello\n\n> ")
	got = b.person(t, "")
	want(t, "again", got, "Restored: 1 previous turn of main:cli:user\n  > hello\n    echo: hello\n> ")
}

func TestPersonSeesAnotherFolder(t *testing.T) {
	b := newBench()
	b.seedIn(t, "/w/greeter", "s1", "main:cli:user", talk...)
	in := func(folder string) func(*Options) { return func(o *Options) { o.CWD, o.Folder = folder, folder } }
	const note = "This session began in /w/greeter; its tools now work in /w/other. /new starts a session here.\n"
	if got := b.person(t, "", in("/w/other")); strings.Count(got, note) != 1 {
		t.Errorf("in another folder:\n%s", got)
	}
	if got := b.person(t, "", in("/w/greeter/")); strings.Contains(got, "began in") {
		t.Errorf("in its folder:\n%s", got)
	}
}

func withNote(f func() Model, note string) func() Model {
	return func() Model { m := f(); m.Note = note; return m }
}

func TestApprove(t *testing.T) {
	for name, c := range map[string]struct {
		in      string
		command string
		want    tool.Decision
		shown   string
		allowed []string
	}{
		"once":          {"y\n", "ls", tool.Once, "  ls\n", nil},
		"session":       {"s\n", "ls", tool.Session, "  ls\n", nil},
		"always":        {"a\n", "ls", tool.Always, "  ls\n", []string{`bash("ls")`}},
		"no":            {"n\n", "ls", tool.No, "  ls\n", nil},
		"nothing":       {"\n", "ls", tool.No, "  ls\n", nil},
		"end":           {"", "ls", tool.No, "  ls\n", nil},
		"asked again":   {"sure\nyes\n", "ls", tool.Once, "  ls\n", nil},
		"several lines": {"n\n", "a &&\nb\n", tool.No, "  a &&\n  b\n", nil},
		"hidden":        {"n\n", "ls \x1b[8m; rm -rf x", tool.No, `  "ls \x1b[8m; rm -rf x"` + "\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var shown strings.Builder
			o := newBench().options(&shown, &shown)
			o.Interactive = true
			var allowed []string
			o.Remember = func(rule tool.Rule) error { allowed = append(allowed, rule.String()); return nil }
			chat := New(o)
			chat.in = line.NewPlain(strings.NewReader(c.in), &shown)
			got, err := chat.Approve(context.Background(), tool.Request{Tool: "bash", Command: c.command, Dir: "/w", Rule: tool.Exactly(c.command)})
			if err != nil || got != c.want {
				t.Errorf("the decision is %v, %v; want %v", got, err, c.want)
			}
			if !strings.HasPrefix(shown.String(), "bash wants to run in /w:\n"+c.shown) {
				t.Errorf("shown is\n%s", shown.String())
			}
			if d := cmp.Diff(c.allowed, allowed); d != "" {
				t.Errorf("allowed for always (-want +got):\n%s", d)
			}
		})
	}
	t.Run("because", func(t *testing.T) {
		var shown strings.Builder
		o := newBench().options(&shown, &shown)
		o.Interactive = true
		for answer, want := range map[string]tool.Because{"no, use make": "use make", "n it is slow": "it is slow", "No: because I say so": "because I say so"} {
			chat := New(o)
			chat.in = line.NewPlain(strings.NewReader(answer+"\n"), &shown)
			if got, err := chat.Approve(context.Background(), tool.Request{Tool: "bash", Command: "ls"}); got != tool.No || err != want {
				t.Errorf("%s: the decision is %v, %v; want no, because %s", answer, got, err, want)
			}
		}
	})
	t.Run("no answer", func(t *testing.T) {
		var shown strings.Builder
		o := newBench().options(&shown, &shown)
		o.Interactive = true
		chat := New(o)
		chat.in = line.NewPlain(strings.NewReader("what is it?\ny\n"), &shown)
		got, err := chat.Approve(context.Background(), tool.Request{Tool: "bash", Command: "ls", Dir: "/w"})
		if err != nil || got != tool.Once || strings.Count(shown.String(), "Please answer with one of these letters.\n") != 1 {
			t.Errorf("%v, %v\n%s", got, err, shown.String())
		}
	})
	t.Run("a file", func(t *testing.T) {
		var shown strings.Builder
		o := newBench().options(&shown, &shown)
		o.Interactive = true
		chat := New(o)
		chat.in = line.NewPlain(strings.NewReader("s\n"), &shown)
		diff := "diff a.go a.go\n--- a.go\n+++ a.go\n@@ -1,1 +1,1 @@\n-old\n+new \x1b[31m\n"
		got, err := chat.Approve(context.Background(), tool.Request{Tool: "edit_file", Path: "a.go", Dir: "/w", Diff: diff})
		if want := "edit_file wants to change a.go in /w:\n  @@ -1,1 +1,1 @@\n  -old\n  +new \uFFFD[31m\n[s] and [a] would allow every change of a file here.\n["; err != nil || got != tool.Session || !strings.HasPrefix(shown.String(), want) {
			t.Errorf("%v, %v\n%s", got, err, shown.String())
		}
	})
	t.Run("in a pipe", func(t *testing.T) {
		chat := New(newBench().options(io.Discard, io.Discard))
		chat.in = line.NewPlain(strings.NewReader("y\n"), nil)
		if got, err := chat.Approve(context.Background(), tool.Request{Command: "ls"}); got != tool.No || err != nil {
			t.Errorf("the decision is %v, %v; want no", got, err)
		}
	})
}

func TestArguments(t *testing.T) {
	b := newBench()
	b.seed(t, "s1", "main:cli:user", talk...)
	b.seed(t, "s2", "ops:cli:user", talk...)
	b.seed(t, "s3", "ops:cli:user", talk...)
	o := b.options(io.Discard, io.Discard)
	o.Interactive = true
	r := Remote{New(o)}
	r.Chat.offer()
	texts := func(list []Completion) (out []string) {
		for _, c := range list {
			out = append(out, c.Text)
		}
		return out
	}
	for command, want := range map[string][]string{
		"delete":   {"main:cli:user", "ops:cli:user"},
		"export":   {"claw0", "markdown", "native"},
		"thinking": {"off", "on"},
		"title":    nil,
		"zzz":      nil,
	} {
		got, later := r.Arguments(command)
		if later != nil {
			got = later()
		}
		if d := cmp.Diff(want, slices.Compact(slices.Sorted(slices.Values(texts(got))))); d != "" {
			t.Errorf("/%s (-want +got):\n%s", command, d)
		}
	}
	commands := texts(r.Completions())
	for _, want := range []string{"/sessions", "/list", "/switch", "/search", "/skills", "/show"} {
		if !slices.Contains(commands, want) {
			t.Errorf("%s is missing in %q", want, commands)
		}
	}
}

// In a pipe nothing that is shown can move the cursor, whoever said it.
func TestNoEscapes(t *testing.T) {
	evil := "\x1b[2J\x1b]0;x\x07\u202e\x9b31m"
	b := newBench(llmtest.Say(evil), llmtest.Call("c1", "look", `{"a":"`+strings.ReplaceAll(evil, "\x1b", `\u001b`)[:3]+`"}`), llmtest.Fail(errors.New(evil)))
	b.seed(t, "s1", session.Key("main:cli:"+strings.ReplaceAll(evil, "\x9b", "")), User(evil), By("p", evil, Answer(evil)), Title(evil))
	out, errs, _ := b.pipe(t, evil+"\nmore\n/sessions\n/history all\n/switch "+evil+"\n/title "+evil+"\n/title\n/fork\n/pin\n/bogus"+evil+"\n", func(o *Options) {
		o.Session = "s1"
	})
	if i := strings.IndexAny(out+errs, "\x1b\x07\u202e\u009b\r"); i >= 0 {
		t.Errorf("something raw is shown: %q", (out + errs)[max(i-40, 0):min(i+40, len(out+errs))])
	}
}

// onceLines is a terminal on which Ctrl-C is pressed at the first line, and
// nothing at any other.
type onceLines struct{ read int }

func (l *onceLines) ReadLine(ctx context.Context, _ string) (string, error) {
	if l.read++; l.read == 1 {
		return "", line.ErrInterrupt
	}
	<-ctx.Done()
	return "", context.Cause(ctx)
}

func (l *onceLines) Ask(ctx context.Context, prompt string) (string, error) {
	return l.ReadLine(ctx, prompt)
}

// writer is a function that is an io.Writer.
type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// Ctrl-C that comes between two lines is not lost: the next line sees it.
func TestInterruptBetweenLines(t *testing.T) {
	var chat *Chat
	o := newBench().options(io.Discard, writer(func(p []byte) {
		if strings.Contains(string(p), "Ctrl-C again to quit") {
			chat.Interrupt() // no line is read now
		}
	}))
	o.Interactive = true
	chat = New(o)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := chat.Run(ctx, &onceLines{}); err != nil || ctx.Err() != nil {
		t.Errorf("the chat ends with %v, %v; want that the second Ctrl-C ends it", err, ctx.Err())
	}
}

// Ctrl-C that comes while a turn is prepared stops the turn, not the next line.
func TestInterruptBeforeTheWork(t *testing.T) {
	var chat *Chat
	var out strings.Builder
	b := newBench()
	o := b.options(&out, &out)
	o.Interactive = true
	o.Prepare = func(ctx context.Context) []string { chat.Interrupt(); <-ctx.Done(); return nil }
	chat = New(o)
	if err := chat.Run(t.Context(), line.NewPlain(strings.NewReader("hello there\n/history\n"), nil)); err != nil {
		t.Error(err)
	}
	got := out.String()
	for _, want := range []string{"[stopped]\n", "your message is not saved", "nothing has been said yet"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "Ctrl-C again") {
		t.Errorf("the next line is interrupted as well:\n%s", got)
	}
}

// What a chat shows of the end of its session leaves out that the model had
// nothing to say.
func TestPreviewLeavesOutNoReply(t *testing.T) {
	b := newBench()
	b.seed(t, "s1", "main:cli:user", User("a question"), By("test", "one", Answer("an answer")), By("test", "one", Answer("NO_REPLY")))
	if got := b.person(t, "/quit\n"); !strings.Contains(got, "    an answer\n") || strings.Contains(got, "NO_REPLY") {
		t.Errorf("the preview is\n%s", got)
	}
}

// The question about a page shows the whole address and what a rule would allow.
func TestApproveFetch(t *testing.T) {
	var shown []string
	var kept tool.Rule
	a := Approver{
		Show:     func(line string) { shown = append(shown, line) },
		Ask:      func(context.Context, string) (string, error) { return "a", nil },
		Remember: func(r tool.Rule) error { kept = r; return nil },
	}
	req := tool.Request{Tool: "fetch", URL: "https://example.com/a?key=\u202e1", Host: "example.com", Rule: tool.Rule{Tool: "fetch", Host: "example.com"}}
	d, err := a.Approve(context.Background(), req)
	if d != tool.Always || err != nil || kept.String() != "fetch(example.com)" {
		t.Errorf("%v, %v, %v", d, err, kept)
	}
	want(t, "question", strings.Join(shown, "\n"), "fetch wants to read:\n  \"https://example.com/a?key=\\u202e1\"\n[s] and [a] would allow fetch(example.com).")

	shown = nil
	a.Approve(context.Background(), tool.Request{Tool: "tickets__close", Command: `{"id":7}`, Dir: "the MCP server tickets", Rule: tool.Rule{Tool: "tickets__close"}})
	want(t, "question", strings.Join(shown, "\n"), "tickets__close wants to run in the MCP server tickets:\n  {\"id\":7}\n[s] and [a] would allow every call of tickets__close.")
}
