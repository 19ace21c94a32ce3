package inherit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/codec"
	"goclaw/session"
)

func ccUser(text string) string { return fmt.Sprintf(`"message":{"role":"user","content":%q}`, text) }

func ccSays(id, text string) string {
	return fmt.Sprintf(`"message":{"id":%q,"role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":%q}],"usage":{"input_tokens":3,"output_tokens":7}}`, id, text)
}

// aside marks a line as a subagent's.
func aside(line string) string {
	return strings.Replace(line, `"isSidechain":false`, `"isSidechain":true`, 1)
}

// TestClaudeCodeTurns: what the program says in the user's name is sent, and is no
// turn of the user's.
func TestClaudeCodeTurns(t *testing.T) {
	tests := map[string]struct {
		lines []string
		want  []string
		turns int
	}{
		"a file attached by a version that did not say what it sent": {[]string{
			cc("user", "u1", "", ccUser("look at @a.txt")),
			cc("attachment", "t1", "u1", `"attachment":{"type":"file","filename":"/p/a.txt","content":{"type":"text","file":{"filePath":"/p/a.txt","content":"alpha\nbeta","startLine":4}}}`),
			cc("attachment", "t2", "t1", `"attachment":{"type":"directory","path":"/p/src","content":"main.go"}`),
			cc("attachment", "t3", "t2", `"attachment":{"type":"already_read_file","filename":"/p/b.txt","content":{"type":"text","file":{"content":"beta"}}}`),
			cc("assistant", "a1", "t3", ccSays("m1", "seen")),
		}, []string{"user look at @a.txt",
			"user <system-reminder>\nCalled the Read tool with the following input: {\"file_path\":\"/p/a.txt\"}\n</system-reminder>",
			"user <system-reminder>\nResult of calling the Read tool:\n4\talpha\n5\tbeta\n</system-reminder>",
			"user <system-reminder>\nCalled the Bash tool with the following input: {\"command\":\"ls /p/src\"}\n</system-reminder>",
			"user <system-reminder>\nResult of calling the Bash tool:\nmain.go\n</system-reminder>",
			"assistant seen"}, 1},
		"an attachment for the system": {[]string{
			cc("user", "u1", "", ccUser("go")),
			cc("attachment", "t1", "u1", `"attachment":{"type":"date"},"rendered":[{"content":"today"}],"renderedRole":"system"`),
			cc("attachment", "t9", "t1", `"attachment":{"type":"skills","path":[1],"filename":7},"rendered":"left out","renderedRole":"user","origin":"x"`),
			cc("attachment", "t2", "t9", `"attachment":{"type":"hook"},"rendered":[{"content":"the hook says"}],"renderedRole":"user"`),
		}, []string{"user go", "user the hook says"}, 1},
		"notifications": {[]string{
			cc("user", "u1", "", ccUser("go")), cc("assistant", "a1", "u1", ccSays("m1", "started")),
			cc("user", "n1", "a1", ccUser("<task-notification>\n<task-id>7</task-id></task-notification>")),
			cc("assistant", "a2", "n1", ccSays("m2", "it is done")),
			cc("user", "n2", "a2", `"origin":{"kind":"task-notification"},`+ccUser("task 8 is done")),
		}, []string{"user go", "assistant started", "user <task-notification>\n<task-id>7</task-id></task-notification>", "assistant it is done", "user task 8 is done"}, 1},
		"its own commands": {[]string{
			cc("user", "u1", "", ccUser("go")), cc("assistant", "a1", "u1", ccSays("m1", "gone")),
			cc("system", "s1", "a1", `"subtype":"local_command","content":"<command-name>/rename</command-name>"`),
			cc("system", "s2", "s1", `"subtype":"turn_duration","durationMs":3`),
		}, []string{"user go", "assistant gone", "user <command-name>/rename</command-name>"}, 1},
		"summarised from a message on": {[]string{
			cc("user", "u1", "", ccUser("one")), cc("assistant", "a1", "u1", ccSays("m1", "1")),
			cc("user", "u2", "a1", ccUser("two")), cc("assistant", "a2", "u2", ccSays("m2", "2")),
			cc("system", "b1", "", `"subtype":"compact_boundary","logicalParentUuid":"a1","compactMetadata":{"preservedSegment":{"headUuid":"u1","anchorUuid":"b1","tailUuid":"a1"}}`),
			cc("user", "s1", "b1", `"isCompactSummary":true,"summarizeMetadata":{"direction":"from"},`+ccUser("it was about two")),
			cc("user", "u3", "s1", ccUser("three")),
		}, []string{"user one", "assistant 1", "user it was about two", "user three"}, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, _ := importedFile(t, "cc.jsonl", test.lines...)
			if diff := cmp.Diff(test.want, lines(s, "anthropic/claude-opus-4-6")); diff != "" {
				t.Errorf("context (-want +got):\n%s", diff)
			}
			if s.Turns != test.turns {
				t.Errorf("%d turns, want %d", s.Turns, test.turns)
			}
		})
	}
}

