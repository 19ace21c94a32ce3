package window_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/internal/fixtures"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/window"
)

var prompt = window.Prompt{Provider: "anthropic", Model: "claude"}

// lines builds the request of a literal log and shows it a block a line.
func lines(t *testing.T, bodies ...session.Body) []string {
	t.Helper()
	return fixtures.Lines(window.Build(Replay(t, bodies...), prompt, window.Loose))
}

func mine(m session.Message) session.Message { return By("anthropic", "claude", m) }

func think(m session.Message, sig string) session.Message {
	m.Blocks = append([]llm.Block{llm.Thinking{Text: "hm", Signature: sig}}, m.Blocks...)
	return m
}

func result(r llm.ToolResult) session.Message {
	return session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{r}}}
}

func redacted(m session.Message) session.Message {
	m.Blocks = append([]llm.Block{llm.Thinking{Signature: "xx", Redacted: true}}, m.Blocks...)
	return m
}

// continuing returns an answer that goes on with the one that the record id holds.
func continuing(id string, b session.Body) session.Body {
	m := b.(session.Message)
	m.Continues = id
	return m
}

func TestBuild(t *testing.T) {
	interrupted := "result c1 true " + window.Interrupted
	for _, c := range []struct {
		name string
		log  []session.Body
		want []string
	}{
		{"a plain exchange", []session.Body{User("hi"), Answer("hello")}, []string{"user hi", "assistant hello"}},
		{"a call and its result", []session.Body{User("q"), Call("c1", "read"), Result("c1", "ok"), Answer("a")},
			[]string{"user q", "call c1 read {}", "result c1 false ok", "assistant a"}},
		{"parallel calls, results in call order", []session.Body{User("q"),
			Calls(llm.ToolCall{ID: "c1", Name: "a"}, llm.ToolCall{ID: "c2", Name: "b"}), Result("c2", "two"), Result("c1", "one")},
			[]string{"user q", "call c1 a {}", "call c2 b {}", "result c1 false one", "result c2 false two"}},
		{"an answer whose first call was answered while it arrived", []session.Body{User("q"), Call("c1", "a"), Result("c1", "one"), continuing("e2", Call("c2", "b")), Result("c2", "two"), continuing("e4", Answer("and so"))},
			[]string{"user q", "call c1 a {}", "call c2 b {}", "assistant and so", "result c1 false one", "result c2 false two"}},
		{"an answer that the user spoke into", []session.Body{User("q"), Call("c1", "a"), Result("c1", "one"), User("wait"), continuing("e2", Call("c2", "b"))},
			[]string{"user q", "call c1 a {}", "result c1 false one", "user wait", "call c2 b {}", "result c2 true " + window.Interrupted}},
		{"a call without a result was interrupted", []session.Body{User("q"), Call("c1", "read"), User("go on")},
			[]string{"user q", "call c1 read {}", interrupted, "user go on"}},
		{"a result without a call is left out", []session.Body{User("q"), Result("c9", "lost"), Answer("a")},
			[]string{"user q", "assistant a"}},
		{"a displaced result moves to its call", []session.Body{User("q"), Call("c1", "read"), User("and?"), Result("c1", "late"), Answer("a")},
			[]string{"user q", "call c1 read {}", "result c1 false late", "user and?", "assistant a"}},
		{"a result that stands before its call", []session.Body{Result("c1", "early"), User("q"), Call("c1", "read"), Answer("a")},
			[]string{"user q", "call c1 read {}", "result c1 false early", "assistant a"}},
		{"the second of two results is left out", []session.Body{User("q"), Call("c1", "read"), Result("c1", "one"), Result("c1", "two"), Answer("a")},
			[]string{"user q", "call c1 read {}", "result c1 false one", "assistant a"}},
		{"a doubled call is sent once", []session.Body{User("q"), Call("c1", "read", `{"p":1}`), Call("c1", "read", `{"p":1}`), Result("c1", "ok")},
			[]string{"user q", `call c1 read {"p":1}`, "result c1 false ok"}},
		{"one id for two calls", []session.Body{User("q"), Call("c1", "read", `{"p":1}`), Result("c1", "one"), Call("c1", "read", `{"p":2}`), Result("c1", "two")},
			[]string{"user q", `call c1 read {"p":1}`, "result c1 false one", `call c1_2_90f1a9266521b29c read {"p":2}`, "result c1_2_90f1a9266521b29c false two"}},
		{"a server that uses an id again", []session.Body{User("q"), Call("c1", "now"), Result("c1", "one"), Call("c1", "now"), Result("c1", "two")},
			[]string{"user q", "call c1 now {}", "result c1 false one", "call c1_2_90f1a9266521b29c now {}", "result c1_2_90f1a9266521b29c false two"}},
		{"what a crash left open takes no result of another call", []session.Body{User("q1"), Call("c1", "deploy"), User("q2"), Call("c1", "bash"), Result("c1", "of bash")},
			[]string{"user q1", "call c1 deploy {}", interrupted, "user q2", "call c1_2_90f1a9266521b29c bash {}", "result c1_2_90f1a9266521b29c false of bash"}},
		{"a result whose call was folded away is no one's", []session.Body{User("q1"), Call("c1", "deploy"), Compaction("SUM", "e4"), Result("c1", "late"), User("q2"), Call("c1", "bash")},
			[]string{"user " + summary("SUM"), "user q2", "call c1 bash {}", interrupted}},
		{"failed and empty answers are left out", []session.Body{User("q"), Stopped(llm.StopError, Answer("half")), Answer(""), Answer("  \n"), User("again"), Answer("a")},
			[]string{"user q", "user again", "assistant a"}},
		{"of a stopped answer the text stays, not its calls", []session.Body{User("q"), Stopped(llm.StopAborted, func() session.Message {
			m := Call("c1", "read")
			m.Blocks = append([]llm.Block{llm.Text{Text: "let me"}}, m.Blocks...)
			return m
		}()), User("go on")},
			[]string{"user q", "assistant let me", "user go on"}},
		{"signed thinking goes back to its model", []session.Body{User("q"), mine(think(Answer("a"), "sig"))},
			[]string{"user q", "thinking hm", "assistant a"}},
		{"another model gets thinking as text", []session.Body{User("q"), By("openai", "gpt", think(Answer("a"), "sig"))},
			[]string{"user q", "assistant hm", "assistant a"}},
		{"unsigned thinking is not sent", []session.Body{User("q"), mine(think(Answer("a"), ""))},
			[]string{"user q", "assistant a"}},
		{"redacted thinking goes to its model only", []session.Body{User("q"), By("openai", "gpt", redacted(Answer("a")))},
			[]string{"user q", "assistant a"}},
		{"thinking alone is no answer", []session.Body{User("q"), mine(think(Answer(""), "sig")), User("r")},
			[]string{"user q", "user r"}},
		{"thinking of the second of two answers in a row", []session.Body{User("q"), mine(think(Answer("a"), "s1")), mine(think(Answer("b"), "s2"))},
			[]string{"user q", "thinking hm", "assistant a", "assistant b"}},
		{"a fold", []session.Body{User("old"), Answer("older"), User("kept"), Answer("yes"), Compaction("SUM", "e3"), User("new")},
			[]string{"user " + summary("SUM"), "user kept", "assistant yes", "user new"}},
		{"a fold that keeps nothing known", []session.Body{User("old"), Answer("a"), Compaction("SUM", "nowhere"), User("new")},
			[]string{"user " + summary("SUM"), "user new"}},
		{"the second fold replaces the first", []session.Body{User("old"), Compaction("ONE", "e1"), User("mid"), Answer("a"), Compaction("TWO", "e3"), User("new")},
			[]string{"user " + summary("TWO"), "user mid", "assistant a", "user new"}},
		{"a fold undone", []session.Body{User("old"), Answer("a"), Compaction("SUM", ""), User("new"), Undo("e3")},
			[]string{"user old", "assistant a", "user new"}},
		{"a reset", []session.Body{User("old"), Answer("a"), Reset(), User("new")}, []string{"user new"}},
		{"a branch summary and a custom message", []session.Body{session.BranchSummary{Summary: "we tried"}, session.BranchSummary{},
			session.CustomMessage{Type: "x", Blocks: []llm.Block{llm.Text{Text: "told"}}}, session.Custom{Type: "y"}, User("q")},
			[]string{"user The following is a summary of a branch that this conversation came back from:\n\n<summary>\nwe tried</summary>", "user told", "user q"}},
		{"what is excluded", []session.Body{User("q"), func() session.Message { m := User("secret"); m.Excluded = true; return m }(),
			session.Shell{Command: "x", Excluded: true}, By("openclaw", "gateway-injected", Answer("notice")), Answer("a")},
			[]string{"user q", "assistant a"}},
		{"an edit and a dropped record", []session.Body{User("q"), Answer("long"), Call("c1", "read"), Result("c1", "very long"),
			session.Edit{Target: "e2", Drop: true}, session.Edit{Target: "e4", Blocks: []llm.Block{llm.Text{Text: "short"}}}},
			[]string{"user q", "call c1 read {}", "result c1 false short"}},
		{"words of the model at the beginning", []session.Body{Answer("a"), User("q")}, []string{fixtures.Beginning, "assistant a", "user q"}},
		{"titles and labels say nothing", []session.Body{Title("t"), User("q"), Pin("e2"), Model("a", "b")}, []string{"user q"}},
		{"a notice to the user role is sent, one to the system is not", []session.Body{User("q"), session.Notice{Percent: 90, Text: "save", As: "marked"}, session.Notice{Percent: 50, Text: "half", As: "system"}},
			[]string{"user q", "user save"}},
		{"a failed result without a word", []session.Body{User("q"), Call("c1", "read"), Failed("c1", " \n"), Answer("a")},
			[]string{"user q", "call c1 read {}", "result c1 true (the tool failed without saying why)", "assistant a"}},
		{"a failed result without content", []session.Body{User("q"), Call("c1", "read"), result(llm.ToolResult{CallID: "c1", IsError: true}), Answer("a")},
			[]string{"user q", "call c1 read {}", "result c1 true (the tool failed without saying why)", "assistant a"}},
		{"a result without a word", []session.Body{User("q"), Call("c1", "read"), Result("c1", ""), Answer("a")},
			[]string{"user q", "call c1 read {}", "result c1 false (no output)", "assistant a"}},
		{"the image of a failed result follows it", []session.Body{User("q"), Calls(llm.ToolCall{ID: "c1", Name: "shoot"}, llm.ToolCall{ID: "c2", Name: "read"}),
			result(llm.ToolResult{CallID: "c1", Name: "shoot", IsError: true, Blocks: []llm.Block{llmtest.Images[0]}}), Result("c2", "ok"), Answer("a")},
			[]string{"user q", "call c1 shoot {}", "call c2 read {}", "result c1 true (the tool failed; what it showed follows)", "result c2 false ok",
				"user [from shoot, call c1]", "user (image)", "assistant a"}},
		{"names that no API takes", []session.Body{User("q"), Call("c1", "functions.read_file"), Failed("c1", "no such tool"), Call("c2", "读文件"), Failed("c2", "no such tool"), Call("c3", "bad name!"), Failed("c3", "no such tool")},
			[]string{"user q", "call c1 functions_read_file {}", "result c1 true no such tool", "call c2 unknown_tool {}", "result c2 true no such tool",
				"call c3 bad_name_ {}", "result c3 true no such tool"}},
		{"a call without a name", []session.Body{User("q"), Call("c1", "", `{"p":1}`), Failed("c1", `there is no tool ""`)},
			[]string{"user q", `call c1 unknown_tool {"p":1}`, `result c1 true there is no tool ""`}},
		{"arguments with half a surrogate pair", []session.Body{User("q"), Call("c1", "read", `{"p":"\ud83d"}`), Result("c1", "ok")},
			[]string{"user q", `call c1 read {"p":"\ufffd"}`, "result c1 false ok"}},
		{"an empty log", nil, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lines(t, c.log...)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			accepted(t, Replay(t, c.log...))
		})
	}
}

