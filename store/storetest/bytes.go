package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/session/storekit"
	"goclaw/store/memory"
)

// everyKind returns a log s1 with a record of every kind, in which every field
// is set.
func everyKind() []session.Record {
	code := 3
	at := sessiontest.Start.Add(-1500 * time.Millisecond)
	usage := llm.Usage{Input: 11, Output: 22, CacheRead: 33, CacheWrite: 44}
	details := json.RawMessage(`{"readFiles":["a.go"],"modifiedFiles":[],"n":1.50}`)
	return sessiontest.Log(
		session.Header{Version: session.Version, ID: "s1", Key: "agent:main:main", CWD: "/home/me", Parent: "s0",
			Origin: session.Origin{Program: "openclaw", Path: "/x/y.jsonl", Key: "agent:main:main", ID: "s0", Seq: 12, Mark: session.Archived}},
		session.Message{Message: llm.UserText("words"), At: at},
		session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{
			llm.Text{Text: "look"}, llm.Image{MIME: "image/png", Data: "iVBORw0KGgo="}, llm.Text{Text: "again"}}}, At: at},
		session.Message{Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{
			llm.Thinking{Text: "hm", Signature: "sig1"}, llm.Thinking{Signature: "secret", Redacted: true},
			llm.Text{Text: "I shall look", Signature: "ts"},
			llm.ToolCall{ID: "c1", Name: "read", Args: json.RawMessage(`{"path":"a<b>&c","n":1.0,"deep":{"x":[1,2,null]}}`), Signature: "th"},
			llm.ToolCall{ID: "c2", Name: "list", Args: json.RawMessage(`{}`)}}},
			At: at, Provider: "anthropic", API: "anthropic-messages", Model: "claude-sonnet-4-5", Usage: usage, Stop: llm.StopTool},
		session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{llm.ToolResult{CallID: "c1", Name: "read",
			Blocks: []llm.Block{llm.Text{Text: "file"}, llm.Image{MIME: "image/jpeg", Data: "/9j/4AAQ"}}}}}, At: at, Details: details},
		session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{llm.ToolResult{CallID: "c2", Name: "list", IsError: true,
			Blocks: []llm.Block{llm.Text{Text: "no such folder"}}}}}, At: at},
		session.Message{Message: llm.AssistantText("broke off"), At: at, Provider: "openai", API: "openai-completions", Model: "gpt-5", Stop: llm.StopError, Error: "boom"},
		session.Message{Message: llm.AssistantText("in short"), At: at, Provider: "openai", API: "openai-completions", Model: "gpt-5", Usage: usage, Stop: llm.StopEnd, Continues: "e3", Cut: true},
		session.Message{Message: llm.UserText("never sent"), At: at, Excluded: true},
		session.Message{Message: llm.Message{Role: llm.System, Blocks: []llm.Block{llm.Text{Text: "be kind"}}}, At: at},
		session.Shell{Command: "ls -l", Output: "total 0\n", ExitCode: &code, Truncated: true, FullOutput: "/tmp/out", At: at},
		session.Shell{Command: "sleep 9", Cancelled: true, Excluded: true, At: at},
		session.ModelChange{Provider: "anthropic", Model: "claude-opus-4-5", Chosen: true},
		session.ThinkingChange{Level: "high"},
		session.Checkpoint{Summary: "so far", Topics: []string{"a", "b"}, Decisions: []string{"c"}, Questions: []string{"d?"}, Covers: "e3", Tokens: 1234, Messages: 5, Model: "m", Usage: usage},
		session.Usage{Kind: "cache_warm", Note: "note", Provider: "anthropic", Model: "claude", Usage: usage},
		session.Usage{},
		session.Notice{Percent: 75, Text: "Context at 75%.", As: "system"},
		session.Notice{Percent: 90, Text: "Context at 90%.", As: "system", Once: true},
		session.Compaction{Summary: "summed up", FirstKept: "e3", TokensBefore: 999, FromCheckpoint: "e13", Details: details, Usage: usage},
		session.Compaction{Summary: "summed up", FirstKept: "e3", Resume: "e5", TokensBefore: 999, TokensAfter: 99},
		session.Undo{Target: "e15"},
		session.BranchSummary{From: "e2", Summary: "we went astray", Details: details},
		session.CustomMessage{Type: "hook", Blocks: []llm.Block{llm.Text{Text: "by the way"}}, Display: true, Details: details, At: at},
		session.Custom{Type: "model-snapshot", Data: json.RawMessage(`{"provider":"x","z":"\u00e9<"}`)},
		session.Label{Target: "e1", Label: session.Pin},
		session.Label{Target: "e1"},
		session.Title{Title: "a title"},
		session.Moved{Key: "agent:main:moved"},
		session.Marked{Mark: session.Deleted},
		session.Marked{},
		session.Partial{Thinking: "Hm, \u00e9.", Text: "So far", Provider: "anthropic", Model: "claude-opus-4-1"},
		session.Partial{Offset: 13, Text: ", so\ngood"},
		session.Edit{Target: "e1", Blocks: []llm.Block{llm.Text{Text: "other words"}}},
		session.Edit{Target: "e2", Drop: true},
		session.Refused{Target: "e2", Block: 1, Why: "image exceeds 5 MB maximum"},
		session.Redaction{Targets: []session.Target{{ID: "e90", Spans: []session.Span{{Field: "blocks.0", Start: 3, End: 9, Rule: "jwt"}}}}},
		session.Leaf{Target: "e20", AppendParent: "e19"},
		session.Reset{Reason: "daily", FirstKept: "e20"},
		session.Reset{Reason: "new"},
	)
}

