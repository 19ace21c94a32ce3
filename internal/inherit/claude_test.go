package inherit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"goclaw/internal/inherit"
	"goclaw/llm"
	"goclaw/session"
)

// importedFile imports one file and returns its session and what became of it.
func importedFile(t *testing.T, name string, text ...string) (*session.Session, inherit.Outcome) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(strings.Join(text, "\n")+"\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	st := openStore(t, t.TempDir())
	rep, cat := take(t, st, nil, false, file)
	if len(rep.Outcomes) != 1 {
		t.Fatalf("%d transcripts, %v", len(rep.Outcomes), cat.Problems)
	}
	s, err := session.Replay(rep.Outcomes[0].Log, st.Read(context.Background(), rep.Outcomes[0].Log, 0))
	if err != nil {
		t.Fatal(err)
	}
	// Whatever form a line had, its bytes are in the log.
	var raw strings.Builder
	for r, err := range st.Read(context.Background(), s.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		raw.Write(r.Raw)
		raw.WriteByte('\n')
	}
	for _, l := range text {
		if !strings.Contains(raw.String(), l) {
			t.Errorf("a line is not kept: %s", l)
		}
	}
	return s, rep.Outcomes[0]
}

func cc(typ, uuid, parent, rest string) string {
	p := "null"
	if parent != "" {
		p = fmt.Sprintf("%q", parent)
	}
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"cwd":"/home/me/proj","sessionId":"cc","version":"2.0.55","type":%q,"uuid":%q,"timestamp":"2026-01-02T00:00:00.000Z",%s}`, p, typ, uuid, rest)
}

func TestClaudeCode(t *testing.T) {
	user := func(text string) string { return fmt.Sprintf(`"message":{"role":"user","content":%q}`, text) }
	result := func(id, text string) string {
		return fmt.Sprintf(`"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":[{"type":"text","text":%q}],"is_error":true}]}`, id, text)
	}
	answer := func(id, block string) string {
		return fmt.Sprintf(`"message":{"id":%q,"role":"assistant","model":"claude-opus-4-6","content":[%s],"stop_reason":"tool_use","usage":{"input_tokens":3,"cache_creation_input_tokens":10,"cache_read_input_tokens":20,"output_tokens":7}}`, id, block)
	}
	tests := map[string]struct {
		lines []string
		want  []string
	}{
		"parallel calls leave results on branches": {[]string{
			cc("user", "u1", "", user("go")),
			cc("assistant", "a1", "u1", answer("m1", `{"type":"thinking","thinking":"hm","signature":"sig"}`)),
			cc("assistant", "a2", "a1", answer("m1", `{"type":"tool_use","id":"t1","name":"Read","input":{"f":1}}`)),
			cc("assistant", "a3", "a2", answer("m1", `{"type":"tool_use","id":"t2","name":"Grep","input":{}}`)),
			cc("user", "r1", "a2", result("t1", "one")),
			cc("progress", "p1", "a3", `"data":{"type":"hook_progress"}`),
			cc("user", "r2", "a3", result("t2", "two")),
			cc("assistant", "a4", "r2", answer("m2", `{"type":"text","text":"done"}`)),
		}, []string{"user go", "thinking hm", `call t1 Read {"f":1}`, "call t2 Grep {}", "result t1 true one", "result t2 true two", "assistant done"}},
		"a prompt edited": {[]string{
			cc("user", "u1", "", user("one")), cc("assistant", "a1", "u1", answer("m1", `{"type":"text","text":"1"}`)),
			cc("user", "u2", "a1", user("wrong")), cc("assistant", "a2", "u2", answer("m2", `{"type":"text","text":"no"}`)),
			cc("user", "u3", "a1", user("right")),
		}, []string{"user one", "assistant 1", "user right"}},
		"compacted": {[]string{
			cc("user", "u1", "", user("long ago")), cc("assistant", "a1", "u1", answer("m1", `{"type":"text","text":"1"}`)),
			cc("system", "b1", "", `"subtype":"compact_boundary","logicalParentUuid":"a1","content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":155025}`),
			cc("user", "s1", "b1", `"isCompactSummary":true,"isVisibleInTranscriptOnly":true,`+user("the summary")),
			cc("user", "u2", "s1", user("go on")),
		}, []string{"user The conversation history before this point was compacted into the following summary:\n\n<summary>\nthe summary\n</summary>", "user go on"}},
		"compacted, the end kept word for word": {[]string{
			cc("user", "u1", "", user("long ago")), cc("assistant", "a1", "u1", answer("m1", `{"type":"text","text":"1"}`)),
			cc("user", "u2", "a1", user("lately")), cc("assistant", "a2", "u2", answer("m2", `{"type":"text","text":"2"}`)),
			cc("user", "u3", "a2", user("just now")), cc("assistant", "a3", "u3", answer("m3", `{"type":"text","text":"3"}`)),
			cc("system", "b1", "", `"subtype":"compact_boundary","logicalParentUuid":"a3","compactMetadata":{"trigger":"auto","preTokens":150000,"preservedSegment":{"headUuid":"u2","anchorUuid":"s1","tailUuid":"a3"},"preservedMessages":{"anchorUuid":"s1","uuids":["u2","a2","u3","a3"]}}`),
			cc("user", "s1", "b1", `"isCompactSummary":true,"isVisibleInTranscriptOnly":true,`+user("the summary")),
			cc("user", "u4", "a2", user("go on")), // a2 is kept, and not of the turn before
			cc("assistant", "a4", "u4", answer("m4", `{"type":"text","text":"4"}`)),
		}, []string{"user The conversation history before this point was compacted into the following summary:\n\n<summary>\nthe summary\n</summary>",
			"user lately", "assistant 2", "user just now", "assistant 3", "user go on", "assistant 4"}},
		"compacted, the last kept line written again behind the summary": {[]string{
			cc("user", "u1", "", user("long ago")), cc("assistant", "a1", "u1", answer("m1", `{"type":"text","text":"1"}`)),
			cc("user", "u2", "a1", user("lately")),
			cc("system", "b1", "", `"subtype":"compact_boundary","compactMetadata":{"preservedMessages":{"anchorUuid":"s1","uuids":["u2","a2"]}}`),
			cc("user", "s1", "b1", `"isCompactSummary":true,`+user("the summary")),
			cc("assistant", "a2", "s1", answer("m2", `{"type":"text","text":"2"}`)),
			cc("user", "u3", "a2", user("go on")),
		}, []string{"user The conversation history before this point was compacted into the following summary:\n\n<summary>\nthe summary\n</summary>",
			"user lately", "assistant 2", "user go on"}},
		"results between the lines of an answer": {[]string{
			cc("user", "u1", "", user("go")),
			cc("assistant", "a1", "u1", answer("m1", `{"type":"tool_use","id":"t1","name":"Read","input":{}}`)),
			cc("user", "r1", "a1", result("t1", "one")),
			cc("assistant", "a2", "a1", answer("m1", `{"type":"tool_use","id":"t2","name":"Read","input":{}}`)),
			cc("user", "r2", "a2", result("t2", "two")),
			cc("assistant", "a3", "r2", answer("m2", `{"type":"text","text":"done"}`)),
		}, []string{"user go", "call t1 Read {}", "call t2 Read {}", "result t1 true one", "result t2 true two", "assistant done"}},
		"said while it was busy": {[]string{
			cc("user", "u1", "", user("go")),
			cc("assistant", "a1", "u1", answer("m1", `{"type":"tool_use","id":"t1","name":"Read","input":{}}`)),
			cc("user", "r1", "a1", result("t1", "one")),
			`{"type":"queue-operation","operation":"remove","content":"and the tests","sessionId":"cc"}`,
			cc("attachment", "q1", "r1", `"attachment":{"type":"queued_command","prompt":"and the tests","commandMode":"prompt","origin":{"kind":"human"}}`),
			cc("attachment", "q2", "q1", `"attachment":{"type":"queued_command","prompt":"task 7 is done","commandMode":"task-notification"}`),
			cc("attachment", "q3", "q2", `"attachment":{"type":"todo_reminder","content":[]}`),
			cc("assistant", "a2", "q3", answer("m2", `{"type":"text","text":"done"}`)),
		}, []string{"user go", "call t1 Read {}", "result t1 true one", "user and the tests", "user task 7 is done", "assistant done"}},
		"sidechains and synthetic answers are not sent": {[]string{
			cc("user", "u1", "", user("one")),
			strings.Replace(cc("user", "x1", "", user("for the subagent")), `"isSidechain":false`, `"isSidechain":true`, 1),
			strings.Replace(cc("assistant", "x2", "x1", answer("m9", `{"type":"text","text":"sub"}`)), `"isSidechain":false`, `"isSidechain":true`, 1),
			cc("assistant", "a1", "u1", `"isApiErrorMessage":true,"message":{"id":"e","role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}`),
			`{"type":"file-history-snapshot","messageId":"u1","snapshot":{},"isSnapshotUpdate":false}`,
			`{"type":"queue-operation","operation":"enqueue","sessionId":"cc"}`,
			`{"type":"something-new","sessionId":"cc","weird":[1,2,{}]}`,
			cc("user", "u2", "a1", user("two")),
		}, []string{"user one", "user two"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, o := importedFile(t, "cc.jsonl", test.lines...)
			if o.Program != inherit.ClaudeCode || s.Key != "claude:proj:cc" || s.ID != "cc" || s.CWD != "/home/me/proj" {
				t.Errorf("program %q, key %q, id %q, folder %q", o.Program, s.Key, s.ID, s.CWD)
			}
			if diff := cmp.Diff(test.want, lines(s, "anthropic/claude-opus-4-6")); diff != "" {
				t.Errorf("context (-want +got):\n%s", diff)
			}
		})
	}
	s, _ := importedFile(t, "cc.jsonl", tests["parallel calls leave results on branches"].lines...)
	if want := (llm.Usage{Input: 6, Output: 14, CacheRead: 40, CacheWrite: 20}); s.Spent != want {
		t.Errorf("spent %+v, want %+v: the usage of an answer counts once", s.Spent, want)
	}
}