func summary(text string) string {
	return "The conversation history before this point was compacted into the following summary:\n\n<summary>\n" + text + "\n</summary>"
}

func TestLongResultsAreCutInOldTurnsOnly(t *testing.T) {
	long := strings.Repeat("é", 6000)
	s := Replay(t, User("one"), Call("c1", "read"), Result("c1", long), Answer("a"), User("two"), Answer("b"),
		User("three"), Call("c2", "read"), Result("c2", long), Answer("c"))
	got := map[string]int{}
	for _, m := range window.Build(s, prompt, window.Results).Messages {
		for _, r := range m.Results() {
			got[r.CallID] = len(r.Text())
			if r.CallID == "c1" && !strings.Contains(r.Text(), " of 12000 bytes cut") {
				t.Errorf("the cut does not say how much: %q", r.Text()[2390:2450])
			}
		}
	}
	if got["c1"] > 4000 || got["c2"] != len(long) {
		t.Errorf("lengths %v: want the old result cut, the newest whole", got)
	}
}

func TestPicturesForATextModel(t *testing.T) {
	m := User("look")
	m.Blocks = append(m.Blocks, llmtest.Images[0], llm.Image{MIME: "image/png"})
	s := Replay(t, m)
	p := prompt
	if got, want := fixtures.Lines(window.Build(s, p, window.Loose)), []string{"user look", "user (image)", "user [image left out: it is empty]"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	p.NoImages = true
	left := "user (image left out: this model reads text only)"
	if got, want := fixtures.Lines(window.Build(s, p, window.Loose)), []string{"user look", left, left}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func anyLog(t *rapid.T) {
	log := append(AnyBodies(t, "anthropic", "claude"), User("and now?"))
	s, err := session.Replay("s", Yield(Log(log...)...))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []window.Squeeze{window.Loose, window.Results} {
		if err := llmtest.Validate(window.Build(s, prompt, q)); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func TestAnyLogGivesAnAcceptedRequest(t *testing.T) { rapid.Check(t, anyLog) }

// The APIs themselves are held against such logs in provider/anthropic and
// provider/openai, byte by byte.
func FuzzAnyLog(f *testing.F) {
	Seeds(f)
	f.Fuzz(rapid.MakeFuzz(anyLog))
}

func TestAnyTreeGivesAnAcceptedRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := session.Replay("s", Yield(AnyLog(t)...))
		if err != nil {
			t.Fatal(err)
		}
		r := s.Next(User("and now?"), &Clock{})
		if err := s.Apply(r); err != nil {
			t.Fatal(err)
		}
		if err := llmtest.Validate(window.Build(s, prompt, window.Loose)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPrefixIsStable lets a conversation grow turn by turn and compares, block
// by block, what each call sends with what the call before it sent.
func TestPrefixIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := session.Replay("s", Yield(Log()...))
		if err != nil {
			t.Fatal(err)
		}
		clock := &Clock{}
		add := func(b session.Body) {
			if err := s.Apply(s.Next(b, clock)); err != nil {
				t.Fatal(err)
			}
		}
		var before []string
		calls := 0
		for range rapid.IntRange(2, 12).Draw(t, "turns") {
			add(User("q"))
			for {
				now := fixtures.Lines(window.Build(s, prompt, window.Loose))
				if len(now) < len(before) || !slices.Equal(now[:len(before)], before) {
					t.Fatalf("sent before:\n%q\nsent now:\n%q", before, now)
				}
				before = now
				kind := rapid.IntRange(0, 4).Draw(t, "answer")
				if kind == 0 { // the provider failed, or the process died
					break
				}
				if kind < 3 {
					add(mine(think(Answer("a"), "sig")))
					break
				}
				// Some servers number the calls of each answer anew.
				calls++
				id := rapid.SampledFrom([]string{"c1", "c2", fmt.Sprint("k", calls)}).Draw(t, "id")
				args := json.RawMessage(fmt.Sprintf(`{"n":%d}`, calls))
				add(mine(Calls(llm.ToolCall{ID: id, Name: "read", Args: args}, llm.ToolCall{ID: id + "b", Name: "list", Args: args})))
				if kind == 4 && rapid.Bool().Draw(t, "early") { // killed before any result
					break
				}
				add(Result(id, fmt.Sprint("read ", calls)))
				if kind == 4 { // killed between two results
					break
				}
				add(Result(id+"b", fmt.Sprint("list ", calls)))
			}
			for _, b := range []session.Body{Title("t"), Pin("e2"), session.Notice{Percent: 50, Text: "half", As: "system"}} {
				if rapid.Bool().Draw(t, "aside") {
					add(b)
				}
			}
		}
	})
}

func TestMeasure(t *testing.T) {
	tok := byWord{}
	b := window.Budget{Window: 1000, Reserve: 100}
	for _, c := range []struct {
		name string
		log  []session.Body
		want int
	}{
		{"nothing reported: everything is counted", []session.Body{User("one two three")}, 3 + 4},
		{"the last report and what came after", []session.Body{User("x"), Used(500, Answer("y")), User("one two")}, 500 + 2 + 4},
		{"a report from before a fold is of another context", []session.Body{User("x"), Used(500, Answer("y")), Compaction("s", "e1"), User("one two")},
			4 + 1 + 4 + 1 + 4 + 2 + len(strings.Fields(summary("s")))},
		{"a report above the window is stale", []session.Body{User("x"), Used(5000, Answer("y")), User("one")}, 4 + 1 + 4 + 1 + 4 + 1},
		{"a failed answer reports nothing", []session.Body{User("x"), Used(300, Answer("y")), Stopped(llm.StopError, Used(900, Answer("z"))), User("one")}, 300 + 4 + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := window.Measure(Replay(t, c.log...), window.Prompt{}, tok, b)
			// A merged request has fewer messages than records; the count of
			// whole requests may be smaller by that.
			if got.Used != c.want && !(c.want-got.Used > 0 && c.want-got.Used <= 4) {
				t.Errorf("Used = %d, want %d", got.Used, c.want)
			}
		})
	}
}

type byWord struct{}

func (byWord) Count(text string) int { return len(strings.Fields(text)) }

func TestBudgetLine(t *testing.T) {
	for _, c := range []struct {
		b    window.Budget
		want string
	}{
		{window.Budget{Window: 200_000, Used: 156_000}, "[Context: 156k/200k tokens (78%)]"},
		{window.Budget{Window: 1_000_000, Used: 950}, "[Context: 950/1M tokens (0%)]"},
		{window.Budget{Window: 32_768, Used: 1_500}, "[Context: 1.5k/32k tokens (4%)]"},
	} {
		if got := c.b.String(); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.b, got, c.want)
		}
	}
}

