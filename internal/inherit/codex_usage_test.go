package inherit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/internal/codec"
	"goclaw/internal/inherit"
	"goclaw/llm"
	"goclaw/session"
)

// TestCodexUsage: what a session took is what Codex itself counted, that of rounds
// with tool calls included.
func TestCodexUsage(t *testing.T) {
	dir := filepath.Join(realPrograms(t), "codex")
	st := openStore(t, t.TempDir())
	rep, _ := take(t, st, nil, false, dir)
	compared := 0
	for _, o := range rep.Outcomes {
		if len(o.Pieces) > 0 { // what was thrown away counts, too; Codex begins again
			continue
		}
		data, err := os.ReadFile(o.Path)
		if err != nil {
			t.Fatal(err)
		}
		var want llm.Usage
		for line := range bytes.Lines(data) {
			var l struct {
				Payload struct {
					Type string
					Info *struct {
						Total struct {
							Input  int `json:"input_tokens"`
							Cached int `json:"cached_input_tokens"`
							Output int `json:"output_tokens"`
						} `json:"total_token_usage"`
					}
				}
			}
			if json.Unmarshal(line, &l) == nil && l.Payload.Type == "token_count" && l.Payload.Info != nil {
				n := l.Payload.Info.Total
				want = llm.Usage{Input: n.Input - n.Cached, CacheRead: n.Cached, Output: n.Output}
			}
		}
		in, err := session.Stat(context.Background(), st, o.Log)
		if err != nil {
			t.Fatal(err)
		}
		if compared++; in.Spent != want {
			t.Errorf("%s: spent %+v, Codex says %+v", o.Path, in.Spent, want)
		}
	}
	if compared < 8 {
		t.Errorf("%d sessions compared", compared)
	}
}

// TestReadByAnOlderVersion: a log in which an older version kept token counts as
// lines that say nothing grows with its source; it does not become another log.
func TestReadByAnOlderVersion(t *testing.T) {
	ctx := context.Background()
	src := filepath.Join(realPrograms(t), "codex/0.166.0/archived_sessions")
	st, older := openStore(t, t.TempDir()), openStore(t, t.TempDir())
	rep, _ := take(t, st, nil, false, src)
	id, path := rep.Outcomes[0].Log, rep.Outcomes[0].Path
	changed := 0
	for r, err := range st.Read(ctx, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := r.Body.(session.Usage); ok {
			_, line, _ := strings.Cut(string(r.Raw), `"codex":`)
			recs, err := codec.Native.Decode([]byte(strings.TrimSuffix(line, "}")))
			if err != nil {
				t.Fatal(err)
			}
			recs[0].Seq = r.Seq
			r = recs[0]
			changed++
		}
		if err := older.Append(ctx, id, r); err != nil {
			t.Fatal(err)
		}
	}
	if changed == 0 {
		t.Fatal("no token counts after calls")
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(`{"timestamp":"2026-11-16T00:00:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"and on"}]}}` + "\n")
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	rep, _ = take(t, older, nil, false, src)
	if o := rep.Outcomes[0]; o.State != inherit.Grown || o.Log != id || o.Records != 1 {
		t.Errorf("%s is %s, %d records", o.Log, o.State, o.Records)
	}
}
