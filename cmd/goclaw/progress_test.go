package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"goclaw/internal/inherit"
	"goclaw/session"
)

func TestProgressLine(t *testing.T) {
	half := inherit.Progress{Files: 500, FilesDone: 120, Bytes: 1000e6, BytesDone: 500e6, Read: 250e6}
	tests := []struct {
		name  string
		p     inherit.Progress
		took  time.Duration
		width int
		want  string
	}{
		{"wide", half, 10 * time.Second, 100, "██████████░░░░░░░░░░ 120/500 files, 500.0 MB of 1000.0 MB, 25 MB/s, 20s left"},
		{"as wide as it is", half, 10 * time.Second, 76, "██████████░░░░░░░░░░ 120/500 files, 500.0 MB of 1000.0 MB, 25 MB/s, 20s left"},
		{"no room for the bar", half, 10 * time.Second, 75, "120/500 files, 500.0 MB of 1000.0 MB, 25 MB/s, 20s left"},
		{"nor for the size", half, 10 * time.Second, 50, "120/500 files, 25 MB/s, 20s left"},
		{"nor for the speed", half, 10 * time.Second, 25, "120/500 files, 20s left"},
		{"files", half, 10 * time.Second, 20, "120/500 files"},
		{"hardly any", half, 10 * time.Second, 5, "50%"},
		{"none", half, 10 * time.Second, 2, ""},
		{"in a log", half, 10 * time.Second, 0, "120/500 files, 500.0 MB of 1000.0 MB, 25 MB/s, 20s left"},
		{"too early to tell", half, 500 * time.Millisecond, 0, "120/500 files, 500.0 MB of 1000.0 MB, 500 MB/s, 500.0 MB left"},
		{"nothing read yet", inherit.Progress{Files: 1, Bytes: 2e6}, 5 * time.Second, 0, "0/1 files, 0 bytes of 2.0 MB, 0.0 MB/s, 2.0 MB left"},
		{"slow", inherit.Progress{Files: 2, FilesDone: 1, Bytes: 10e6, BytesDone: 5e6, Read: 5e6}, 2 * time.Second, 0, "1/2 files, 5.0 MB of 10.0 MB, 2.5 MB/s, 2s left"},
		{"minutes", inherit.Progress{Files: 2, Bytes: 10e9, BytesDone: 1e9, Read: 1e9}, 40 * time.Second, 0, "0/2 files, 1000.0 MB of 10000.0 MB, 25 MB/s, 6m0s left"},
		{"the end", inherit.Progress{Files: 2, FilesDone: 2, Bytes: 10e6, BytesDone: 10e6, Read: 10e6}, time.Second, 100, "████████████████████ 2/2 files, 10.0 MB of 10.0 MB, 10 MB/s, nearly done"},
		{"empty files", inherit.Progress{Files: 2}, 0, 100, "████████████████████ 0/2 files, 0 bytes of 0 bytes, 0.0 MB/s, nearly done"},
	}
	for _, test := range tests {
		if got := progressLine(test.p, test.took, test.width); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

// TestBarInALog: no escapes where there is no terminal, and a line only now
// and then.
func TestBarInALog(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	b := &bar{w: &out, plain: true, begin: now, said: now}
	p := inherit.Progress{Files: 2, Bytes: 10e6, BytesDone: 5e6, Read: 5e6}
	b.show(p)
	if out.Len() > 0 {
		t.Errorf("at once: %q", out.String())
	}
	b.said = now.Add(-sayEvery)
	b.show(p)
	b.show(p)
	b.end()
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "0/2 files, ") || strings.ContainsAny(got, "\r\x1b█") {
		t.Errorf("after a while: %q", got)
	}
}

func TestCopyLine(t *testing.T) {
	c := &copying{what: "copying", infos: make([]session.Info, 300), sessions: 12, done: 40_000, total: 100_000}
	for _, test := range []struct {
		took  time.Duration
		width int
		want  string
	}{
		{4 * time.Second, 0, "copying: 12 of 300 sessions, 40000 of 100000 records, 10000/s, 6s left"},
		{4 * time.Second, 70, "copying: 12 of 300 sessions, 40000 of 100000 records, 10000/s, 6s left"},
		{4 * time.Second, 50, "copying: 40000 of 100000 records, 6s left"},
		{4 * time.Second, 20, "copying: 6s left"},
		{4 * time.Second, 10, "6s left"},
		{100 * time.Millisecond, 20, "copying: 60000 left"},
	} {
		if got := copyLine(c, test.took, test.width); got != test.want {
			t.Errorf("after %v in %d columns: got %q, want %q", test.took, test.width, got, test.want)
		}
	}
}