// TestClaudeCodeTitles: a summary is the title of the session that it was
// made for, wherever it stands, and what the user has chosen goes before.
func TestClaudeCodeTitles(t *testing.T) {
	talk := []string{
		cc("user", "u1", "", `"message":{"role":"user","content":"go"}`),
		cc("assistant", "a1", "u1", `"message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"text","text":"1"}]}`),
	}
	other := `{"type":"summary","summary":"Another session","leafUuid":"elsewhere"}`
	own := `{"type":"summary","summary":"This one","leafUuid":"a1"}`
	ai := `{"type":"ai-title","aiTitle":"By a model","sessionId":"cc"}`
	user := `{"type":"custom-title","customTitle":"By the user","sessionId":"cc"}`
	tests := map[string]struct {
		lines []string
		want  string
	}{
		"of another":           {append([]string{other}, talk...), ""},
		"before its line":      {append([]string{other, own}, talk...), "This one"},
		"behind its line":      {append(talk[:2:2], own), "This one"},
		"a model's":            {append(talk[:2:2], own, ai), "By a model"},
		"the user's stays":     {append(talk[:2:2], user, ai, own), "By the user"},
		"the user's, at first": {append([]string{user, own}, talk...), "By the user"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, _ := importedFile(t, "cc.jsonl", test.lines...)
			if s.Title != test.want || s.Turns != 1 {
				t.Errorf("title %q and %d turns, want %q and 1", s.Title, s.Turns, test.want)
			}
		})
	}
}

