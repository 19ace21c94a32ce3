package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/compact"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
)

func assistantCall(id, name, args string) llm.Message {
	return llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}}}
}

func result(id, name, text string) llm.Block {
	return llm.ToolResult{CallID: id, Name: name, Blocks: []llm.Block{llm.Text{Text: text}}}
}

// told opens a conversation in which the model has said what it is.
var told = []llm.Message{llm.UserText("hi"), llm.AssistantText("Hello! " + intro)}

func talk(texts ...string) []llm.Message {
	msgs := append([]llm.Message(nil), told...)
	for i, s := range texts {
		if i%2 == 0 {
			msgs = append(msgs, llm.UserText(s))
		} else {
			msgs = append(msgs, llm.AssistantText(s))
		}
	}
	return msgs
}

// files are what the workspace of the tests below holds.
func files() map[string]string {
	return map[string]string{
		"README.md":            "# Shop\n\nA shop for tea.\nIt listens on port 8080.\n",
		"src/main.go":          "package main\n",
		"MEMORY.md":            "# Memory\n\n- Anna's birthday is on 3 May\n",
		"memory/2026-07-01.md": "- too old to be read\n",
		"memory/2026-08-01.md": "- the dentist moved to Friday at 10\n",
		"memory/2026-08-02.md": "- the car is in the garage\n",
		"memory/2026-08-03.md": "- nothing of note\n",
	}
}

// searches are the calls for a question.
func searches(q string) []string {
	return []string{fmt.Sprintf(`memory_search {"limit":5,"query":%q}`, q), fmt.Sprintf(`session_search {"limit":20,"query":%q}`, q)}
}

// found is what the search tools print.
var found = map[string]string{
	"memory_search": "MEMORY.md:3  - Anna's birthday is on 3 May [Memory]\nmemory/2026-08-01.md:1  - the dentist moved to Friday at 10 [2026-08-01] [and 1 more like it, such as MEMORY.md:9]\n[incomplete: memory/x.md cannot be read]",
	"session_search": `01a1dffe-d0b5-774a-8c88-fefb1bc870ac#2  2026-08-02 16:16 user [Anna and [the] dog]: My sister Anna lives in Lisbon.
01a1dffe-d0b5-774a-8c88-fefb1bc870ac#9  2026-08-02 16:17 user: where does Anna live?
01a1dffe-d0b5-774a-8c88-fefb1bc870ac#7  2026-08-02 16:17 user: search Anna
01a1dffe-d0b5-774a-8c88-fefb1bc870ac#10  2026-08-02 16:17 assistant: memory_search {"query":"where does Anna live?"}
01a1dffe-d0b5-774a-8c88-fefb1bc870ac#11  2026-08-02 16:17 tool: anna.go:12  Anna, Anna, Anna
01a1dffe-d0b5-774a-8c88-fefb1bc870ac#12  2026-08-02 16:17 assistant: … for Lisbon. (a#1) You said on 2026-08-02 16:16: > My sister Anna lives in Lisbon.
01a1dffe-d0b5-774a-8c88-fefb1bc870ac#13  2026-08-02 16:18 assistant: ` + cannot + ` Anna.
7c1dffe0-d0b5-774a-8c88-fefb1bc870ac#4  at an unknown time, assistant [Billing]: Postgres is fine for billing.
7c1dffe0-d0b5-774a-8c88-fefb1bc870ac#8  2026-07-01 09:00 summary [Billing]: Billing goes to Postgres; Anna signs.`,
}

