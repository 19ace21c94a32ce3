package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/internal/codec/native"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/storekit"
)

func one(t *testing.T, line string) session.Record {
	t.Helper()
	recs, err := Native.Decode([]byte(line))
	if err != nil || len(recs) != 1 {
		t.Fatalf("Decode(%s) = %d records, %v", line, len(recs), err)
	}
	if got := string(recs[0].Raw); got != line {
		t.Fatalf("Raw is %q, the line was %q", got, line)
	}
	return recs[0]
}

var day = time.Date(2026, 11, 15, 0, 32, 0, 134e6, time.UTC)

// bodies are records without Raw and their lines, one of each kind.
var bodies = []struct {
	name string
	rec  session.Record
	line string
}{
	{"header", session.Record{Time: day, Body: session.Header{
		Version: 3, ID: "s1", Key: "main:cli:user", CWD: "/p", Parent: "/x.jsonl",
		Origin: session.Origin{Program: "pi", Path: "/x.jsonl", Key: "k", ID: "s0", Seq: 7},
	}}, `{"type":"session","version":3,"id":"s1","timestamp":"2026-11-15T00:32:00.134Z","cwd":"/p","parentSession":"/x.jsonl","key":"main:cli:user","origin":{"program":"pi","path":"/x.jsonl","key":"k","id":"s0","seq":7}}`},
	{"user", rec(session.Message{Message: llm.UserText("hi <b>&\u2028 \x00"), At: day}),
		`{"type":"message","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","message":{"role":"user","content":"hi <b>&` + "\u2028" + ` \u0000","timestamp":1794702720134}}`},
	{"image", rec(session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{llm.Text{Text: "see"}, llm.Image{MIME: "image/png", Data: "iVBO"}}}}),
		`{"type":"message","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","message":{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","data":"iVBO","mimeType":"image/png"}]}}`},
	{"assistant", rec(session.Message{
		Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{
			llm.Thinking{Text: "hm", Signature: "sig"}, llm.Thinking{Signature: "x", Redacted: true}, llm.Text{Text: "yes", Signature: "ts"},
			llm.ToolCall{ID: "c1", Name: "read", Args: json.RawMessage(`{"path": "x"}`), Signature: "th"}, llm.Other{Raw: json.RawMessage(`{"type":"video","n":1.0}`)},
		}},
		API: "anthropic-messages", Provider: "anthropic", Model: "claude", Stop: llm.StopTool, Error: "late", At: day,
		Usage: llm.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4},
	}), `{"type":"message","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"sig"},{"type":"thinking","thinking":"","thinkingSignature":"x","redacted":true},{"type":"text","text":"yes","textSignature":"ts"},{"type":"toolCall","id":"c1","name":"read","arguments":{"path": "x"},"thoughtSignature":"th"},{"type":"video","n":1.0}],"api":"anthropic-messages","provider":"anthropic","model":"claude","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"toolUse","errorMessage":"late","timestamp":1794702720134}}`},
	{"tool result", rec(session.Message{
		Message: llm.Message{Role: llm.User, Blocks: []llm.Block{llm.ToolResult{CallID: "c1", Name: "read", Blocks: []llm.Block{llm.Text{Text: "ok"}}, IsError: true}}},
		Details: json.RawMessage(`{"d":1}`), Excluded: true,
	}), `{"type":"message","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"ok"}],"details":{"d":1},"isError":true,"excludeFromContext":true}}`},
	{"two tool results", rec(session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{
		llm.ToolResult{CallID: "c1", Name: "read"}, llm.ToolResult{CallID: "c2", Name: "read"}}}}),
		`{"type":"message","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","message":{"role":"user","content":[{"type":"toolResult","toolCallId":"c1","toolName":"read","content":[],"isError":false},{"type":"toolResult","toolCallId":"c2","toolName":"read","content":[],"isError":false}]}}`},
	{"system", rec(session.Message{Message: llm.Message{Role: llm.System, Blocks: []llm.Block{llm.Text{Text: "be kind"}}}}),
		`{"type":"message","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","message":{"role":"system","content":"be kind"}}`},
	{"shell", rec(session.Shell{Command: "ls", Output: "x\ty\r\n", ExitCode: ptr(0), Cancelled: true, Truncated: true, FullOutput: "/tmp/f", Excluded: true, At: day}),
		`{"type":"message","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","message":{"role":"bashExecution","command":"ls","output":"x\ty\r\n","exitCode":0,"cancelled":true,"truncated":true,"fullOutputPath":"/tmp/f","excludeFromContext":true,"timestamp":1794702720134}}`},
	{"custom message", rec(session.CustomMessage{Type: "ext", Blocks: []llm.Block{llm.Text{Text: "t"}}, Display: true, Details: json.RawMessage(`[1]`)}),
		`{"type":"custom_message","customType":"ext","content":"t","display":true,"details":[1],"id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z"}`},
	{"custom message with a time", rec(session.CustomMessage{Type: "ext", Blocks: []llm.Block{llm.Text{Text: "t"}}, At: day}),
		`{"type":"message","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","message":{"role":"custom","customType":"ext","content":"t","display":false,"timestamp":1794702720134}}`},
	{"compaction", rec(session.Compaction{Summary: "s", FirstKept: "k", TokensBefore: 9, FromCheckpoint: "c", Details: json.RawMessage(`{}`), Usage: llm.Usage{Input: 1}}),
		`{"type":"compaction","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","summary":"s","firstKeptEntryId":"k","tokensBefore":9,"details":{},"usage":{"input":1,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":1,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"fromCheckpoint":"c"}`},
	{"checkpoint", rec(session.Checkpoint{Summary: "s", Topics: []string{"t"}, Decisions: []string{"d"}, Questions: []string{"q"}, Covers: "k", Tokens: 8, Messages: 3, Model: "m", Usage: llm.Usage{Input: 5, Output: 2}}),
		`{"type":"checkpoint","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","summary":"s","topics":["t"],"decisions":["d"],"questions":["q"],"covers":"k","tokens":8,"messages":3,"model":"m","usage":{"input":5,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":7,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}`},
	{"checkpoint of unknown cost", rec(session.Checkpoint{Summary: "s", Covers: "k", Tokens: 8, Messages: 3}),
		`{"type":"checkpoint","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","summary":"s","covers":"k","tokens":8,"messages":3}`},
	{"branch summary", rec(session.BranchSummary{From: "f", Summary: "s", Details: json.RawMessage(`1`)}),
		`{"type":"branch_summary","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","fromId":"f","summary":"s","details":1}`},
	{"custom", rec(session.Custom{Type: "my", Data: json.RawMessage(`{"n":1}`)}),
		`{"type":"custom","customType":"my","data":{"n":1},"id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z"}`},
	{"notice", rec(session.Notice{Percent: 75, Text: "mind", As: "system"}),
		`{"type":"custom","customType":"goclaw.notice","data":{"percent":75,"text":"mind","as":"system"},"id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z"}`},
	{"unfold", rec(session.Undo{Target: "c"}),
		`{"type":"custom","customType":"goclaw.unfold","data":{"targetId":"c"},"id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z"}`},
	{"cost", rec(session.Message{
		Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.Text{Text: "so f"}}}, Stop: llm.StopAborted,
		Usage: llm.Usage{Input: 1000, Output: 2, Cost: llm.Cost{Input: 0.003, Output: 0.00003, Total: 0.00303}, Estimated: true},
	}), `{"type":"message","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","message":{"role":"assistant","content":[{"type":"text","text":"so f"}],"api":"","provider":"","model":"","usage":{"input":1000,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":1002,"cost":{"input":0.003,"output":0.00003,"cacheRead":0,"cacheWrite":0,"total":0.00303},"estimated":true},"stopReason":"aborted"}}`},
	{"chosen model", rec(session.ModelChange{Provider: "openai", Model: "gpt", Chosen: true}),
		`{"type":"model_change","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","provider":"openai","modelId":"gpt","chosen":true}`},
	{"model", rec(session.ModelChange{Provider: "openai", Model: "gpt"}),
		`{"type":"model_change","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","provider":"openai","modelId":"gpt"}`},
	{"thinking", rec(session.ThinkingChange{Level: "low"}),
		`{"type":"thinking_level_change","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","thinkingLevel":"low"}`},
	{"label", rec(session.Label{Target: "x", Label: "pin"}),
		`{"type":"label","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","targetId":"x","label":"pin"}`},
	{"no label", rec(session.Label{Target: "x"}),
		`{"type":"label","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","targetId":"x"}`},
	{"title", rec(session.Title{Title: "name"}),
		`{"type":"session_info","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","name":"name"}`},
	{"reset", rec(session.Reset{Reason: "new", FirstKept: "k"}),
		`{"type":"reset","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","reason":"new","firstKeptEntryId":"k"}`},
	{"leaf", rec(session.Leaf{Target: "x", AppendParent: "y"}),
		`{"type":"leaf","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","targetId":"x","appendParentId":"y"}`},
	{"edit", rec(session.Edit{Target: "x", Blocks: []llm.Block{llm.Text{Text: "cut"}}}),
		`{"type":"context_edit","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","targetId":"x","replacement":{"content":[{"type":"text","text":"cut"}]}}`},
	{"drop", rec(session.Edit{Target: "x", Drop: true}),
		`{"type":"context_edit","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","targetId":"x","replacement":null}`},
	{"root", session.Record{ID: "a", Time: day, Body: session.Title{Title: "t"}},
		`{"type":"session_info","id":"a","parentId":null,"timestamp":"2026-11-15T00:32:00.134Z","name":"t"}`},
	{"no parent", session.Record{ID: "a", Link: session.Absent, Time: day, Body: session.Title{Title: "t"}},
		`{"type":"session_info","id":"a","timestamp":"2026-11-15T00:32:00.134Z","name":"t"}`},
	{"blank parent", session.Record{ID: "a", Link: session.Blank, Time: day, Body: session.Title{Title: "t"}},
		`{"type":"session_info","id":"a","parentId":"","timestamp":"2026-11-15T00:32:00.134Z","name":"t"}`},
	{"side", session.Record{ID: "a", Parent: "p", Side: true, Time: day, Body: session.Title{Title: "t"}},
		`{"type":"session_info","id":"a","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","name":"t","appendMode":"side"}`},
}