// TestClaudeCodeFiles: whose a file is, by its name and its lines.
func TestClaudeCodeFiles(t *testing.T) {
	dir := t.TempDir()
	const id = "0b5cf0ea-8a0e-4e0f-9d4b-5a2f8a6f0001"
	user := `"message":{"role":"user","content":"go"}`
	aside := strings.Replace(cc("user", "x1", "", user), `"isSidechain":false`, `"isSidechain":true`, 1)
	for name, text := range map[string]string{
		// It goes on from the session cc, whose lines it begins with.
		"-home-me-proj/" + id + ".jsonl":                             aside + "\n" + cc("user", "u1", "", user) + "\n",
		"-home-me-proj/" + id + "/subagents/agent-a1.jsonl":          aside + "\n",
		"-home-me-proj/" + id + "/subagents/workflows/journal.jsonl": `{"type":"started","agentId":"a1"}` + "\n",
		"-home-me-proj/titles.jsonl":                                 `{"type":"summary","summary":"Another session","leafUuid":"elsewhere"}` + "\n",
		"history.jsonl":                                              `{"display":"go","pastedContents":{},"timestamp":1,"project":"/home/me/proj"}` + "\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	st := openStore(t, t.TempDir())
	rep, cat := take(t, st, nil, false, dir)
	got := map[string]string{}
	for _, o := range rep.Outcomes {
		s, err := session.Open(context.Background(), st, o.Log)
		if err != nil {
			t.Fatal(err)
		}
		got[string(o.Log)] = fmt.Sprintf("%s %s, %d turns", o.Key, o.Archive, s.Turns)
	}
	want := map[string]string{
		id:         "claude:proj:" + id + " , 1 turns",
		"agent-a1": "claude:proj:cc:agent-a1 subagent, 1 turns",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(cat.Problems) > 0 {
		t.Errorf("problems %v, sessions (-want +got):\n%s", cat.Problems, diff)
	}
}

func TestCodex(t *testing.T) {
	line := func(typ, payload string) string {
		return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:00.000Z","type":%q,"payload":%s}`, typ, payload)
	}
	say := func(role, kind, text string) string {
		return fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":%q,"text":%q}]}`, role, kind, text)
	}
	meta := line("session_meta", `{"id":"cx","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/me/proj","cli_version":"0.98.0","model_provider":"openai","git":{"branch":"main"}}`)
	turn := line("turn_context", `{"cwd":"/home/me/proj","model":"gpt-5-codex","effort":"high","summary":"auto"}`)
	tests := map[string]struct {
		lines []string
		want  []string
	}{
		"calls of every kind": {[]string{meta, turn,
			line("response_item", say("developer", "input_text", "instructions")),
			line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}]}`),
			line("response_item", `{"type":"reasoning","summary":[{"type":"summary_text","text":"thinking"}],"content":null,"encrypted_content":"gAAA"}`),
			line("response_item", `{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}`),
			line("event_msg", `{"type":"token_count","info":{"total_token_usage":{"total_tokens":109},"last_token_usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":9}}}`),
			line("response_item", `{"type":"function_call_output","call_id":"c1","output":{"content":"failed","success":false}}`),
			line("response_item", `{"type":"reasoning","summary":[],"content":null,"encrypted_content":"gAAA"}`),
			line("response_item", `{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch","call_id":"c2","status":"completed"}`),
			line("event_msg", `{"type":"token_count","info":{"total_token_usage":{"total_tokens":109},"last_token_usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":9}},"rate_limits":{}}`),
			line("response_item", `{"type":"custom_tool_call_output","call_id":"c2","output":"ok"}`),
			line("event_msg", `{"type":"agent_message","message":"done"}`),
			line("response_item", say("assistant", "output_text", "done")),
			line("response_item", `{"type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}`),
			line("something_new", `{"a":1}`),
		}, []string{"user look", "user (image)", `call c1 shell {"command":["ls"]}`, "result c1 true failed", `call c2 apply_patch {"input":"*** Begin Patch"}`, "result c2 false ok", "assistant done"}},
		"compacted": {[]string{meta, turn,
			line("response_item", say("user", "input_text", "long ago")),
			line("compacted", `{"message":"what happened"}`),
			line("response_item", say("user", "input_text", "go on")),
		}, []string{"user The conversation history before this point was compacted into the following summary:\n\n<summary>\nuser: long ago\n\nwhat happened\n</summary>", "user go on"}},
		"compacted, with what the user had said": {[]string{meta, turn,
			line("response_item", say("user", "input_text", "long ago")),
			line("response_item", say("assistant", "output_text", "yes")),
			line("compacted", `{"message":"what happened","replacement_history":[`+say("developer", "input_text", "instructions")+`,`+say("user", "input_text", "<environment_context>x</environment_context>")+`,`+
				say("user", "input_text", "long ago")+`,`+say("user", "input_text", "what happened")+`],"window_number":1}`),
			line("response_item", say("user", "input_text", "go on")),
		}, []string{"user The conversation history before this point was compacted into the following summary:\n\n<summary>\nuser: long ago\n\nwhat happened\n</summary>", "user go on"}},
		"compacted by the service, unreadable": {[]string{meta, turn,
			line("response_item", say("user", "input_text", "long ago")),
			line("response_item", say("assistant", "output_text", "yes")),
			line("compacted", `{"message":"","replacement_history":[`+say("user", "input_text", "long ago")+`,{"type":"compaction","encrypted_content":"gAAA"}]}`),
			line("event_msg", `{"type":"context_compacted"}`),
			line("response_item", say("user", "input_text", "go on")),
		}, []string{"user The conversation history before this point was compacted into the following summary:\n\n<summary>\nuser: long ago\n\n(That is what the user said before this point. The summary of the answers is encrypted and cannot be read here.)\n</summary>", "user go on"}},
		"rolled back": {[]string{meta, turn,
			line("response_item", say("user", "input_text", "<environment_context>x</environment_context>")),
			line("response_item", say("user", "input_text", "one")),
			line("response_item", say("assistant", "output_text", "1")),
			line("response_item", say("user", "input_text", "two")),
			line("response_item", `{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}`),
			line("response_item", `{"type":"function_call_output","call_id":"c1","output":"ok"}`),
			line("response_item", say("user", "input_text", "three")),
			line("event_msg", `{"type":"thread_rolled_back","num_turns":2}`),
			line("response_item", say("user", "input_text", "two, again")),
		}, []string{"user <environment_context>x</environment_context>", "user one", "assistant 1", "user two, again"}},
		"rolled back at the end": {[]string{meta, turn,
			line("response_item", say("user", "input_text", "one")),
			line("response_item", say("assistant", "output_text", "1")),
			line("response_item", say("user", "input_text", "two")),
			line("event_msg", `{"type":"thread_rolled_back","num_turns":1}`),
		}, []string{"user one", "assistant 1"}},
		"rolled back altogether": {[]string{meta,
			line("response_item", say("user", "input_text", "one")),
			line("response_item", say("assistant", "output_text", "1")),
			line("event_msg", `{"type":"thread_rolled_back","num_turns":9}`),
			line("response_item", say("user", "input_text", "anew")),
		}, []string{"user anew"}},
		"a fork repeats its origin": {[]string{
			line("session_meta", `{"id":"cx","forked_from_id":"older","cwd":"/home/me/proj","model_provider":"openai"}`),
			line("session_meta", `{"id":"older","cwd":"/home/me/old","model_provider":"other"}`),
			turn,
			line("response_item", say("user", "input_text", "one")),
		}, []string{"user one"}},
		"before lines had a type, and a first line of little": {[]string{
			`{"id":"cx","timestamp":"2025-05-07T17:24:21.123Z"}`,
			say("user", "input_text", "hello"),
			`{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`,
			`{"type":"local_shell_call","id":"ls_1","call_id":"c1","status":"completed","action":{"type":"exec","command":["ls"]}}`,
			`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a.txt"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}]}`,
			`{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gAAA"}`,
			say("assistant", "output_text", "hi"),
		}, []string{"user hello", "assistant hm", `call c1 local_shell {"type":"exec","command":["ls"]}`, "result c1 false a.txt(image)", "assistant hi"}},
		"before lines had a type": {[]string{
			`{"id":"cx","timestamp":"2025-07-01T00:00:00.000Z","instructions":null,"cwd":"/home/me/proj"}`,
			`{"record_type":"state"}`,
			say("user", "input_text", "hello"),
			say("assistant", "output_text", "hi"),
		}, []string{"user hello", "assistant hi"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, o := importedFile(t, "rollout-2026-01-01T00-00-00-cx.jsonl", test.lines...)
			if o.Program != inherit.Codex || s.ID != "cx" {
				t.Errorf("program %q, key %q, id %q", o.Program, s.Key, s.ID)
			}
			if diff := cmp.Diff(test.want, lines(s, "openai/gpt-5-codex")); diff != "" {
				t.Errorf("context (-want +got):\n%s", diff)
			}
		})
	}
	s, _ := importedFile(t, "rollout-cx.jsonl", tests["calls of every kind"].lines...)
	if want := (llm.Usage{Input: 60, Output: 9, CacheRead: 40}); s.Spent != want || s.ModelName() != "openai/gpt-5-codex" {
		t.Errorf("spent %+v by %s, want %+v", s.Spent, s.ModelName(), want)
	}
}

