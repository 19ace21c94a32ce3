package anthropic

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
	tests := map[string]struct{ block, delta string }{
		"text":      {`{"type":"text","text":""}`, `{"type":"text_delta","text":"` + long + `"}`},
		"thinking":  {`{"type":"thinking","thinking":""}`, `{"type":"thinking_delta","thinking":"` + long + `"}`},
		"signature": {`{"type":"thinking","thinking":"hm"}`, `{"type":"signature_delta","signature":"` + long + `"}`},
		"arguments": {`{"type":"tool_use","id":"c1","name":"read","input":{}}`, `{"type":"input_json_delta","partial_json":"` + long + `"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			srv := wiretest.Serve(t, endless(
				event(begin)+event(`{"type":"content_block_start","index":0,"content_block":`+tt.block+`}`),
				func(int) string { return event(`{"type":"content_block_delta","index":0,"delta":` + tt.delta + `}`) }))
			p, _ := provider(srv.URL)
			cut(t, p)
		})
	}
	t.Run("blocks", func(t *testing.T) {
		srv := wiretest.Serve(t, endless(event(begin), func(i int) string {
			return event(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"c%d","name":"read","input":{}}}`, i, i)) +
				event(fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
		}))
		p, _ := provider(srv.URL)
		cut(t, p)
	})
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