func rec(b session.Body) session.Record {
	return session.Record{ID: "a", Parent: "p", Time: day, Body: b}
}

func ptr[T any](v T) *T { return &v }

func TestNativeLines(t *testing.T) {
	for _, c := range bodies {
		t.Run(c.name, func(t *testing.T) {
			line, err := Native.Encode(c.rec)
			if err != nil {
				t.Fatal(err)
			}
			open := strings.TrimSuffix(c.line, "}")
			sealed := fmt.Sprintf(`%s,"crc32c":"%08x"}`, open, crc32.Checksum([]byte(open), crc32.MakeTable(crc32.Castagnoli)))
			if diff := cmp.Diff(sealed, string(line)); diff != "" {
				t.Errorf("Encode (-want +got):\n%s", diff)
			}
			for _, line := range []string{c.line, sealed} { // older versions wrote no checksum
				got := one(t, line)
				got.Raw = nil
				if diff := cmp.Diff(c.rec, got); diff != "" {
					t.Errorf("Decode of %s (-want +got):\n%s", line, diff)
				}
			}
		})
	}
}

// What other programs write, and what is odd.
func TestNativeDecode(t *testing.T) {
	text := func(s string) []llm.Block { return []llm.Block{llm.Text{Text: s}} }
	msg := func(role llm.Role, blocks ...llm.Block) session.Message {
		return session.Message{Message: llm.Message{Role: role, Blocks: blocks}}
	}
	for _, c := range []struct {
		name, line string
		want       session.Record
	}{
		{"null", `null`, session.Record{Link: session.Absent, Body: session.Unknown{}}},
		{"number", ` 12 `, session.Record{Link: session.Absent, Body: session.Unknown{}}},
		{"array", `[{"type":"message"}]`, session.Record{Link: session.Absent, Body: session.Unknown{}}},
		{"no type", `{"id":"a","parentId":"p"}`, session.Record{ID: "a", Parent: "p", Body: session.Unknown{}}},
		{"unknown type", `{"type":"usage","id":"a","parentId":"p","x":1}`, session.Record{ID: "a", Parent: "p", Body: session.Unknown{Type: "usage"}}},
		{"byte order mark and CR", "\ufeff{\"type\":\"label\",\"id\":\"a\",\"targetId\":\"t\"}\r", session.Record{ID: "a", Link: session.Absent, Body: session.Label{Target: "t"}}},
		{"escaped keys", `{"ty\u0070e":"lab\u0065l","\u0069d":"\ud83d\ude00","parentId":null}`, session.Record{ID: "😀", Body: session.Label{}}},
		{"keys twice", `{"type":"label","id":"a","id":"b","type":"reset"}`, session.Record{ID: "b", Link: session.Absent, Body: session.Reset{}}},
		{"numeric id and parent", `{"type":"reset","id":5,"parentId":6}`, session.Record{Link: session.Absent, Body: session.Reset{}}},
		{"white parent", `{"type":"reset","id":"a","parentId":" "}`, session.Record{ID: "a", Link: session.Blank, Body: session.Reset{}}},
		{"lone surrogate", `{"type":"session_info","id":"a","name":"x\ud800y"}`, session.Record{ID: "a", Link: session.Absent, Body: session.Title{Title: "x\ufffdy"}}},
		{"string content", `{"type":"message","id":"a","message":{"role":"assistant","content":"s"}}`, session.Record{ID: "a", Link: session.Absent, Body: msg(llm.Assistant, text("s")...)}},
		{"string result", `{"type":"message","id":"a","message":{"role":"toolResult","toolCallId":"c","content":"s"}}`,
			session.Record{ID: "a", Link: session.Absent, Body: msg(llm.User, llm.ToolResult{CallID: "c", Blocks: text("s")})}},
		{"null content", `{"type":"message","id":"a","message":{"role":"user","content":null}}`, session.Record{ID: "a", Link: session.Absent, Body: msg(llm.User)}},
		{"numeric content, usage a string", `{"type":"message","id":"a","message":{"role":"assistant","content":7,"usage":"much"}}`, session.Record{ID: "a", Link: session.Absent, Body: msg(llm.Assistant)}},
		{"no message", `{"type":"message","id":"a","message":"m"}`, session.Record{ID: "a", Link: session.Absent, Body: session.Unknown{Type: "message"}}},
		{"unknown role", `{"type":"message","id":"a","message":{"role":"judge","content":"s"}}`,
			session.Record{ID: "a", Link: session.Absent, Body: session.Message{Message: llm.Message{Role: "judge", Blocks: text("s")}, Excluded: true}}},
		{"hook message", `{"type":"message","id":"a","message":{"role":"hookMessage","customType":"h","content":"s","display":true}}`,
			session.Record{ID: "a", Link: session.Absent, Body: session.CustomMessage{Type: "h", Blocks: text("s"), Display: true}}},
		{"odd blocks", `{"type":"message","id":"a","message":{"role":"user","content":["s",{"type":"text","text":1},{"type":"toolCall","id":"c","name":"n","arguments":"{}"}]}}`,
			session.Record{ID: "a", Link: session.Absent, Body: msg(llm.User, llm.Other{Raw: json.RawMessage(`"s"`)}, llm.Other{Raw: json.RawMessage(`{"type":"text","text":1}`)},
				llm.ToolCall{ID: "c", Name: "n", Args: json.RawMessage(`{}`)})}},
		{"checkpoint of the first GoClaw", `{"type":"checkpoint","id":"1706803200000_c1a2","parentId":"p","timestamp":"2026-11-15T00:32:00.134Z","checkpoint":{"summary":"s","tokensAtCheckpoint":50000,"messageCountAtCheckpoint":45,"topics":["t"],"openQuestions":["q"],"keyDecisions":["d"]}}`,
			session.Record{ID: "1706803200000_c1a2", Parent: "p", Time: day, Body: session.Checkpoint{Summary: "s", Topics: []string{"t"}, Decisions: []string{"d"}, Questions: []string{"q"}, Covers: "p", Tokens: 50000, Messages: 45}}},
		{"checkpoint that says nothing", `{"type":"checkpoint","id":"a","checkpoint":{}}`, session.Record{ID: "a", Link: session.Absent, Body: session.Unknown{Type: "checkpoint"}}},
		{"edit that says nothing", `{"type":"context_edit","id":"a"}`, session.Record{ID: "a", Link: session.Absent, Body: session.Unknown{Type: "context_edit"}}},
		{"notice without text", `{"type":"custom","customType":"goclaw.notice","data":{"percent":1},"id":"a"}`,
			session.Record{ID: "a", Link: session.Absent, Body: session.Custom{Type: "goclaw.notice", Data: json.RawMessage(`{"percent":1}`)}}},
		{"first header", `{"type":"session","id":"s","timestamp":"2026-11-15T00:32:00.134Z"}`, session.Record{Time: day, Body: session.Header{Version: 1, ID: "s"}}},
		{"version in a string", `{"type":"session","version":"3","id":5}`, session.Record{Body: session.Header{Version: 3}}},
		{"time in ms", `{"type":"reset","timestamp":1794702720134}`, session.Record{Link: session.Absent, Time: day, Body: session.Reset{}}},
		{"time in µs", `{"type":"reset","timestamp":"2026-11-15T01:32:00.134000+01:00"}`, session.Record{Link: session.Absent, Time: day, Body: session.Reset{}}},
		{"time without zone", `{"type":"reset","timestamp":"2026-11-15T00:32:00.134"}`, session.Record{Link: session.Absent, Time: day, Body: session.Reset{}}},
		{"time in seconds", `{"type":"reset","timestamp":"2026-11-15T00:32:00Z"}`, session.Record{Link: session.Absent, Time: day.Truncate(time.Second), Body: session.Reset{}}},
		{"leap day", `{"type":"reset","timestamp":"2028-02-29T00:00:00.000Z"}`, session.Record{Link: session.Absent, Time: time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC), Body: session.Reset{}}},
		{"no such day", `{"type":"reset","timestamp":"2026-02-30T00:00:00.000Z"}`, session.Record{Link: session.Absent, Body: session.Reset{}}},
		{"no time", `{"type":"reset","timestamp":"yesterday"}`, session.Record{Link: session.Absent, Body: session.Reset{}}},
		{"huge time", `{"type":"reset","timestamp":1e300}`, session.Record{Link: session.Absent, Body: session.Reset{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := one(t, c.line)
			if again, err := Native.Encode(got); err != nil || string(again) != c.line {
				t.Errorf("Encode = %q, %v", again, err)
			}
			got.Raw = nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNativeRefuses(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"type":"message"`, "it breaks off at byte 17"},
		{`{"type":"mess`, "it breaks off"},
		{"\x00\x00\x00", "a NUL byte at byte 0"},
		{"{\"a\":\"\x00\"}", "a NUL byte at byte 6"},
		{"{\"a\":\"x\ty\"}", "a control character in a string at byte 7"},
		{"{\"a\":\"\xe4\xbd\"}", "invalid UTF-8 at byte 6"},
		{`{"a":01}`, "no comma and no end at byte 6"},
		{`{"a":1,}`, "no key at byte 7"},
		{`{"a":1}{"b":2}`, "something after the value at byte 7"},
		{`{"a":+1}`, "not a JSON value"},
		{`{"a":nul}`, "not a JSON value"},
		{`{"a":"\x"}`, "a bad escape"},
		{`{"a":"\u12g4"}`, "a bad \\u"},
		{`{'a':1}`, "no key"},
		{`[1 2]`, "no comma"},
		{`[1}`, "no comma"},
		{strings.Repeat("[", 10001) + strings.Repeat("]", 10001), "nested too deep"},
	} {
		recs, err := Native.Decode([]byte(c.line))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Decode(%.40q) = %v, %v, want %s", c.line, recs, err, c.want)
		}
	}
	if recs, err := Native.Decode([]byte(" \r")); len(recs) != 0 || err != nil {
		t.Errorf("a blank line gives %v, %v", recs, err)
	}
	big := make([]byte, storekit.MaxRecord+1)
	if _, err := Native.Decode(big); !errors.Is(err, session.ErrTooLarge) {
		t.Errorf("a line that is too long gives %v", err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	big := strings.Repeat("x", storekit.MaxRecord)
	for _, c := range []struct {
		name string
		rec  session.Record
		want string
		is   error
	}{
		{"half a rune", session.Record{Seq: 4, ID: "a", Body: session.Title{Title: "x\xe4\xbd"}}, `record 4 ("a"): text that is not UTF-8`, nil},
		{"two lines", session.Record{Seq: 4, Raw: json.RawMessage("{}\n{}"), Body: session.Unknown{}}, "a line end in the middle", nil},
		{"unknown", session.Record{Seq: 4, Body: session.Unknown{Type: "zap"}}, `unknown kind "zap" without its line`, nil},
		{"no body", session.Record{Seq: 4}, "without a body", nil},
		{"details", rec(session.Compaction{Details: json.RawMessage(`{`)}), "not JSON", nil},
		{"year", session.Record{Time: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC), Body: session.Reset{}}, "the year 12026", nil},
		{"too large", rec(session.Title{Title: big}), "the limit is", session.ErrTooLarge},
		{"too large raw", session.Record{Raw: make(json.RawMessage, storekit.MaxRecord+1), Body: session.Unknown{}}, "the limit is", session.ErrTooLarge},
	} {
		_, err := Native.Encode(c.rec)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	line, err := Native.Encode(rec(session.Custom{Type: "t", Data: json.RawMessage("{\n \"a\": 1\n}")}))
	if err != nil || !strings.Contains(string(line), `"data":{"a":1}`) {
		t.Errorf("data on several lines gives %s, %v", line, err)
	}
}

// A decoded record shares no memory with the line.
func TestDecodeCopies(t *testing.T) {
	line := []byte(bodies[3].line)
	recs, err := Native.Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	for i := range line {
		line[i] = 'x'
	}
	recs[0].Raw = nil
	if diff := cmp.Diff(bodies[3].rec, recs[0]); diff != "" {
		t.Error(diff)
	}
}

func FuzzNative(f *testing.F) {
	for _, c := range bodies {
		f.Add([]byte(c.line))
	}
	for _, s := range []string{`null`, ` [1,-0.5e+3,"\u00e9"] `, `{"a":{"a":[[],{}]}}`, "\ufeff{}", `{"type":"message","message":{"content":[1]}}`, "{\"\xff\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		recs, err := Native.Decode(line)
		b := bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		if len(native.Trim(line)) == 0 {
			if len(recs) != 0 || err != nil {
				t.Fatalf("blank: %v, %v", recs, err)
			}
			return
		}
		if valid := json.Valid(b) && utf8.Valid(b); valid != (err == nil) {
			t.Fatalf("Decode says %v, encoding/json says %t", err, valid)
		}
		if err != nil {
			return
		}
		if len(recs) != 1 {
			t.Fatalf("%d records", len(recs))
		}
		if bytes.IndexByte(line, '\n') < 0 {
			if again, err := Native.Encode(recs[0]); err != nil || !bytes.Equal(again, line) {
				t.Fatalf("Encode = %q, %v", again, err)
			}
		}
		// The texts agree with encoding/json's.
		var v struct{ ID, ParentID string }
		var m map[string]json.RawMessage
		if json.Unmarshal(b, &m) == nil && string(bytes.TrimSpace(b)) != "null" {
			if _, header := recs[0].Body.(session.Header); !header && json.Unmarshal(m["id"], &v.ID) == nil && recs[0].ID != v.ID {
				t.Fatalf("id is %q, encoding/json says %q", recs[0].ID, v.ID)
			}
		}
		// What was understood can be written anew, and is understood again.
		r := recs[0]
		r.Raw = nil
		line, err = Native.Encode(r)
		if err != nil {
			return
		}
		again, err := Native.Decode(line)
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		again[0].Raw = nil
		if line2, err := Native.Encode(again[0]); err != nil || !bytes.Equal(line, line2) {
			t.Fatalf("%v: written %s, then %s", err, line, line2)
		}
	})
}

// genRecord draws a record of any kind that a program can make.
func genRecord(t *rapid.T) session.Record {
	text := rapid.String()
	word := rapid.StringMatching(`[a-z]{1,6}`)
	opt := rapid.OneOf(rapid.Just(""), text)
	when := rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMilli(rapid.Int64Range(1, 4e12).Draw(t, "ms")).UTC()
	})
	maybe := rapid.OneOf(rapid.Just(time.Time{}), when)
	raw := rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"a":[1,2.50,"\u00e9\ud800"]}`), json.RawMessage(`7`), json.RawMessage(`"x"`)})
	args := rapid.SampledFrom([]json.RawMessage{json.RawMessage(`{}`), json.RawMessage(`{"b": 1e400,"a":{}}`)})
	num := rapid.IntRange(0, 1<<40)
	yes := rapid.Bool()
	texts := rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfN(text, 1, 3))
	usd := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e6))
	usage := rapid.Custom(func(t *rapid.T) llm.Usage {
		u := llm.Usage{Input: num.Draw(t, "in"), Output: num.Draw(t, "out"), CacheRead: num.Draw(t, "cr"), CacheWrite: num.Draw(t, "cw"), Estimated: yes.Draw(t, "estimated")}
		u.Cost = llm.Cost{Input: usd.Draw(t, "$in"), Output: usd.Draw(t, "$out"), CacheRead: usd.Draw(t, "$cr"), CacheWrite: usd.Draw(t, "$cw"), Total: usd.Draw(t, "$")}
		return u
	})
	plain := rapid.Custom(func(t *rapid.T) llm.Block {
		switch rapid.IntRange(0, 5).Draw(t, "block") {
		case 0:
			return llm.Text{Text: text.Draw(t, "text"), Signature: opt.Draw(t, "sig")}
		case 1:
			return llm.Thinking{Text: text.Draw(t, "think"), Signature: opt.Draw(t, "sig"), Redacted: yes.Draw(t, "red")}
		case 2:
			return llm.ToolCall{ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Args: args.Draw(t, "args"), Signature: opt.Draw(t, "sig")}
		case 3:
			return llm.Image{MIME: text.Draw(t, "mime"), Data: text.Draw(t, "data")}
		}
		return llm.Other{Raw: json.RawMessage(`{"type":"x","y":[ 1 ]}`)}
	})
	blocks := rapid.OneOf(rapid.Just([]llm.Block(nil)), rapid.SliceOfN(plain, 1, 4))
	block := rapid.OneOf(plain, rapid.Custom(func(t *rapid.T) llm.Block {
		return llm.ToolResult{CallID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Blocks: blocks.Draw(t, "in"), IsError: yes.Draw(t, "err")}
	}))
	body := rapid.Custom(func(t *rapid.T) session.Body {
		switch rapid.IntRange(0, 17).Draw(t, "kind") {
		case 0:
			return session.Header{Version: rapid.IntRange(1, 5).Draw(t, "v"), ID: session.ID(text.Draw(t, "id")), Key: session.Key(text.Draw(t, "key")),
				CWD: text.Draw(t, "cwd"), Parent: opt.Draw(t, "parent"), Origin: session.Origin{Program: opt.Draw(t, "prog"), Seq: session.Seq(num.Draw(t, "seq"))}}
		case 1:
			s := session.Shell{Command: text.Draw(t, "cmd"), Output: text.Draw(t, "out"), Cancelled: yes.Draw(t, "c"), Truncated: yes.Draw(t, "t"),
				FullOutput: opt.Draw(t, "full"), Excluded: yes.Draw(t, "x"), At: maybe.Draw(t, "at")}
			if yes.Draw(t, "exited") {
				s.ExitCode = ptr(rapid.IntRange(-9, 255).Draw(t, "code"))
			}
			return s
		case 2:
			return session.Compaction{Summary: text.Draw(t, "s"), FirstKept: opt.Draw(t, "k"), TokensBefore: num.Draw(t, "n"), FromCheckpoint: opt.Draw(t, "c"), Details: raw.Draw(t, "d"), Usage: usage.Draw(t, "u")}
		case 3:
			return session.Undo{Target: text.Draw(t, "t")}
		case 4:
			return session.Checkpoint{Summary: text.Draw(t, "s"), Topics: texts.Draw(t, "t"), Decisions: texts.Draw(t, "d"), Questions: texts.Draw(t, "q"),
				Covers: text.Draw(t, "c"), Tokens: num.Draw(t, "n"), Messages: num.Draw(t, "m"), Model: opt.Draw(t, "model"), Usage: usage.Draw(t, "u")}
		case 5:
			return session.Notice{Percent: rapid.IntRange(0, 100).Draw(t, "p"), Text: text.Draw(t, "t"), As: word.Draw(t, "as")}
		case 6:
			return session.BranchSummary{From: text.Draw(t, "f"), Summary: text.Draw(t, "s"), Details: raw.Draw(t, "d")}
		case 7:
			return session.CustomMessage{Type: word.Draw(t, "t"), Blocks: blocks.Draw(t, "b"), Display: yes.Draw(t, "show"), Details: raw.Draw(t, "d"), At: maybe.Draw(t, "at")}
		case 8:
			return session.Custom{Type: word.Draw(t, "t"), Data: raw.Draw(t, "d")}
		case 9:
			return session.ModelChange{Provider: text.Draw(t, "p"), Model: text.Draw(t, "m"), Chosen: rapid.Bool().Draw(t, "chosen")}
		case 10:
			return session.ThinkingChange{Level: text.Draw(t, "l")}
		case 11:
			return session.Label{Target: text.Draw(t, "t"), Label: opt.Draw(t, "l")}
		case 12:
			return session.Title{Title: strings.TrimSpace(text.Draw(t, "t"))}
		case 13:
			return session.Reset{Reason: text.Draw(t, "r"), FirstKept: opt.Draw(t, "k")}
		case 14:
			return session.Leaf{Target: text.Draw(t, "t"), AppendParent: opt.Draw(t, "a")}
		case 15:
			if yes.Draw(t, "drop") {
				return session.Edit{Target: text.Draw(t, "t"), Drop: true}
			}
			return session.Edit{Target: text.Draw(t, "t"), Blocks: blocks.Draw(t, "b")}
		}
		m := session.Message{
			Message: llm.Message{Role: rapid.SampledFrom([]llm.Role{llm.User, llm.Assistant, llm.System}).Draw(t, "role"), Blocks: rapid.OneOf(rapid.Just([]llm.Block(nil)), rapid.SliceOfN(block, 1, 4)).Draw(t, "b")},
			At:      maybe.Draw(t, "at"), Provider: opt.Draw(t, "p"), API: opt.Draw(t, "api"), Model: opt.Draw(t, "m"), Usage: usage.Draw(t, "u"),
			Stop: llm.Stop(opt.Draw(t, "stop")), Error: opt.Draw(t, "err"), Excluded: yes.Draw(t, "x"), Details: raw.Draw(t, "d"),
		}
		return m
	})
	r := session.Record{Time: rapid.OneOf(rapid.Just(time.Time{}), when).Draw(t, "time"), Body: body.Draw(t, "body")}
	if _, header := r.Body.(session.Header); header {
		return r
	}
	r.ID, r.Side = text.Draw(t, "id"), yes.Draw(t, "side")
	if r.Link = session.Link(rapid.IntRange(0, 2).Draw(t, "link")); r.Link == session.Given {
		if r.Parent = text.Draw(t, "parent"); strings.TrimSpace(r.Parent) == "" {
			r.Parent = ""
		}
	}
	return r
}

func TestNativeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRecord(t)
		line, err := Native.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(line) {
			t.Fatalf("not JSON: %s", line)
		}
		recs, err := Native.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		got := recs[0]
		got.Raw = nil
		if diff := cmp.Diff(r, got); diff != "" {
			t.Fatalf("%s\n(-want +got):\n%s", line, diff)
		}
	})
}

// The log in the documentation is one that goclaw writes.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/design/format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "## A small log\n```\n")
	block, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("docs/design/format.md has no small log")
	}
	recs, damage := readAll(t, "format.md", []byte(block), Options{})
	if len(recs) != 4 || len(damage) > 0 {
		t.Fatalf("%d records, %v", len(recs), damage)
	}
	for i := range recs {
		recs[i].Raw = nil
	}
	if diff := cmp.Diff(block, encodeAll(t, recs)); diff != "" {
		t.Errorf("(-documented +written):\n%s", diff)
	}
}

// Native keeps memory from line to line; goroutines must not share it.
func TestNativeConcurrent(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 300 {
				c := bodies[(i+g)%len(bodies)]
				recs, err := Native.Decode([]byte(c.line))
				if err != nil {
					t.Error(err)
					return
				}
				recs[0].Raw = nil
				if !cmp.Equal(c.rec, recs[0]) {
					t.Errorf("%s: %s", c.name, cmp.Diff(c.rec, recs[0]))
					return
				}
			}
		})
	}
	wg.Wait()
}
