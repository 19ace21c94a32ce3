package openai

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
	"goclaw/provider/internal/wiretest"
)

// A server that never stops talking is cut off: what is kept has a limit, and
// the answer is one that reached its length.
func TestEndlessAnswer(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 4<<10) // 64 KiB
	tests := map[string]func(i int) string{
		"text":     func(int) string { return chunk(`{"content":"`+long+`"}`, "null") },
		"thinking": func(int) string { return chunk(`{"reasoning_content":"`+long+`"}`, "null") },
		"arguments": func(int) string {
			return chunk(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"read","arguments":"`+long+`"}}]}`, "null")
		},
		"calls": func(i int) string {
			return chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"read","arguments":"{}"}}]}`, i, i), "null")
		},
		"turns": func(int) string { return chunk(content("a"), "null") + chunk(`{"reasoning_content":"b"}`, "null") },
	}
	for name, more := range tests {
		t.Run(name, func(t *testing.T) {
			srv := wiretest.Serve(t, endless(chunk(role, "null"), more))
			p, _ := provider(srv.URL)
			cut(t, p)
		})
	}
}

// cut asks p and checks that the answer is within its limit.
func cut(t *testing.T, p llm.Provider) {
	t.Helper()
	got := wiretest.Collect(t, p.Stream(t.Context(), hello))
	if got.End == nil || got.End.Stop != llm.StopLength {
		t.Fatalf("got %+v, want an answer that was cut", got.End)
	}
	n := llm.SizeOf(got.End.Message.Blocks)
	if size := n.Text + n.Thinking + n.Data; size > wire.MaxAnswer+64 || size == 0 {
		t.Errorf("%d bytes were kept, the limit is %d", size, wire.MaxAnswer)
	}
}

// endless answers with begin and then with what more returns, until the client
// leaves.
func endless(begin string, more func(i int) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, err := io.WriteString(w, begin)
		for i := 0; err == nil; i++ {
			_, err = io.WriteString(w, more(i))
		}
	}
}