// TestClaudeCodeResultAndText: other programs know results only as messages for
// themselves.
func TestClaudeCodeResultAndText(t *testing.T) {
	call := `{"type":"tool_use","id":"%s","name":"Read","input":{}}`
	s, _ := importedFile(t, "cc.jsonl",
		cc("user", "u1", "", ccUser("go")),
		cc("assistant", "a1", "u1", `"message":{"id":"m1","role":"assistant","model":"claude-opus-4-6","content":[`+fmt.Sprintf(call, "t1")+`,`+fmt.Sprintf(call, "t2")+`]}`),
		cc("user", "r1", "a1", `"message":{"role":"user","content":[{"type":"text","text":"and be quick"},{"type":"tool_result","tool_use_id":"t1","content":"one"},{"type":"tool_result","tool_use_id":"t2","content":"two"}]}`),
		cc("assistant", "a2", "r1", ccSays("m2", "done")),
	)
	want := []string{"user go", "call t1 Read {}", "call t2 Read {}", "result t1 false one", "result t2 false two", "user and be quick", "assistant done"}
	if diff := cmp.Diff(want, lines(s, "anthropic/claude-opus-4-6")); diff != "" {
		t.Errorf("context (-want +got):\n%s", diff)
	}
	var roles []string
	for _, r := range s.Branch {
		line, err := codec.Native.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		var l struct{ Message struct{ Role string } }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		roles = append(roles, r.ID+" "+l.Message.Role)
	}
	if diff := cmp.Diff([]string{"u1 user", "a1 assistant", "r1 toolResult", "r1.2 toolResult", "r1.3 user", "a2 assistant"}, roles); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestClaudeCodeSubagents: a subagent has the title of its task and, if it is a
// fork, the past of its session. One that only warms up is left out.
func TestClaudeCodeSubagents(t *testing.T) {
	const id = "0b5cf0ea-8a0e-4e0f-9d4b-5a2f8a6f0001"
	dir := filepath.Join(t.TempDir(), "-home-me-proj")
	file := func(name string, lines ...string) { write(t, filepath.Join(dir, name), strings.Join(lines, "\n")+"\n") }
	file(id+".jsonl",
		cc("user", "u1", "", ccUser("one")), cc("assistant", "a1", "u1", ccSays("m1", "1")),
		cc("user", "u2", "a1", ccUser("a question that was taken back")),
		cc("user", "u3", "a1", ccUser("two")),
		cc("assistant", "a3", "u3", `"message":{"id":"m3","role":"assistant","model":"claude-opus-4-6","content":[{"type":"tool_use","id":"t1","name":"Agent","input":{}}]}`),
		cc("user", "r3", "a3", `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"sub done"}]}`))
	file(id+"/subagents/agent-fork.jsonl",
		`{"type":"fork-context-ref","agentId":"fork","parentSessionId":"`+id+`","parentLastUuid":"a3","contextLength":4}`,
		aside(cc("user", "x1", "", `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"forked"},{"type":"text","text":"look around"}]}`)),
		aside(cc("assistant", "x2", "x1", ccSays("m9", "looked"))))
	file(id+"/subagents/agent-fork.meta.json", `{"agentType":"fork","description":"Look around"}`)
	file(id+"/subagents/agent-lost.jsonl",
		`{"type":"fork-context-ref","agentId":"lost","parentSessionId":"gone","parentLastUuid":"a3","contextLength":4}`,
		aside(cc("user", "y1", "", ccUser("alone"))))
	file("agent-warm.jsonl", aside(cc("user", "w1", "", ccUser("Warmup"))), aside(cc("assistant", "w2", "w1", ccSays("m8", "ready"))))
	file("agent-warm2.jsonl", aside(cc("user", "w1", "", `"message": {"role": "user", "content": [{"type": "text", "text": "Warmup"}]}`)), aside(cc("assistant", "w2", "w1", ccSays("m8", "ready"))))
	file("agent-real.jsonl", aside(cc("user", "w1", "", ccUser("Warmup"))), aside(cc("user", "z1", "", ccUser("a task"))))
	st := openStore(t, t.TempDir())
	rep, cat := take(t, st, nil, false, dir)
	got := map[string][]string{}
	for _, o := range rep.Outcomes {
		s, err := session.Open(context.Background(), st, o.Log)
		if err != nil {
			t.Fatal(err)
		}
		got[fmt.Sprintf("%s %q %s", s.ID, s.Title, s.Origin.Mark)] = lines(s, "anthropic/claude-opus-4-6")
	}
	want := map[string][]string{
		id + ` "" `:                         {"user one", "assistant 1", "user two", "call t1 Agent {}", "result t1 false sub done"},
		`agent-fork "Look around" subagent`: {"user one", "assistant 1", "user two", "call t1 Agent {}", "result t1 false forked", "user look around", "assistant looked"},
		`agent-lost "" subagent`:            {"user alone"},
		`agent-real "" subagent`:            {"user a task"},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(cat.Problems) > 0 {
		t.Errorf("problems %v, sessions (-want +got):\n%s", cat.Problems, diff)
	}
	in, err := session.Stat(context.Background(), st, "agent-fork")
	if err != nil || in.Spent.Output != 7 {
		t.Errorf("the fork has spent %+v, want only its own (%v)", in.Spent, err)
	}
	again, _ := take(t, st, nil, false, dir)
	if n := again.Records(); n != 0 {
		t.Errorf("%d records imported again", n)
	}
}
