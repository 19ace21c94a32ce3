package inherit_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/codec"
	"goclaw/inherit"
	"goclaw/session"
)

func TestExamine(t *testing.T) {
	answer := `{"type":"message","id":"2","parentId":"1","timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{}}],"stopReason":"toolUse"}}`
	tests := map[string]struct {
		lines []string
		want  []string
	}{
		"well":           {[]string{header("s"), userLine("1", "", "a"), userLine("2", "1", "b")}, nil},
		"no header":      {[]string{userLine("1", "", "a")}, []string{"0 the file has no header"}},
		"damaged line":   {[]string{header("s"), userLine("1", "", "a"), `{"type":`, userLine("2", "1", "b")}, []string{"3 not a JSON line: it breaks off at byte 8"}},
		"dangling":       {[]string{header("s"), userLine("1", "", "a"), userLine("2", "x", "b")}, []string{`3 its parent "x" is nowhere in the file`, "0 the history is cut for a program that does not heal it"}},
		"own parent":     {[]string{header("s"), userLine("1", "1", "a")}, []string{"2 it is its own parent"}},
		"the same id":    {[]string{header("s"), userLine("1", "", "a"), userLine("1", "", "b")}, []string{`3 the id "1" is on line 2 already`}},
		"no result":      {[]string{header("s"), userLine("1", "", "a"), answer}, []string{`3 the call "c1" has no result`}},
		"folds too much": {[]string{header("s"), userLine("1", "", "a"), `{"type":"compaction","id":"2","parentId":"1","timestamp":"2026-11-15T00:00:01.000Z","summary":"s","firstKeptEntryId":"gone","tokensBefore":1}`}, []string{`3 it folds up to "gone", which is not before it`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "s.jsonl")
			if err := os.WriteFile(file, []byte(strings.Join(test.lines, "\n")+"\n"), 0o400); err != nil {
				t.Fatal(err)
			}
			cat, err := inherit.Find(context.Background(), []string{file}, inherit.Options{})
			if err != nil {
				t.Fatal(err)
			}
			x, err := inherit.Examine(context.Background(), cat.Transcripts[0])
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range x.Findings {
				got = append(got, fmt.Sprintf("%d %s", f.Line, f.What))
				if f.Cost == "" {
					t.Errorf("%v: what does it cost?", f)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRepairedReadsAlike: a healed copy of every fixture gives, read as pi
// reads it, the context that the original gives where it is healed, and has
// nothing left to find that healing can mend.
func TestRepairedReadsAlike(t *testing.T) {
	ctx := context.Background()
	cat, err := inherit.Find(ctx, []string{unpacked(t)}, inherit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cat.Close()
	n := 0
	for _, tr := range cat.Transcripts {
		var b bytes.Buffer
		if err := inherit.Repair(ctx, tr, &b); err != nil {
			t.Errorf("%s: %v", tr.Path, err)
			continue
		}
		src, err := session.Replay(tr.ID, tr.Records(ctx))
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(src.Branch, func(r session.Record) bool { _, ok := r.Body.(session.Reset); return ok }) {
			continue // pi knows no reset
		}
		n++
		want := lines(src, src.ModelName())
		for _, opts := range [][]session.Option{nil, {session.Strict()}} {
			got, err := session.Replay(tr.ID, codec.Read("", bytes.NewReader(b.Bytes()), codec.Options{}), opts...)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Damage) > 0 {
				t.Errorf("%s: the copy is damaged: %v", tr.Path, got.Damage)
			}
			if diff := cmp.Diff(want, lines(got, src.ModelName())); diff != "" {
				t.Errorf("%s (strict %v): (-original +copy):\n%s", tr.Path, opts != nil, diff)
			}
		}
	}
	if n < 100 {
		t.Errorf("%d copies compared", n)
	}
}
