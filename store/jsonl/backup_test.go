package jsonl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// The pieces of a store that others write to are logs between two appends, with
// at least what was acknowledged before.
func TestPiecesWhileWriting(t *testing.T) {
	st := reopen(t, t.TempDir(), OpenClaw)
	ctx, stop := context.WithCancel(t.Context())
	var acked [3]atomic.Int64
	var writers sync.WaitGroup
	for i := range acked {
		id := session.ID(fmt.Sprint("s", i))
		must(t, st.Append(t.Context(), id, session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id, Key: session.Key("main:cli:" + id), Version: session.Version}}))
		acked[i].Store(1)
		writers.Go(func() {
			for n := int64(1); ctx.Err() == nil; n += 2 {
				var recs []session.Record
				for k := n + 1; k <= n+2; k++ { // a batch
					r := session.Record{Seq: session.Seq(k), ID: fmt.Sprintf("e%06d", k), Link: session.Given, Time: sessiontest.Start, Body: sessiontest.User("more")}
					if k > 2 {
						r.Parent = fmt.Sprintf("e%06d", k-1)
					}
					recs = append(recs, r)
				}
				must(t, st.Append(context.Background(), id, recs...))
				acked[i].Store(n + 2)
			}
		})
	}
	must(t, st.Append(t.Context(), "old", session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: "old", Key: "main:cli:old", Version: session.Version}}))
	must(t, st.Delete(t.Context(), "old"))
	for range 20 {
		var before [len(acked)]int64
		for i := range acked {
			before[i] = acked[i].Load()
		}
		logs, trashed := 0, 0
		for p, err := range Pieces(t.Context(), st) {
			must(t, err)
			b, err := io.ReadAll(p)
			must(t, err)
			if p.Info.Records == 0 {
				continue // a sessions.json
			}
			logs++
			if !p.Info.Trashed.IsZero() {
				trashed++
				continue
			}
			var i int
			fmt.Sscanf(string(p.Info.ID), "s%d", &i)
			lines := bytes.Count(b, []byte("\n"))
			if lines != p.Info.Records || int64(lines) < before[i] || lines%2 != 1 || !bytes.HasSuffix(b, []byte("\n")) {
				t.Errorf("%s has %d lines and %d records, %d were acknowledged before", p.Path, lines, p.Info.Records, before[i])
			}
		}
		if logs != len(acked)+1 || trashed != 1 {
			t.Errorf("%d logs, %d of them in the trash", logs, trashed)
		}
	}
	stop()
	writers.Wait()
}

// Replace moves a store aside, and a process that has it open writes nothing
// more.
func TestReplace(t *testing.T) {
	base := t.TempDir()
	dir, from, aside := filepath.Join(base, "store"), filepath.Join(base, "new"), filepath.Join(base, "aside")
	recs := sessiontest.Log(sessiontest.User("one"), sessiontest.Answer("two"))
	for _, d := range []string{dir, from} {
		st := reopen(t, d, OpenClaw)
		must(t, st.Append(t.Context(), "s1", recs[:2]...))
		if d == from {
			must(t, st.Close())
		}
	}
	open := reopen(t, dir, OpenClaw)
	if was, err := Replace(dir, from, aside); !was || err != nil {
		t.Fatalf("replaced: %v, %v", was, err)
	}
	if err := open.Append(t.Context(), "s1", recs[2]); err == nil {
		t.Error("the store that was replaced was appended to")
	}
	if got, _ := readAll(t, reopen(t, aside, OpenClaw), "s1"); idsOf(got) != idsOf(recs[:2]) {
		t.Errorf("moved aside, the log is %s", idsOf(got))
	}
	must(t, reopen(t, dir, OpenClaw).Append(t.Context(), "s1", recs[2]))
	must(t, os.RemoveAll(from))
	if _, err := Replace(dir, from, aside+"2"); err == nil {
		t.Error("a store was replaced by nothing")
	}
	if got, _ := readAll(t, reopen(t, dir, OpenClaw), "s1"); idsOf(got) != idsOf(recs) {
		t.Errorf("put back, the log is %s", idsOf(got))
	}
}