func (s suite) kinds(t *testing.T) {
	dir := t.TempDir()
	st := s.at(t, dir)
	recs := everyKind()
	for _, r := range recs {
		add(t, st, "s1", r)
	}
	check := func(st session.Store) {
		t.Helper()
		got := read(t, st, "s1", 0)
		if len(got) != len(recs) {
			t.Fatalf("%d records became %d", len(recs), len(got))
		}
		for i := range recs {
			if d := cmp.Diff(recs[i], got[i], sessiontest.Same); d != "" {
				t.Errorf("%T came back changed (-want +got):\n%s", recs[i].Body, d)
			}
		}
		wantReplay(t, st, "s1")
	}
	check(st)
	must(t, st.Close())
	check(s.at(t, dir))
}

// texts are strings that people, tools and files put into messages.
var texts = map[string]string{
	"empty":          "",
	"blank":          " \t ",
	"NUL":            "a\x00b\x00",
	"controls":       "\x01\x02\x1b[31mred\x7f\u0080\u009f",
	"emoji":          "🦀👩‍👩‍👧‍👦🏳️‍🌈",
	"line ends":      "a\nb\r\nc\rd\u2028e\u2029f\n",
	"quotes":         `"'\` + "`" + `\"\\`,
	"html":           "<b>&amp;</b>",
	"json":           `{"type":"message","id":"x"}` + "\n",
	"combining":      "e\u0301 é",
	"BOM":            "\ufeffa",
	"noncharacter":   "\ufffe\uffff\U0010ffff",
	"replacement":    "\ufffd",
	"escape":         `\u0041 \ud800`,
	"right to left":  "\u202eabc שלום",
	"sql":            "'); drop table records; --",
	"a long line":    strings.Repeat("x", 100_000),
	"64 KiB":         strings.Repeat("0123456789abcde\n", 4096),
	"many NULs":      strings.Repeat("\x00", 10_000),
	"8 MiB of words": strings.Repeat("Ünïcödé wörds. ", 8<<20/20),
}

func (s suite) bytes(t *testing.T) {
	dir := t.TempDir()
	st := s.at(t, dir)
	var all []session.Body
	var names []string
	for name, text := range texts {
		names = append(names, name)
		all = append(all, sessiontest.User(text))
	}
	names = append(names, "arguments", "output", "data")
	all = append(all,
		sessiontest.Call("c1", "write", `{"text":"`+strings.Repeat("🦀", 1<<18)+`\u0000\ud83e\udd80</script>"}`),
		sessiontest.Result("c1", "\x00\x01"+strings.Repeat("\x1b[0m\r\n", 1<<16)),
		session.Custom{Type: "x", Data: json.RawMessage(`{"big":12345678901234567890,"tiny":1e-400,"dup":1,"dup":2,"esc":"\u0000\/"}`)})
	recs := sessiontest.Log(all...)
	for _, r := range recs {
		add(t, st, "s1", r)
	}
	check := func(st session.Store) {
		t.Helper()
		got := read(t, st, "s1", 1)
		if len(got) != len(names) {
			t.Fatalf("%d records became %d", len(names), len(got))
		}
		for i, name := range names {
			if d := cmp.Diff(recs[i+1], got[i], sessiontest.Same); d != "" {
				t.Errorf("%s came back changed (-want +got):\n%s", name, clip(d))
			}
		}
	}
	check(st)
	must(t, st.Close())
	st = s.at(t, dir)
	check(st)

	// JSON cannot have text that is not UTF-8. It is refused or kept as it is,
	// but not changed silently.
	log := logOf("bad", "k", sessiontest.User("before"), sessiontest.User("a\xffb\xc3"), sessiontest.User("after"))
	add(t, st, "bad", log[:2]...)
	if err := st.Append(bg, "bad", log[2:]...); err != nil {
		log = log[:2]
	}
	wantLog(t, st, "bad", log)
	wantReplay(t, st, "bad")
}