// With ThinksAnywhere, thinking stands where it stood, and a compaction keeps it
// with what it keeps; else only what comes first is sent.
func TestThinkingAnywhere(t *testing.T) {
	call := llm.ToolCall{ID: "c1", Name: "read", Args: json.RawMessage(`{}`), Signature: "fc_1"}
	answer := session.Message{Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{
		llm.Thinking{Signature: "rs_1"}, llm.Text{Text: "I look.", Signature: "msg_1"}, llm.Thinking{Signature: "rs_2"}, call,
	}}, Stop: llm.StopTool}
	log := []session.Body{User("old"), Answer("gone"), User("q"), By("openai", "gpt-5", answer), Result("c1", "ok"), Compaction("SUM", "e3"), User("next")}
	for _, c := range []struct {
		p    window.Prompt
		want string
	}{
		{window.Prompt{Provider: "openai", Model: "gpt-5", ThinksAnywhere: true}, "rs_1 msg_1 rs_2 fc_1"},
		{window.Prompt{Provider: "openai", Model: "gpt-5"}, "rs_1 msg_1 fc_1"},
		{window.Prompt{Provider: "openai", Model: "gpt-6", ThinksAnywhere: true}, ""},
		{window.Prompt{Provider: "azure", Model: "gpt-5", ThinksAnywhere: true}, ""},
	} {
		var got []string
		for _, m := range window.Build(Replay(t, log...), c.p, window.Loose).Messages {
			for _, b := range m.Blocks {
				switch b := b.(type) {
				case llm.Thinking:
					got = append(got, b.Signature)
				case llm.Text:
					got = append(got, b.Signature)
				case llm.ToolCall:
					got = append(got, b.Signature)
				}
			}
		}
		if s := strings.Join(strings.Fields(strings.Join(got, " ")), " "); s != c.want {
			t.Errorf("%+v: %q, want %q", c.p, s, c.want)
		}
	}
}