// TestCodexFiles: a packed session is read, unless it lies beside as it was;
// a subagent's is marked.
func TestCodexFiles(t *testing.T) {
	dir := t.TempDir()
	text := func(id, more string) string {
		return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":%q,"cwd":"/home/me/proj"%s}}`, id, more) + "\n" +
			`{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}` + "\n"
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := func(s string) string { return string(z.EncodeAll([]byte(s), nil)) }
	write(t, filepath.Join(dir, "2026/01/01/rollout-2026-01-01T00-00-00-one.jsonl.zst"), packed(text("one", "")))
	write(t, filepath.Join(dir, "2026/01/01/rollout-2026-01-01T00-00-00-two.jsonl.zst"), packed(text("two", "")))
	write(t, filepath.Join(dir, "2026/01/01/rollout-2026-01-01T00-00-00-two.jsonl"), text("two", "")+text("two", ""))
	write(t, filepath.Join(dir, "2026/01/01/rollout-2026-01-01T00-00-00-sub.jsonl"), text("sub", `,"source":{"subagent":{"thread_spawn":{"parent_thread_id":"two","depth":1}}}`))
	st := openStore(t, t.TempDir())
	rep, _ := take(t, st, nil, false, dir)
	got := map[string]string{}
	for _, o := range rep.Outcomes {
		in, err := session.Stat(context.Background(), st, o.Log)
		if err != nil {
			t.Fatal(err)
		}
		got[string(o.Log)] = fmt.Sprintf("%s %s, %d turns", filepath.Base(o.Path), o.Archive, in.Turns)
	}
	want := map[string]string{
		"one": "rollout-2026-01-01T00-00-00-one.jsonl.zst , 1 turns",
		"two": "rollout-2026-01-01T00-00-00-two.jsonl , 2 turns",
		"sub": "rollout-2026-01-01T00-00-00-sub.jsonl subagent, 1 turns",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}

// TestCodexNames: a session is called what the list of names says, or its own
// file; the name of the session that a fork repeats is not its own.
func TestCodexNames(t *testing.T) {
	home := t.TempDir()
	line := func(typ, payload string) string {
		return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:00.000Z","type":%q,"payload":%s}`, typ, payload) + "\n"
	}
	hello := line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}`)
	write(t, filepath.Join(home, "sessions/2026/01/01/rollout-a.jsonl"), line("session_meta", `{"id":"a"}`)+hello)
	write(t, filepath.Join(home, "archived_sessions/rollout-b.jsonl"), line("session_meta", `{"id":"b"}`)+line("event_msg", `{"type":"thread_name_updated","thread_id":"b","thread_name":" By the file "}`)+hello)
	write(t, filepath.Join(home, "sessions/2026/01/01/rollout-c.jsonl"), line("session_meta", `{"id":"c"}`)+line("event_msg", `{"type":"thread_name_updated","thread_id":"a","thread_name":"Of another"}`)+hello)
	names := filepath.Join(home, "session_index.jsonl")
	write(t, names, `{"id":"a","thread_name":"First","updated_at":"2026-01-01T00:00:00Z"}`+"\n"+`{"id":"a","thread_name":"Second","updated_at":"2026-01-01T00:00:01Z"}`+"\n{torn")
	st := openStore(t, t.TempDir())
	m := inherit.NewMemo("")
	for _, want := range []map[session.ID]string{{"a": "Second", "b": "By the file", "c": ""}, {"a": "Third", "b": "By the file", "c": ""}} {
		_, cat := take(t, st, m, false, home)
		got := map[session.ID]string{}
		for in, err := range st.List(context.Background(), session.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			got[in.ID] = in.Title
			if in.Turns != 1 {
				t.Errorf("%s has %d turns", in.ID, in.Turns)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(cat.Problems) > 0 {
			t.Errorf("problems %v, titles (-want +got):\n%s", cat.Problems, diff)
		}
		appendTo(t, names, "\n"+`{"id":"a","thread_name":"Third","updated_at":"2026-01-01T00:00:02Z"}`)
	}
}

// TestAnswerThatGoesOn: a file is imported in the middle of an answer. The rest
// of it comes into the same log.
func TestAnswerThatGoesOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cc.jsonl")
	call := func(id string) string {
		return fmt.Sprintf(`"message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"tool_use","id":%q,"name":"Read","input":{}}]}`, id)
	}
	appendTo(t, file, cc("user", "u1", "", `"message":{"role":"user","content":"go"}`))
	appendTo(t, file, cc("assistant", "a1", "u1", call("t1")))
	st := openStore(t, t.TempDir())
	take(t, st, nil, false, file)
	appendTo(t, file, cc("assistant", "a2", "a1", call("t2")))
	rep, _ := take(t, st, nil, false, file)
	if rep.Count(inherit.Grown) != 1 {
		t.Errorf("%v, want one that has grown", states(rep))
	}
	s, err := session.Open(context.Background(), st, "cc")
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, r := range s.Branch {
		if m, ok := r.Body.(session.Message); ok {
			for _, c := range m.Calls() {
				calls = append(calls, c.ID)
			}
		}
	}
	if diff := cmp.Diff([]string{"t1", "t2"}, calls); diff != "" || len(dump(t, st)) != 1 {
		t.Errorf("%v, %d logs, calls (-want +got):\n%s", states(rep), len(dump(t, st)), diff)
	}
}