// strangers are lines of another program or of a later version, and the records
// that they are read as.
var strangers = []session.Record{
	{ID: "u1", Time: sessiontest.Start, Body: session.Unknown{Type: "hologram"},
		Raw: json.RawMessage(`{"type":"hologram","id":"u1","parentId":null,"timestamp":"2026-11-15T00:00:00.000Z","beam":{"z":1,"a":[1.0,2e3,null]}}`)},
	{ID: "u2", Parent: "u1", Time: sessiontest.Start, Body: session.Unknown{Type: "usage"},
		Raw: json.RawMessage(`{ "kind" : "x",  "timestamp":"2026-11-15T00:00:00.000Z", "parentId":"u1","id":"u2","type":"usage" , "note":"spaces\tand \u0041" }`)},
	{ID: "u3", Parent: "u1", Time: sessiontest.Start, Body: sessiontest.User("with more fields"),
		Raw: json.RawMessage(`{"type":"message","id":"u3","parentId":"u1","timestamp":"2026-11-15T00:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"with more fields"}],"mood":"\u00fc"},"later":{"x":1.0}}`)},
	{ID: "u4", Parent: "u3", Time: sessiontest.Start, Body: session.Title{Title: "named"},
		Raw: json.RawMessage(`{"name":"named","type":"session_info","timestamp":"2026-11-15T00:00:00Z","id":"u4","parentId":"u3"}`)},
}

func (s suite) unknown(t *testing.T) {
	dir := t.TempDir()
	st := s.at(t, dir)
	recs := []session.Record{header("s1", "k")}
	for i, r := range strangers {
		r.Seq = session.Seq(i) + 2
		recs = append(recs, r)
	}
	add(t, st, "s1", recs...)
	check := func(st session.Store) {
		t.Helper()
		wantLog(t, st, "s1", recs)
		for i, r := range read(t, st, "s1", 0) {
			if want := recs[i].Raw; want != nil && string(r.Raw) != string(want) {
				t.Errorf("line %d came back as\n%s, want\n%s", i+1, r.Raw, want)
			}
		}
		wantReplay(t, st, "s1")
	}
	check(st)
	must(t, st.Close())
	check(s.at(t, dir))
}

