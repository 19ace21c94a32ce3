package inherit

import (
	"bytes"
	"testing"

	"goclaw/internal/inherit/claude"
	"goclaw/internal/inherit/codex"
	"goclaw/internal/inherit/source"
	"goclaw/session"
	"goclaw/store/memory"
)

// FuzzForeign: no line of another program stops its reader, every record can
// be written, and reading twice gives the same.
func FuzzForeign(f *testing.F) {
	f.Add([]byte(`{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"x"}}` + "\n" +
		`{"type":"assistant","uuid":"a","parentUuid":"u","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}}`))
	f.Add([]byte(`{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"x","cwd":"/w"}}` + "\n" +
		`{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"function_call","name":"n","arguments":"{","call_id":"c"}}`))
	f.Add([]byte(`{"type":"summary","summary":"t","leafUuid":"s"}` + "\n" + `{"type":"user","uuid":"u","message":{"content":"x"}}` + "\n" +
		`{"type":"system","subtype":"compact_boundary","uuid":"b","compactMetadata":{"preservedSegment":{"headUuid":"u","tailUuid":"u"},"preservedMessages":{"uuids":["u"]}}}` + "\n" +
		`{"type":"user","uuid":"s","parentUuid":"b","isCompactSummary":true,"message":{"content":"sum"}}` + "\n" +
		`{"type":"attachment","uuid":"q","parentUuid":"u","attachment":{"type":"queued_command","prompt":"p","commandMode":"prompt"}}`))
	f.Add([]byte(`{"id":"x","timestamp":"t"}` + "\n" + `{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}` + "\n" +
		`{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}` + "\n" + `{"type":"event_msg","payload":{"type":"thread_name_updated","thread_name":"n"}}` + "\n" +
		`{"type":"compacted","payload":{"message":"m","replacement_history":[{"type":"message","role":"user","content":"a"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, src := range []source.Source{claude.New(), codex.New()} {
			form := src.Program()
			found, err := src.Open(&source.File{Path: "x.jsonl", ID: "x", Forced: true, Problem: func(Problem) {}})
			if err != nil || len(found) != 1 {
				t.Fatalf("%s: %d transcripts, %v", form, len(found), err)
			}
			tr := found[0]
			var first [][]byte
			for round := range 2 {
				n := 0
				st := memory.New()
				tr.Scan(t.Context(), bytes.NewReader(data), source.Position{}, nil, func(r session.Record, err error) bool {
					if err != nil {
						return true
					}
					if n == 0 {
						if _, ok := r.Body.(session.Header); !ok {
							t.Fatalf("%s begins with %T", form, r.Body)
						}
						r = tr.Opened(r, "x")
					}
					r.Seq = session.Seq(n + 1)
					if err := st.Append(t.Context(), "x", r); err != nil {
						t.Fatalf("%s: record %d cannot be kept: %v", form, n+1, err)
					}
					if round == 0 {
						first = append(first, r.Raw)
					} else if n >= len(first) || !bytes.Equal(first[n], r.Raw) {
						t.Fatalf("%s: record %d differs when it is read again", form, n+1)
					}
					n++
					return true
				})
			}
		}
	})
}