// TestAnswer is a question to a conversation, the calls that it takes and the
// answer to the letter.
func TestAnswer(t *testing.T) {
	past := talk(
		"My sister Anna lives in Lisbon.", "Noted. What is the name of your dog?",
		"Rex. And we agreed to use Postgres for billing.", "Good choice.",
	)
	tests := []struct {
		name, ask string
		calls     []string
		want      string
	}{
		{"said and noted", "Where does Anna live?", searches("Where does Anna live?"), `You said on 2026-08-02 16:16:
> My sister Anna lives in Lisbon. (01a1dffe-d0b5-774a-8c88-fefb1bc870ac#2)

A tool put out on 2026-08-02 16:17:
> anna.go:12  Anna, Anna, Anna (01a1dffe-d0b5-774a-8c88-fefb1bc870ac#11)

A summary on 2026-07-01 09:00 says:
> Billing goes to Postgres; Anna signs. (7c1dffe0-d0b5-774a-8c88-fefb1bc870ac#8)

In memory:
> - Anna's birthday is on 3 May (MEMORY.md:3)`},
		{"noted in memory", "when does the dentist see me", searches("when does the dentist see me"), `In memory:
> - the dentist moved to Friday at 10 (memory/2026-08-01.md:1)`},
		{"another model's answer", "search bills", searches("bills"), `The answer at an unknown time was:
> Postgres is fine for billing. (7c1dffe0-d0b5-774a-8c88-fefb1bc870ac#4)

A summary on 2026-07-01 09:00 says:
> Billing goes to Postgres; Anna signs. (7c1dffe0-d0b5-774a-8c88-fefb1bc870ac#8)`},
		{"nothing with these words", "search llamas", searches("llamas"), `I found nothing that was said or noted with the words of "llamas".

The nearest is this:

In memory:
> - Anna's birthday is on 3 May (MEMORY.md:3)
` + cannot + " " + connect},
		{"of an unknown time", "what was fine?", searches("what was fine?"), `The answer at an unknown time was:
> Postgres is fine for billing. (7c1dffe0-d0b5-774a-8c88-fefb1bc870ac#4)`},
		{"a statement", "Postgres is slow for billing today.", nil, cannot + `

What you said is kept: ask "what did I say about ..." at any time, or say "remember that ..." to have it in memory. ` + connect},
		{"work for a language model", "can you write me a poem?", nil, cannot + `

What you said is kept: ask "what did I say about ..." at any time, or say "remember that ..." to have it in memory. ` + connect},
		{"recap", "recap", nil, `What was said so far, each with the beginning of the answer:
> hi
  Hello! I am goclaw's built-in offline model, not a language model: I find and quote what was said, and follow a few plain requests. Say …
> My sister Anna lives in Lisbon.
  Noted. What is the name of your dog?
> Rex. And we agreed to use Postgres for billing.
  Good choice.`},
		{"read", "read README.md", []string{`read_file {"limit":150,"path":"README.md"}`},
			"README.md:\n```\n# Shop\n\nA shop for tea.\nIt listens on port 8080.\n```"},
		{"read lines", "read README.md lines 3-3", []string{`read_file {"limit":1,"offset":3,"path":"README.md"}`},
			"README.md:\n```\nA shop for tea.\n[lines 3 to 3 of 4; read on with offset 4]\n```"},
		{"read what is not there", "read gone.md", []string{`read_file {"limit":150,"path":"gone.md"}`}, "I could not read gone.md: gone.md does not exist"},
		{"no file but a matter", "what is in Lisbon?", searches("what is in Lisbon?"),
			"You said on 2026-08-02 16:16:\n> My sister Anna lives in Lisbon. (01a1dffe-d0b5-774a-8c88-fefb1bc870ac#2)"},
		{"list", "list", []string{`list_directory {"path":"."}`},
			"The workspace:\n```\nMEMORY.md  40 B\nREADME.md  49 B\nmemory/\nsrc/\n```"},
		{"list a directory", "list the files in src", []string{`list_directory {"path":"src"}`}, "src:\n```\nmain.go  13 B\n```"},
		{"list what is not there", "list lib/x", []string{`list_directory {"path":"lib/x"}`}, "I could not list lib/x: lib/x does not exist"},
		{"list a matter", "list dentist", append([]string{`list_directory {"path":"dentist"}`}, searches("dentist")...),
			"In memory:\n> - the dentist moved to Friday at 10 (memory/2026-08-01.md:1)"},
		{"time", "what time is it?", []string{`get_current_time {}`}, "It is 2026-08-30T14:05:00+02:00 (Sunday, Europe/Berlin)."},
		{"run", "$ go version", []string{`bash {"command":"go version"}`}, "`go version`:\n```\nran go version\n[exit code 0]\n```"},
		{"run what is refused", "run rm x", []string{`bash {"command":"rm x"}`}, "`rm x` did not succeed:\n```\nnot run: the user did not allow this command.\n```"},
		{"run what is no command", "run the tests", nil, cannot + `

What you said is kept: ask "what did I say about ..." at any time, or say "remember that ..." to have it in memory. ` + connect},
		{"remember", "remember that tea is out", []string{`get_current_time {}`, `write_file {"append":true,"content":"- tea is out\n","path":"memory/2026-08-30.md"}`},
			"Noted in memory/2026-08-30.md:\n> - tea is out"},
		{"memories", "what do you remember?", []string{`list_directory {"path":"memory"}`, `read_file {"path":"MEMORY.md"}`,
			`read_file {"path":"memory/2026-08-01.md"}`, `read_file {"path":"memory/2026-08-02.md"}`, `read_file {"path":"memory/2026-08-03.md"}`},
			"MEMORY.md:\n> # Memory\n> \n> - Anna's birthday is on 3 May\n\nmemory/2026-08-01.md:\n> - the dentist moved to Friday at 10\n\nmemory/2026-08-02.md:\n> - the car is in the garage\n\nmemory/2026-08-03.md:\n> - nothing of note"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newChat(t, past...)
			c.files, c.found = files(), found
			got := c.ask(tt.ask)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.calls, c.calls); diff != "" {
				t.Errorf("calls differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRemember is a dialogue: what is noted is added, a line each.
func TestRemember(t *testing.T) {
	c := newChat(t, told...)
	for _, s := range []struct{ ask, want string }{
		{"remember that my locker code is 4711", "Noted in memory/2026-08-30.md:\n> - my locker code is 4711"},
		{"The garage is closed on Mondays", cannot},
		{"Note: two\nlines", "Noted in memory/2026-08-30.md:\n> - two\n>   lines"},
	} {
		if got := c.ask(s.ask); !strings.HasPrefix(got, s.want) {
			t.Fatalf("%q: got %q, want %q", s.ask, got, s.want)
		}
	}
	if diff := cmp.Diff(map[string]string{"memory/2026-08-30.md": "- my locker code is 4711\n- two\n  lines\n"}, c.files); diff != "" {
		t.Errorf("files differ (-want +got):\n%s", diff)
	}
}

// TestRememberWithout tries with fewer tools. What a file held is never lost.
func TestRememberWithout(t *testing.T) {
	const refused = "I could not write it down: there is no tool write_file here that I can use. What you said is kept in this conversation."
	milk := map[string]string{"memory/2026-08-30.md": "- milk"}
	tests := []struct {
		name  string
		tools []llm.ToolSpec
		files map[string]string
		want  string
		after map[string]string
	}{
		{"appending", []llm.ToolSpec{readSpec, listSpec, plainWrite, timeSpec}, milk, refused, milk},
		{"reading", []llm.ToolSpec{writeSpec, timeSpec}, milk, "Noted in memory/2026-08-30.md:\n> - tea", map[string]string{"memory/2026-08-30.md": "- milk\n- tea\n"}},
		{"a clock", []llm.ToolSpec{readSpec, listSpec, writeSpec}, nil, "Noted in MEMORY.md:\n> - tea", map[string]string{"MEMORY.md": "- tea\n"}},
		{"writing", []llm.ToolSpec{readSpec, timeSpec}, nil, refused, map[string]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newChat(t, told...)
			c.tools = tt.tools
			maps.Copy(c.files, tt.files)
			got := c.ask("remember that tea")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.after, c.files); diff != "" {
				t.Errorf("files differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSearchTools says which search failed, and what the others found.
func TestSearchTools(t *testing.T) {
	c := newChat(t, told...)
	c.found = map[string]string{"memory_search": "memory/2026-08-01.md:7  The locker code is 4711."}
	want := `In memory:
> The locker code is 4711. (memory/2026-08-01.md:7)
session_search failed: the index is broken`
	if diff := cmp.Diff(want, c.ask("what is my locker code?")); diff != "" {
		t.Errorf("answer differs (-want +got):\n%s", diff)
	}
	c.found = map[string]string{"memory_search": "no note in the memory files fits", "session_search": "nothing that was said fits"}
	want = "I found nothing that was said or noted with the words of \"what did I say about llamas?\".\n\n" + cannot + " " + connect
	if diff := cmp.Diff(want, c.ask("what did I say about llamas?")); diff != "" {
		t.Errorf("answer differs (-want +got):\n%s", diff)
	}
	c.tools = nil
	if got, want := c.ask("what did I say about llamas?"), "session_search failed: there is no tool session_search here that I can use"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLatest: of what was said about the same thing, the latest comes first,
// unless the first is asked for; a long text is quoted where it says most, and
// what answers without naming the thing is quoted if it stands beside it.
func TestLatest(t *testing.T) {
	c := newChat(t, told...)
	c.found = map[string]string{"memory_search": "no note in the memory files fits", "session_search": `a#2  2026-08-02 16:16 user: The ferry leaves from pier 4.
a#9  2026-08-09 10:00 user: The ferry has moved, it leaves from pier 7 now.
b#3  2026-08-10 10:00 user: I like the ferry.
b#4  2026-08-10 10:01 assistant: ` + strings.Repeat("So much for the sea and its many wonders. ", 10) + `The ferry leaves every hour. It costs 3 euros.
a#10  2026-08-09 10:01 assistant: It is a longer walk.
c#1  2026-08-01 10:01 user: Nothing to do with it.`}
	now, before := c.ask("where does the ferry leave?"), c.ask("where did the ferry leave at first?")
	want := `You said on 2026-08-09 10:00:
> The ferry has moved, it leaves from pier 7 now. (a#9)

You said on 2026-08-02 16:16:
> The ferry leaves from pier 4. (a#2)
`
	if !strings.HasPrefix(now, want) || !strings.Contains(now, "> … The ferry leaves every hour. It costs 3 euros. (b#4)") {
		t.Errorf("got\n%s\nwant it to begin with\n%s", now, want)
	}
	if !strings.Contains(now, "a longer walk") || strings.Contains(now, "Nothing to do") {
		t.Errorf("what stands beside is quoted, and nothing else:\n%s", now)
	}
	if !strings.HasPrefix(before, "You said on 2026-08-02 16:16:") {
		t.Errorf("got\n%s", before)
	}
}

// TestSummarise: what a program makes of the past with this model is an
// extract, and says so.
func TestSummarise(t *testing.T) {
	var past []session.Record
	for i, text := range []string{"Build the harbour wall at pier 7.", "Done.", "Now paint it blue."} {
		m := llm.UserText(text)
		if i == 1 {
			m = llm.AssistantText(text)
		}
		past = append(past, session.Record{Seq: session.Seq(i + 1), Body: session.Message{Message: m}})
	}
	prev := compact.Summary{Text: "The pier was chosen."}
	s, by, _, err := compact.Chain{{Provider: New(Config{}), Name: Name}}.Summarize(context.Background(), compact.Job{Past: past, Prev: prev, Limit: 400})
	if err != nil || by != Name {
		t.Fatalf("by %q: %v", by, err)
	}
	want := "Extracts by a program, not a language model. The user said: Build the harbour wall at pier 7. / Now paint it blue."
	if !strings.HasSuffix(s.Text, want) || !strings.Contains(s.Text, prev.Text) || s.Task != "Build the harbour wall at pier 7." || len(s.Requests) != 1 || s.Requests[0] != "Now paint it blue." {
		t.Errorf("got %+v", s)
	}
}

// TestSummary: a recap tells what a summary tells.
func TestSummary(t *testing.T) {
	history := "The conversation history before this point was compacted into the following summary:\n\n<summary>\nTask: the moon base.\nThe budget is 900 euros.\n</summary>"
	c := newChat(t, llm.Message{Role: llm.User, Blocks: []llm.Block{llm.Text{Text: history}, llm.Text{Text: "go on"}}}, llm.AssistantText(intro))
	want := `A summary of what came first:
> Task: the moon base.
> The budget is 900 euros.

What was said so far, each with the beginning of the answer:
> go on
  ` + oneLine(intro)
	if diff := cmp.Diff(want, c.ask("what did we talk about so far?")); diff != "" {
		t.Errorf("answer differs (-want +got):\n%s", diff)
	}
}

// TestSaysWhatItIs once, when asked, and when it cannot help.
func TestSaysWhatItIs(t *testing.T) {
	c := newChat(t)
	for _, s := range []struct {
		ask  string
		says bool
	}{
		{"hello", true}, {"hello", false}, {"list", false}, {"what time is it?", false}, {"thanks", false},
		{"are you an AI?", true}, {"help", true}, {"translate this into Latin", true}, {"what did I say about Rome?", true}, {"ok", false},
	} {
		if got := c.ask(s.ask); strings.Contains(got, whatIAm) != s.says {
			t.Errorf("answer to %q: says what it is: %t, want %t:\n%s", s.ask, !s.says, s.says, got)
		}
	}
}

// TestNotices: a program that speaks in the user's name asks nothing, and does
// not hide what was asked.
func TestNotices(t *testing.T) {
	const notice = "[SYSTEM: pre-compaction memory flush] Write what matters to memory/. Reply NO_REPLY if there is nothing."
	c := newChat(t, append(talk("The bus leaves at 9.", "Good."), llm.UserText(notice))...)
	if got := c.goOn(); got != noReply {
		t.Errorf("got %q, want %q", got, noReply)
	}
	c.ask("when does the bus leave?")
	n := len(c.msgs)
	again := append([]llm.Message(nil), c.msgs[:n-1]...)
	last := again[n-2]
	last.Blocks = append(append([]llm.Block(nil), last.Blocks...), llm.Text{Text: notice})
	again[n-2] = last
	a, err := collect(c.model, llm.Request{Messages: again, Tools: c.tools})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.msgs[n-1], a.Message); diff != "" {
		t.Errorf("a notice behind the results changes the answer (-want +got):\n%s", diff)
	}
	c = newChat(t, append(told[:2:2], llm.Message{Role: llm.User, Blocks: []llm.Block{llmtest.Images[0]}})...)
	if got := c.goOn(); !strings.HasPrefix(got, "I cannot see pictures") {
		t.Errorf("answer to a picture: %q", got)
	}
}

// TestInterrupted: a turn that broke off goes on with what is known.
func TestInterrupted(t *testing.T) {
	c := newChat(t, append(told[:2:2], llm.UserText("read README.md"))...)
	a, err := collect(c.model, llm.Request{Messages: c.msgs, Tools: c.tools})
	if err != nil {
		t.Fatal(err)
	}
	open := a.Message.Calls()[0]
	// A store may write arguments in a form of its own.
	open.Args = json.RawMessage(`{ "path" : "\u0052EADME.md", "limit": 1.5e2 }`)
	c.msgs = append(c.msgs, llm.Message{Role: llm.Assistant, Blocks: []llm.Block{open}},
		llm.Message{Role: llm.User, Blocks: []llm.Block{llm.Failed(open, "interrupted: the tool did not finish")}})
	c.tools = []llm.ToolSpec{readSpec}
	if got, want := c.goOn(), "I could not read README.md: interrupted: the tool did not finish"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(c.calls) > 0 {
		t.Errorf("calls again: %v", c.calls)
	}
}

// TestIDs: after a fold the same number of messages comes again, while calls
// from before are still there.
func TestIDs(t *testing.T) {
	first := newChat(t, told...)
	first.ask("list")
	kept := first.msgs[2:] // list, its call, the result, the answer
	c := newChat(t, append([]llm.Message{llm.UserText("(the beginning is not shown)"), llm.AssistantText("...")}, kept...)...)
	c.msgs = c.msgs[4-2:]
	for range 3 {
		c.ask("list") // fails if an id comes twice
	}
	seen := map[string]bool{}
	for _, m := range c.msgs {
		for _, call := range m.Calls() {
			if seen[call.ID] || len(call.ID) > 40 {
				t.Errorf("id %q is used twice or too long", call.ID)
			}
			seen[call.ID] = true
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d calls, want 4", len(seen))
	}
}

func TestOverflow(t *testing.T) {
	req := llm.Request{Messages: []llm.Message{llm.UserText(strings.Repeat("word ", 4000))}}
	_, err := collect(New(Config{Window: 1000}), req)
	var over *llm.OverflowError
	if !errors.As(err, &over) || !errors.Is(err, llm.ErrOverflow) {
		t.Fatalf("got %v, want an overflow", err)
	}
	if want := (llm.OverflowError{Tokens: 5004, Window: 1000}); *over != want {
		t.Errorf("got %+v, want %+v", *over, want)
	}
	a, err := collect(New(Config{}), req)
	if err != nil {
		t.Fatal(err)
	}
	if a.Usage.Input != 5004 || a.Usage.Output != len(a.Message.Text())/4 || a.Model != Name {
		t.Errorf("usage %+v of %q for %d bytes", a.Usage, a.Model, len(a.Message.Text()))
	}
	if _, err := collect(New(Config{Window: DefaultWindow}), llm.Request{Messages: []llm.Message{llm.UserText(strings.Repeat("x", 4*DefaultWindow))}}); !errors.Is(err, llm.ErrOverflow) {
		t.Errorf("got %v, want an overflow", err)
	}
}

func TestMaxTokens(t *testing.T) {
	a, err := collect(New(Config{}), llm.Request{Messages: []llm.Message{llm.UserText("help")}, MaxTokens: 5})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.Message.Text(), helpOpening[:20]; got != want || a.Stop != llm.StopLength {
		t.Errorf("got %q and %q, want %q and %q", got, a.Stop, want, llm.StopLength)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	words := 0
	var last error
	for d, err := range New(Config{}).Stream(ctx, llm.Request{Messages: []llm.Message{llm.UserText("help")}}) {
		if last = err; err != nil {
			continue
		}
		if d.End != nil {
			t.Error("an end after the cancel")
		}
		if words++; words == 3 {
			cancel()
		}
	}
	if words != 3 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d words and %v, want 3 and %v", words, last, context.Canceled)
	}
	for d, err := range New(Config{}).Stream(ctx, llm.Request{Messages: []llm.Message{llm.UserText("help")}}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %+v and %v after the cancel", d, err)
		}
	}
}

// TestSteps: tools that lead nowhere do not keep it going.
func TestSteps(t *testing.T) {
	msgs := []llm.Message{llm.UserText("what did I say about tea?")}
	for i := range maxCalls {
		id := fmt.Sprintf("x%d", i)
		msgs = append(msgs, assistantCall(id, "read_file", `{"path":"elsewhere"}`), llm.Message{Role: llm.User, Blocks: []llm.Block{result(id, "read_file", "...")}})
	}
	req := llm.Request{Messages: msgs, Tools: allSpecs}
	if err := llmtest.Validate(req); err != nil {
		t.Fatal(err)
	}
	a, err := collect(New(Config{}), req)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Message.Text(); !strings.Contains(got, "too many tool calls") {
		t.Errorf("got %q", got)
	}
}

func TestRefusesTheAssistantsWord(t *testing.T) {
	for _, msgs := range [][]llm.Message{nil, {llm.UserText("a"), llm.AssistantText("b")}} {
		if _, err := collect(New(Config{}), llm.Request{Messages: msgs}); !errors.Is(err, llm.ErrRefused) {
			t.Errorf("%d messages: got %v, want %v", len(msgs), err, llm.ErrRefused)
		}
	}
}

// BenchmarkStream asks over a full window.
func BenchmarkStream(b *testing.B) {
	var msgs []llm.Message
	for i := range 200 {
		msgs = append(msgs, llm.UserText(fmt.Sprintf("In week %d we talked about the harbour of town %d. %s", i, i*7, strings.Repeat("There were some remarkable buildings near the water. ", 4))),
			llm.AssistantText(strings.Repeat("The harbour was described with several details that I repeat here. ", 3)))
	}
	req := llm.Request{Messages: append(msgs, llm.UserText("what did I say about town 77?"))}
	for b.Loop() {
		if _, err := collect(New(Config{}), req); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSpoken: of an answer with calls only its words are quoted, and what only
// announces a call says nothing.
func TestSpoken(t *testing.T) {
	for in, want := range map[string]struct {
		text      string
		announces bool
	}{
		"Billing goes to Postgres.":                                        {"Billing goes to Postgres.", false},
		`Let me look: bash {"command":"ls"}`:                               {"Let me look:", true},
		`Perfect! Now update the theme: edit {"path":"a.ts"`:               {"Perfect! Now update the theme:", true},
		`There are 77 usages. Let me replace them: edit {"path":"a.ts"}`:   {"There are 77 usages. Let me replace them:", false},
		`… edit {"path":"a.ts","oldText":"x"}`:                             {"", false},
		`… \n\t\t}, \n\t\treturn theme","newText":"\t\tthis …`:             {"", false},
		`bash {"command":"ls"}`:                                            {"", false},
		`get_current_time {}`:                                              {"", false},
		"The map is {a: 1} in the file.":                                   {"The map is {a: 1} in the file.", false},
		"The rest: tea {green} and more.":                                  {"The rest: tea {green} and more.", false},
		"These are the colours: red, blue":                                 {"These are the colours: red, blue", false},
		`It failed because the name was wrong. read {"path":"a.ts"} and …`: {"It failed because the name was wrong.", false},
	} {
		text, announces := spoken(in)
		if text != want.text || announces != want.announces {
			t.Errorf("%q: %q, %v; want %q, %v", in, text, announces, want.text, want.announces)
		}
	}
}
