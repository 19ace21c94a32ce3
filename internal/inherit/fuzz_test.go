package inherit

import (
	"bytes"
	"encoding/json"
	"testing"

	"goclaw/session"
)

// FuzzJSON5: whatever an index holds, what comes out of it is JSON, and JSON
// comes out as it was meant.
func FuzzJSON5(f *testing.F) {
	for _, s := range []string{
		`{a: 'b', /* c */ "d": [1, +2, .5, 0x10,], // e` + "\n}", `{"a":"\u00e9\n"}`, `[Infinity, -NaN, true, null]`, "'a\\\nb'", `{`, "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := fromJSON5(data)
		if err == nil && !json.Valid(out) {
			t.Errorf("%q became %q, which is no JSON", data, out)
		}
		var a, b map[string]string
		if json.Unmarshal(data, &a) == nil && (unmarshal(data, &b) != nil || len(a) != len(b)) {
			t.Errorf("%q is JSON and was read as %v", data, b)
		}
	})
}

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
		for _, form := range []string{ClaudeCode, Codex} {
			tr := &Transcript{Path: "x.jsonl", ID: "x", Program: form, form: formClaude}
			if form == Codex {
				tr.form = formCodex
			}
			var first [][]byte
			for round := range 2 {
				n := 0
				st := session.NewMemory()
				tr.scan(t.Context(), bytes.NewReader(data), position{}, nil, func(r session.Record, err error) bool {
					if err != nil {
						return true
					}
					if n == 0 {
						if _, ok := r.Body.(session.Header); !ok {
							t.Fatalf("%s begins with %T", form, r.Body)
						}
						r = tr.opened(r, "x")
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