func (s suite) tooLarge(t *testing.T) {
	dir := t.TempDir()
	st := s.at(t, dir)
	recs := sessiontest.Log(sessiontest.User("hi"))
	add(t, st, "s1", recs...)
	big := strings.Repeat("x", storekit.MaxRecord+1)
	kinds := map[string]session.Body{
		"a message": sessiontest.User(big),
		"a result":  sessiontest.Result("c1", big),
		"a summary": session.Compaction{Summary: big, FirstKept: "e1"},
		"an output": session.Shell{Command: "yes", Output: big},
	}
	if testing.Short() {
		kinds = map[string]session.Body{"a message": kinds["a message"]}
	}
	for what, b := range kinds {
		r := session.Record{Seq: 3, ID: "e2", Parent: "e1", Time: sessiontest.Start, Body: b}
		wantErr(t, what+" of 32 MiB and a byte", st.Append(bg, "s1", r), session.ErrTooLarge)
		small := session.Record{Seq: 3, ID: "e2", Parent: "e1", Time: sessiontest.Start, Body: sessiontest.User("small")}
		r.Seq, r.ID, r.Parent = 4, "e3", "e2"
		wantErr(t, what+" of 32 MiB and a byte after a small one", st.Append(bg, "s1", small, r), session.ErrTooLarge)
	}
	line := func(n int) session.Record {
		const open, end = `{"type":"message","id":"e2","parentId":"e1","timestamp":"2026-11-15T00:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"`, `"}]}}`
		text := strings.Repeat("x", n-len(open)-len(end))
		return session.Record{Seq: 3, ID: "e2", Parent: "e1", Time: sessiontest.Start, Body: sessiontest.User(text), Raw: json.RawMessage(open + text + end)}
	}
	wantErr(t, "a line of 32 MiB and a byte", st.Append(bg, "s1", line(storekit.MaxRecord+1)), session.ErrTooLarge)
	wantLog(t, st, "s1", recs)
	wantReplay(t, st, "s1")

	// A record that exceeds the limit only as a line is refused or kept whole.
	grows := session.Record{Seq: 3, ID: "e2", Parent: "e1", Time: sessiontest.Start, Body: sessiontest.User(strings.Repeat("\x00", storekit.MaxRecord/3))}
	if err := st.Append(bg, "s1", grows); err == nil {
		recs = append(recs, grows)
	} else {
		wantErr(t, "a text of 11 MiB of NULs", err, session.ErrTooLarge)
	}
	wantLog(t, st, "s1", recs)

	add(t, st, "s2", logOf("s2", "k", sessiontest.User("hi"))...)
	whole := line(storekit.MaxRecord)
	add(t, st, "s2", whole)
	must(t, st.Close())
	st = s.at(t, dir)
	wantLog(t, st, "s1", recs)
	got := read(t, st, "s2", 2)
	if len(got) != 1 || !bytes.Equal(got[0].Raw, whole.Raw) {
		t.Errorf("a line of 32 MiB came back as %d records", len(got))
	}
	after := session.Record{Seq: 4, ID: "e3", Parent: "e2", Time: sessiontest.Start, Body: sessiontest.User("after")}
	add(t, st, "s2", after)
	if got := read(t, st, "s2", 3); len(got) != 1 || got[0].ID != "e3" {
		t.Errorf("after a line of 32 MiB there are %d records, want 1", len(got))
	}
}

// raws returns the lines of a log, or nil if the store keeps none.
func raws(t testing.TB, st session.Store, id session.ID) []string {
	t.Helper()
	var out []string
	for _, r := range read(t, st, id, 0) {
		if r.Raw == nil {
			return nil
		}
		out = append(out, string(r.Raw))
	}
	return out
}

func (s suite) copies(t *testing.T) {
	st, twin, mem := s.fresh(t), s.fresh(t), memory.New()
	recs := everyKind()
	for i, r := range strangers {
		r.Seq = session.Seq(len(recs)) + 1
		if i == 0 {
			r.Raw = json.RawMessage(strings.Replace(string(r.Raw), "null", `"e1"`, 1))
			r.Parent = "e1"
		}
		recs = append(recs, r)
	}
	add(t, st, "s1", recs...)
	hop := func(dst, src session.Store, want int) {
		t.Helper()
		if n, err := storekit.Copy(bg, dst, src, "s1"); err != nil || n != want {
			t.Fatalf("copy = %d, %v, want %d", n, err, want)
		}
	}
	hop(mem, st, len(recs))
	hop(twin, mem, len(recs))
	hop(twin, st, 0)
	hop(st, twin, 0)
	wantLog(t, twin, "s1", recs)
	if d := cmp.Diff(raws(t, st, "s1"), raws(t, twin, "s1")); d != "" {
		t.Errorf("the copy of a copy has other bytes:\n%s", clip(d))
	}
	a, err := session.Stat(bg, st, "s1")
	must(t, err)
	b, err := session.Stat(bg, twin, "s1")
	must(t, err)
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("the copy of a copy has another info:\n%s", d)
	}

	grow := func(st session.Store, id string) {
		t.Helper()
		in, err := session.Stat(bg, st, "s1")
		must(t, err)
		add(t, st, "s1", session.Record{Seq: in.Last + 1, ID: id, Parent: in.Leaf, Time: sessiontest.Start, Body: sessiontest.User(id)})
	}
	for i := range 3 {
		grow(st, fmt.Sprintf("g%d", i))
	}
	hop(twin, st, 3)
	grow(st, "mine")
	grow(twin, "yours")
	_, err = storekit.Copy(bg, twin, st, "s1")
	wantErr(t, "copy over another history", err, session.ErrConflict)
	grow(st, "longer")
	_, err = storekit.Copy(bg, twin, st, "s1")
	wantErr(t, "copy over another, shorter history", err, session.ErrConflict)
	_, err = storekit.Copy(bg, twin, st, "nobody")
	if !errors.Is(err, session.ErrNotFound) {
		t.Errorf("copy of no log: %v, want %v", err, session.ErrNotFound)
	}
}
