package inherit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/inherit"
	"goclaw/llm"
	"goclaw/session"
)

// taken imports one file and returns its session and what became of it.
func taken(t *testing.T, name string, text ...string) (*session.Session, inherit.Outcome) {
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
			s, o := taken(t, "cc.jsonl", test.lines...)
			if o.Program != inherit.ClaudeCode || s.Key != "claude:proj:cc" || s.ID != "cc" || s.CWD != "/home/me/proj" {
				t.Errorf("program %q, key %q, id %q, folder %q", o.Program, s.Key, s.ID, s.CWD)
			}
			if diff := cmp.Diff(test.want, lines(s, "anthropic/claude-opus-4-6")); diff != "" {
				t.Errorf("context (-want +got):\n%s", diff)
			}
		})
	}
	s, _ := taken(t, "cc.jsonl", tests["parallel calls leave results on branches"].lines...)
	if want := (llm.Usage{Input: 6, Output: 14, CacheRead: 40, CacheWrite: 20}); s.Spent != want {
		t.Errorf("spent %+v, want %+v: the usage of an answer counts once", s.Spent, want)
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
			line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`),
			line("response_item", `{"type":"reasoning","summary":[{"type":"summary_text","text":"thinking"}],"content":null,"encrypted_content":"gAAA"}`),
			line("response_item", `{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}`),
			line("event_msg", `{"type":"token_count","info":{"last_token_usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":9}}}`),
			line("response_item", `{"type":"function_call_output","call_id":"c1","output":{"content":"failed","success":false}}`),
			line("response_item", `{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch","call_id":"c2","status":"completed"}`),
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
		}, []string{"user The conversation history before this point was compacted into the following summary:\n\n<summary>\nwhat happened\n</summary>", "user go on"}},
		"before lines had a type": {[]string{
			`{"id":"cx","timestamp":"2025-07-01T00:00:00.000Z","instructions":null,"cwd":"/home/me/proj"}`,
			`{"record_type":"state"}`,
			say("user", "input_text", "hello"),
			say("assistant", "output_text", "hi"),
		}, []string{"user hello", "assistant hi"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, o := taken(t, "rollout-2026-01-01T00-00-00-cx.jsonl", test.lines...)
			if o.Program != inherit.Codex || s.ID != "cx" {
				t.Errorf("program %q, key %q, id %q", o.Program, s.Key, s.ID)
			}
			if diff := cmp.Diff(test.want, lines(s, "openai/gpt-5-codex")); diff != "" {
				t.Errorf("context (-want +got):\n%s", diff)
			}
		})
	}
	s, _ := taken(t, "rollout-cx.jsonl", tests["calls of every kind"].lines...)
	if want := (llm.Usage{Input: 60, Output: 9, CacheRead: 40}); s.Spent != want || s.ModelName() != "openai/gpt-5-codex" {
		t.Errorf("spent %+v by %s, want %+v", s.Spent, s.ModelName(), want)
	}
}

// TestAnswerThatGoesOn: a file is taken in the middle of an answer. The rest
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
