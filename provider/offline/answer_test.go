package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/llm/llmtest"
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

var memoryCalls = []string{
	`read_file {"limit":200,"path":"MEMORY.md"}`,
	`list_directory {"path":"memory"}`,
	`read_file {"limit":200,"path":"memory/2026-08-03.md"}`,
	`read_file {"limit":200,"path":"memory/2026-08-02.md"}`,
	`read_file {"limit":200,"path":"memory/2026-08-01.md"}`,
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
		{"said by the user", "Where does Anna live?", memoryCalls, `What I found about "Anna live":

You said (your message 2 of 4):
> My sister Anna lives in Lisbon.

MEMORY.md:3 says:
> - Anna's birthday is on 3 May`},
		{"noted in memory", "when does the dentist see me", memoryCalls, `What I found about "dentist see":

memory/2026-08-01.md:1 says:
> - the dentist moved to Friday at 10`},
		{"a question with its reply", "what is my dog's name?", memoryCalls, `What I found about "dog name":

The answer to your message 2 said:
> Noted. What is the name of your dog?

You replied:
> Rex. And we agreed to use Postgres for billing.`},
		{"when", "when did I mention billing?", memoryCalls, `What I found about "billing":

You said (your message 3 of 4):
> Rex. And we agreed to use Postgres for billing.

Messages have no times in what I see, only their order.`},
		{"decisions", "what did we decide about the database?", memoryCalls, `I found nothing about "database" in this conversation, MEMORY.md, memory/2026-08-03.md, memory/2026-08-02.md, memory/2026-08-01.md.

These are decisions that I can see:

You said (your message 3 of 4):
> Rex. And we agreed to use Postgres for billing.`},
		{"nothing", "what did I say about llamas?", memoryCalls, `I found nothing about "llamas" in this conversation, MEMORY.md, memory/2026-08-03.md, memory/2026-08-02.md, memory/2026-08-01.md.

` + cannot + " " + connect},
		{"a statement", "Postgres is slow for billing today.", nil, cannot + ` The closest to it in this conversation:

You said (your message 3 of 4):
> Rex. And we agreed to use Postgres for billing.

What you said is kept: ask "what did I say about ..." at any time, or say "remember that ..." to have it in memory. ` + connect},
		{"work for a language model", "can you write me a poem?", nil, cannot + `

What you said is kept: ask "what did I say about ..." at any time, or say "remember that ..." to have it in memory. ` + connect},
		{"last words", "what did I just say?", nil, `Your words were (your message 3 of 4):
> Rex. And we agreed to use Postgres for billing.`},
		{"recap", "recap", nil, `What was said so far, in extracts:

1. hi
   → Hello! I am goclaw's built-in offline model, not a language model: I find and quote what was said, and follow a few plain requests. Say "hel …
2. My sister Anna lives in Lisbon.
   → Noted. What is the name of your dog?
3. Rex. And we agreed to use Postgres for billing.
   → Good choice.`},
		{"read", "read README.md", []string{`read_file {"limit":150,"path":"README.md"}`},
			"README.md:\n```\n# Shop\n\nA shop for tea.\nIt listens on port 8080.\n```"},
		{"read lines", "read README.md lines 3-3", []string{`read_file {"limit":1,"offset":3,"path":"README.md"}`},
			"README.md:\n```\nA shop for tea.\n```"},
		{"read what is not there", "read gone.md", []string{`read_file {"limit":150,"path":"gone.md"}`, `list_directory {"path":"gone.md"}`},
			"I could not read gone.md: gone.md does not exist"},
		{"read a directory", "what is in src?", []string{`read_file {"limit":150,"path":"src"}`, `list_directory {"path":"src"}`},
			"src:\n```\nmain.go  13 B\n```"},
		{"no file but a matter", "what is in Lisbon?", append([]string{`read_file {"limit":150,"path":"Lisbon"}`, `list_directory {"path":"Lisbon"}`}, memoryCalls[:4]...),
			"What I found about \"Lisbon\":\n\nYou said (your message 2 of 4):\n> My sister Anna lives in Lisbon."},
		{"list", "list", []string{`list_directory {"path":"."}`},
			"The workspace:\n```\nMEMORY.md  40 B\nREADME.md  49 B\nmemory/\nsrc/\n```"},
		{"list what is not there", "list lib/x", []string{`list_directory {"path":"lib/x"}`}, "I could not list lib/x: lib/x does not exist"},
		{"find in a file", "find ports in README.md", []string{`read_file {"path":"README.md"}`},
			"\"ports\" in README.md:\n> README.md:4: It listens on port 8080."},
		{"digest", "summarize README.md", []string{`read_file {"path":"README.md"}`},
			"I cannot summarise, being not a language model. README.md has 4 lines that I was shown. Its headings:\n> # Shop\n\nIt begins:\n> A shop for tea.\n> It listens on port 8080."},
		{"time", "what time is it in Tokyo?", []string{`get_current_time {}`},
			"It is 2026-08-30T14:05:00+02:00 (Sunday, Europe/Berlin).\n\nThat is the time here. For Tokyo give its zone, as in \"what time is it in Asia/Tokyo\"."},
		{"time zone", "what time is it in Asia/Tokyo?", []string{`get_current_time {"timezone":"Asia/Tokyo"}`},
			"It is 2026-08-30T14:05:00+02:00 (Sunday, Europe/Berlin)."},
		{"write anew", "write README.md: hello", []string{`read_file {"path":"README.md"}`, `write_file {"content":"hello\n","path":"README.md"}`},
			"Done: wrote 6 bytes to README.md. What it held before was read first, and stands in the log of this conversation."},
		{"create what is there", "create file README.md with hello", []string{`read_file {"path":"README.md"}`},
			"README.md is there already; I left it as it is. To replace what it holds, say \"write README.md: TEXT\"."},
		{"create", "create file notes.txt with hello", []string{`read_file {"path":"notes.txt"}`, `list_directory {"path":"."}`, `write_file {"content":"hello\n","path":"notes.txt"}`},
			"Done: wrote 6 bytes to notes.txt."},
		{"append", "append more tea to README.md", []string{`read_file {"limit":200,"path":"README.md"}`, `write_file {"append":true,"content":"more tea\n","path":"README.md"}`},
			"Done: wrote 58 bytes to README.md."},
		{"replace", "replace 8080 with 9090 in README.md", []string{`edit_file {"new_string":"9090","old_string":"8080","path":"README.md"}`},
			"Done:\n```\nreplaced once in README.md\n-8080\n+9090\n```"},
		{"replace what is not there", "replace x1 with x2 in README.md", []string{`edit_file {"new_string":"x2","old_string":"x1","path":"README.md"}`},
			"I could not change README.md: old_string was not found"},
		{"run", "$ go version", []string{`bash {"command":"go version"}`}, "`go version`:\n```\nran go version\n[exit code 0]\n```"},
		{"run what is refused", "run rm x", []string{`bash {"command":"rm x"}`}, "`rm x` did not succeed:\n```\nnot run: the user did not allow this command.\n```"},
		{"run what is no command", "run the tests", nil, "I do not know which command \"the tests\" is. Give it as you would type it, as in `run go test ./...`. " + cannot},
		{"grep", "which files mention it's?", []string{`bash {"command":"grep -rnIi --exclude-dir=.git --exclude-dir=node_modules -m 5 -F -e 'it'\\''s' . | head -n 60"}`},
			"`grep -rnIi --exclude-dir=.git --exclude-dir=node_modules -m 5 -F -e 'it'\\''s' . | head -n 60`:\n```\nran grep -rnIi --exclude-dir=.git --exclude-dir=node_modules -m 5 -F -e 'it'\\''s' . | head -n 60\n[exit code 0]\n```"},
		{"remember", "remember that tea is out", []string{`get_current_time {}`, `read_file {"limit":200,"path":"memory/2026-08-30.md"}`, `write_file {"append":true,"content":"# 2026-08-30\n\n- tea is out\n","path":"memory/2026-08-30.md"}`},
			"Noted in memory/2026-08-30.md:\n> - tea is out"},
		{"forget", "forget the dentist", memoryCalls, `I do not delete: the conversation is a log that is only added to, and memory files are yours to edit.

memory/2026-08-01.md:1 says:
> - the dentist moved to Friday at 10

To take a line out, say: replace ` + "`THE LINE`" + ` with nothing in THE FILE.`},
		{"attached", "what does this say about herons?\nStorks nest here.\nA heron stood in the pond.", memoryCalls, `What I found about "herons":

What you just sent says:
> A heron stood in the pond.`},
		{"other sessions", "show session main:cli:user", nil, "I have no tool here to read other sessions with. In the chat, /switch main:cli:user opens it."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newChat(t, past...)
			c.files = files()
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

// TestRemember is a dialogue: what is noted is found again, once.
func TestRemember(t *testing.T) {
	c := newChat(t, told...)
	steps := []struct{ ask, want string }{
		{"remember that my locker code is 4711", "Noted in memory/2026-08-30.md:\n> - my locker code is 4711"},
		{"Merk dir, dass ich keine Nüsse esse", "Noted in memory/2026-08-30.md:\n> - ich keine Nüsse esse"},
		{"remember that my locker code is 4711", "That is in memory already, memory/2026-08-30.md:3:\n> - my locker code is 4711"},
		{"The garage is closed on Mondays", cannot},
		{"remember that", "Noted in memory/2026-08-30.md:\n> - The garage is closed on Mondays"},
		{"was habe ich über die Nuss gesagt?", "What I found about \"Nuss\":\n\nYou said (your message 3 of 7):\n> Merk dir, dass ich keine Nüsse esse\n\n(The same stands in memory/2026-08-30.md:4.)"},
		{"what is my locker code?", "What I found about \"locker code\":\n\nYou said (your message 4 of 8):\n> remember that my locker code is 4711\n\n(The same stands in your message 2 of 8, memory/2026-08-30.md:3.)"},
	}
	for _, s := range steps {
		got := c.ask(s.ask)
		if s.want == cannot {
			got = got[:min(len(got), len(cannot))]
		}
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Fatalf("%q differs (-want +got):\n%s", s.ask, diff)
		}
	}
	want := "# 2026-08-30\n\n- my locker code is 4711\n- ich keine Nüsse esse\n- The garage is closed on Mondays\n"
	if diff := cmp.Diff(map[string]string{"memory/2026-08-30.md": want}, c.files); diff != "" {
		t.Errorf("files differ (-want +got):\n%s", diff)
	}
}

// TestRememberWithout tries with fewer tools. What a file held is never lost.
func TestRememberWithout(t *testing.T) {
	long := strings.Repeat("- a line\n", 300)
	tests := []struct {
		name  string
		tools []llm.ToolSpec
		files map[string]string
		want  string
		after map[string]string
	}{
		{"appending, new", []llm.ToolSpec{readSpec, listSpec, plainWrite, timeSpec}, nil, "Noted in memory/2026-08-30.md:\n> - tea",
			map[string]string{"memory/2026-08-30.md": "# 2026-08-30\n\n- tea\n"}},
		{"appending, there", []llm.ToolSpec{readSpec, listSpec, plainWrite, timeSpec}, map[string]string{"memory/2026-08-30.md": "- milk"}, "Noted in memory/2026-08-30.md:\n> - tea",
			map[string]string{"memory/2026-08-30.md": "- milk\n- tea\n"}},
		{"appending, long", []llm.ToolSpec{readSpec, listSpec, plainWrite, timeSpec}, map[string]string{"memory/2026-08-30.md": long + "[cut here]"}, "I could not note it: memory/2026-08-30.md is too long for me to read whole, and I will not write it anew without the rest.",
			map[string]string{"memory/2026-08-30.md": long + "[cut here]"}},
		{"reading", []llm.ToolSpec{plainWrite, timeSpec}, nil, "I could not note it: there is no tool read_file here that I can use", nil},
		{"a clock", []llm.ToolSpec{readSpec, listSpec, writeSpec}, nil, "Noted in MEMORY.md:\n> - tea", map[string]string{"MEMORY.md": "# Memory\n\n- tea\n"}},
		{"writing", []llm.ToolSpec{readSpec, timeSpec}, nil, "I have no tool here to write a memory file with. What you said is kept in this conversation, and I will find it there.", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newChat(t, told...)
			c.tools = tt.tools
			for p, s := range tt.files {
				c.files[p] = s
			}
			got := c.ask("remember that tea")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer differs (-want +got):\n%s", diff)
			}
			if len(tt.after)+len(c.files) > 0 {
				if diff := cmp.Diff(tt.after, c.files); diff != "" {
					t.Errorf("files differ (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestSearchTools uses the tools of recall where they are offered, and says
// what failed.
func TestSearchTools(t *testing.T) {
	c := newChat(t, talk("I keep my bag in the locker.", "I see.")...)
	c.tools = append(allSpecs[:len(allSpecs):len(allSpecs)], memSearch, memGet, sessSearch, sessRead)
	want := `What I found about "locker code":

You said (your message 2 of 3):
> I keep my bag in the locker.

memory_search says:
> memory/2026-08-01.md:7  The locker code is 4711.

session_search failed: the index is behind`
	if diff := cmp.Diff(want, c.ask("what is my locker code?")); diff != "" {
		t.Errorf("answer differs (-want +got):\n%s", diff)
	}
	calls := []string{`memory_search {"query":"what is my locker code?"}`, `session_search {"query":"what is my locker code?"}`}
	if diff := cmp.Diff(calls, c.calls); diff != "" {
		t.Errorf("calls differ (-want +got):\n%s", diff)
	}
	if got, want := c.ask("show session main:cli:user"), "Session main:cli:user:\n```\nuser: hello from main:cli:user\n```"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.tools, c.files = []llm.ToolSpec{memGet}, files()
	if got, want := c.ask("read memory/2026-08-02.md"), "memory/2026-08-02.md:\n```\n- the car is in the garage\n```"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{`memory_get {"file":"memory/2026-08-02.md","lines":150}`}, c.calls); diff != "" {
		t.Errorf("calls differ (-want +got):\n%s", diff)
	}
}

// TestSources finds words wherever they stand in a request.
func TestSources(t *testing.T) {
	history := "The conversation history before this point was compacted into the following summary:\n\n<summary>\nTask: the moon base.\nThe budget is 900 euros.\n</summary>"
	readCall := `{"path":"notes.txt","offset":40}`
	tests := []struct {
		name, ask string
		msgs      []llm.Message
		want      string
	}{
		{"a summary", "what was the budget?", []llm.Message{{Role: llm.User, Blocks: []llm.Block{llm.Text{Text: history}, llm.Text{Text: "go on"}}}, llm.AssistantText(intro)},
			"What I found about \"budget\":\n\nThe summary of what came before says:\n> The budget is 900 euros."},
		{"a file that was read", "which colour has the zebra?", []llm.Message{llm.UserText("read on"), assistantCall("a", "read_file", readCall), {Role: llm.User, Blocks: []llm.Block{result("a", "read_file", "one\nzebras are striped\n")}}, llm.AssistantText(intro)},
			"What I found about \"colour zebra\":\n\nIn notes.txt:41, read before:\n> zebras are striped"},
		{"a command's output", "what is the checksum?", []llm.Message{llm.UserText("sum it"), assistantCall("a", "bash", `{"command":"sum x"}`), {Role: llm.User, Blocks: []llm.Block{result("a", "bash", "checksum 1234")}}, llm.AssistantText(intro)},
			"What I found about \"checksum\":\n\nThe output of bash sum x said:\n> checksum 1234"},
		{"another model's answer", "what did you say about mass?", []llm.Message{llm.UserText("Tell me about the mass of it."), llm.AssistantText("Mass is conserved. " + intro)},
			"What I found about \"mass\":\n\nThe answer to your message 1 said:\n> Mass is conserved. " + intro + "\n\nYou said (your message 1 of 2):\n> Tell me about the mass of it."},
		{"no spaces between words", "东京的会议是什么时候？", []llm.Message{llm.UserText("我下周五去东京开会议。"), llm.AssistantText(intro)},
			"What I found about \"东京的会议是什么时候\":\n\nYou said (your message 1 of 2):\n> 我下周五去东京开会议。"},
		{"numbers weigh more", "what was order 7781?", []llm.Message{llm.UserText("My order came late, that order, what an order."), llm.AssistantText(intro), llm.UserText("It is 7781, the red one."), llm.AssistantText("Good.")},
			"What I found about \"order 7781\":\n\nYou said (your message 2 of 3):\n> It is 7781, the red one."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newChat(t, tt.msgs...)
			c.tools = nil
			if diff := cmp.Diff(tt.want, c.ask(tt.ask)); diff != "" {
				t.Errorf("answer differs (-want +got):\n%s", diff)
			}
		})
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
