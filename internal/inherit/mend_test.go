package inherit_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/inherit"
	"goclaw/internal/inherit/doctor"
	"goclaw/session"
)

// programsLines are the same three messages, as programs write them. The text of
// the second one is SECOND.
var programsLines = map[string][]string{
	"pi": {header("s"), userLine("1", "", "first"), userLine("2", "1", "SECOND"), userLine("3", "2", "third")},
	"claude": {cc("user", "1", "", `"message":{"role":"user","content":"first"}`), cc("user", "2", "1", `"message":{"role":"user","content":"SECOND"}`),
		cc("user", "3", "2", `"message":{"role":"user","content":"third"}`)},
	"codex": {`{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"s","cwd":"/home/me/proj"}}`,
		codexUser("first"), codexUser("SECOND"), codexUser("third")},
}

func codexUser(text string) string {
	return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, text)
}

// examined returns what doctor says of a file, and the context of a repaired copy
// of it.
func examined(t *testing.T, file string) (findings []string, repaired []byte, context []string) {
	t.Helper()
	x, err := doctor.Examine(t.Context(), found(t, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range x.Findings {
		findings = append(findings, fmt.Sprintf("%d %s: %s", f.Line, f.What, f.Cost))
	}
	var b bytes.Buffer
	if err := doctor.Repair(t.Context(), found(t, file), &b); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again.jsonl")
	write(t, again, b.String())
	s, err := session.Replay("s", found(t, again).Records(t.Context()))
	if err != nil || len(s.Damage) > 0 {
		t.Fatalf("the copy: %v, %v", err, s.Damage)
	}
	return findings, b.Bytes(), lines(s, "")
}

// TestHalfACharacter: part of a character costs that character, and the file says
// where; the message is imported, stays as it is, and is in a repaired copy.
func TestHalfACharacter(t *testing.T) {
	for name, text := range programsLines {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "s.jsonl")
			write(t, file, strings.ReplaceAll(strings.Join(text, "\n")+"\n", "SECOND", "price: 5 \xe2\x82 each"))
			line := slices.IndexFunc(text, func(l string) bool { return strings.Contains(l, "SECOND") }) + 1
			want := []string{"user first", "user price: 5 \ufffd each", "user third"}
			st := openStore(t, t.TempDir())
			rep, _ := take(t, st, nil, false, file)
			o := rep.Outcomes[0]
			if o.Damaged != 1 || o.Damage[0].Line != line || o.Damage[0].Size != 2 || !o.Damage[0].Mended {
				t.Errorf("%d damaged: %v", o.Damaged, o.Damage)
			}
			s, err := session.Open(context.Background(), st, o.Log)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, lines(s, "")); diff != "" {
				t.Errorf("context (-want +got):\n%s", diff)
			}
			if rep, _ = take(t, st, nil, false, file); rep.Outcomes[0].State != inherit.Unchanged {
				t.Errorf("the second time it is %s", rep.Outcomes[0].State)
			}
			findings, repaired, context := examined(t, file)
			if diff := cmp.Diff(want, context); diff != "" || !utf8.Valid(repaired) {
				t.Errorf("context of the copy (-want +got):\n%s", diff)
			}
			if len(findings) != 1 || !strings.HasPrefix(findings[0], fmt.Sprintf("%d not text from byte ", line)) || !strings.Contains(findings[0], "that character is lost") {
				t.Errorf("findings: %q", findings)
			}
		})
	}
}

// TestByteOrderMark: a byte order mark costs nothing; it is named, and a repaired
// copy has none.
func TestByteOrderMark(t *testing.T) {
	for name, text := range programsLines {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "s.jsonl")
			write(t, file, "\ufeff"+strings.Join(text, "\n")+"\n")
			want := []string{"user first", "user SECOND", "user third"}
			st := openStore(t, t.TempDir())
			rep, _ := take(t, st, nil, false, file)
			o := rep.Outcomes[0]
			s, err := session.Open(context.Background(), st, o.Log)
			if err != nil || o.Damaged > 0 {
				t.Fatal(err, o.Damage)
			}
			if diff := cmp.Diff(want, lines(s, "")); diff != "" {
				t.Errorf("context (-want +got):\n%s", diff)
			}
			findings, repaired, context := examined(t, file)
			if diff := cmp.Diff(want, context); diff != "" || bytes.Contains(repaired, []byte("\ufeff")) {
				t.Errorf("context of the copy (-want +got):\n%s\n%s", diff, repaired)
			}
			if want := []string{"1 the file begins with a byte order mark: pi 1.5 refuses the file; a repaired copy has no such mark"}; !slices.Equal(findings, want) {
				t.Errorf("findings: %q", findings)
			}
		})
	}
}

// TestSilentFailure: a failed result that says nothing is a finding, whichever
// program wrote it: an API refuses it.
func TestSilentFailure(t *testing.T) {
	call := `{"type":"message","id":"2","parentId":"1","timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{}}],"stopReason":"toolUse"}}`
	result := func(content string) string {
		return `{"type":"message","id":"3","parentId":"2","timestamp":"2026-11-15T00:00:02.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":` + content + `,"isError":true}}`
	}
	ccCall := cc("assistant", "2", "1", `"message":{"id":"m","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{}}]}`)
	ccResult := func(content string) string {
		return cc("user", "3", "2", `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"`+content+`,"is_error":true}]}`)
	}
	meta := programsLines["codex"][0]
	item := func(payload string) string {
		return `{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item","payload":` + payload + `}`
	}
	for name, text := range map[string][]string{
		"pi":                  {header("s"), userLine("1", "", "go"), call, result(`[]`)},
		"pi, blank":           {header("s"), userLine("1", "", "go"), call, result(`[{"type":"text","text":" \n"}]`)},
		"pi, a string":        {header("s"), userLine("1", "", "go"), call, result(`""`)},
		"claude":              {cc("user", "1", "", `"message":{"role":"user","content":"go"}`), ccCall, ccResult(`,"content":""`)},
		"claude, no content":  {cc("user", "1", "", `"message":{"role":"user","content":"go"}`), ccCall, ccResult(``)},
		"claude, blank block": {cc("user", "1", "", `"message":{"role":"user","content":"go"}`), ccCall, ccResult(`,"content":[{"type":"text","text":""}]`)},
		"codex": {meta, codexUser("go"), item(`{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}`),
			item(`{"type":"function_call_output","call_id":"c1","output":{"content":"","success":false}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "s.jsonl")
			write(t, file, strings.Join(text, "\n")+"\n")
			findings, _, _ := examined(t, file)
			if want := fmt.Sprintf("%d the failed result of \"c1\" says nothing: ", len(text)); len(findings) != 1 || !strings.HasPrefix(findings[0], want) {
				t.Errorf("findings: %q, want %q", findings, want)
			}
		})
	}
}
