package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/inherit"
	"goclaw/internal/terminal"
)

func TestProgressLine(t *testing.T) {
	half := inherit.Progress{Files: 500, FilesDone: 120, Bytes: 1000 << 20, BytesDone: 500 << 20, Read: 250 << 20}
	known := rates{"25 MB/s", "20s left"}
	for _, test := range []struct {
		name  string
		p     inherit.Progress
		r     rates
		width int
		want  string
	}{
		{"wide", half, known, 100, "██████████░░░░░░░░░░ 120/500 files, 500.0 MB of 1000.0 MB, 25 MB/s, 20s left"},
		{"as wide as it is", half, known, 76, "██████████░░░░░░░░░░ 120/500 files, 500.0 MB of 1000.0 MB, 25 MB/s, 20s left"},
		{"no room for the bar", half, known, 75, "120/500 files, 500.0 MB of 1000.0 MB, 25 MB/s, 20s left"},
		{"nor for the size", half, known, 50, "120/500 files, 25 MB/s, 20s left"},
		{"nor for the speed", half, known, 25, "120/500 files, 20s left"},
		{"files", half, known, 20, "120/500 files"},
		{"hardly any", half, known, 5, "50%"},
		{"none", half, known, 2, ""},
		{"in a log", half, known, 0, "120/500 files, 500.0 MB of 1000.0 MB, 25 MB/s, 20s left"},
		{"too early to tell", half, rates{}, 0, "120/500 files, 500.0 MB of 1000.0 MB"},
		{"too early to tell how long", half, rates{speed: "25 MB/s"}, 0, "120/500 files, 500.0 MB of 1000.0 MB, 25 MB/s"},
		{"the end", inherit.Progress{Files: 2, FilesDone: 2, Bytes: 10 << 20, BytesDone: 10 << 20, Read: 10 << 20}, rates{"10 MB/s", "nearly done"}, 100, "████████████████████ 2/2 files, 10.0 MB of 10.0 MB, 10 MB/s, nearly done"},
		{"empty files", inherit.Progress{Files: 2}, rates{}, 100, "████████████████████ 0/2 files, 0 B of 0 B"},
	} {
		if got := progressLine(test.p, test.r, test.width); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

// clock is a time that a test moves.
type clock struct{ now time.Time }

func (c *clock) after(d time.Duration) time.Time {
	c.now = c.now.Add(d)
	return c.now
}

func TestPace(t *testing.T) {
	c := clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	var p pace
	const total = 10_000
	p.at(c.now, 0)
	if r := p.rates(total, perSecond); r != (rates{}) {
		t.Errorf("at the beginning: %q", r)
	}
	p.at(c.after(500*time.Millisecond), 50)
	if r := p.rates(total-50, perSecond); r != (rates{}) {
		t.Errorf("after half a second: %q", r)
	}
	p.at(c.after(500*time.Millisecond), 100)
	if r := p.rates(total-100, perSecond); r != (rates{speed: "100/s"}) {
		t.Errorf("after a second: %q", r)
	}
	for i := range 9 {
		p.at(c.after(time.Second), float64(200+100*i))
	}
	if r := p.rates(total-1000, perSecond); r != (rates{"100/s", "1m30s left"}) {
		t.Errorf("after 10 seconds: %q", r)
	}
	// It slows down: soon only the new rate counts, but not at once.
	p.at(c.after(time.Second), 1010)
	if rate := p.rate(); rate < 50 || rate > 99 {
		t.Errorf("a second after it slowed down: %v", rate)
	}
	for i := range 60 {
		p.at(c.after(time.Second), float64(1020+10*i))
	}
	if rate := p.rate(); rate < 10 || rate > 11 {
		t.Errorf("a minute after it slowed down: %v", rate)
	}
	// It stands still: the time left grows until nobody knows it.
	before := p.left(1000)
	p.at(c.after(10*time.Second), p.done)
	if after := p.left(1000); after <= before {
		t.Errorf("%v left before, %v after it stood still", before, after)
	}
	p.at(c.after(10*time.Hour), p.done)
	if left := p.left(1000); left != 0 {
		t.Errorf("%v left after it stood still for hours", left)
	}
	// At the end, and in the next pass.
	if r := p.rates(0, perSecond); r.left != "nearly done" {
		t.Errorf("at the end: %q", r)
	}
	p.at(c.after(time.Second), 0)
	if r := p.rates(total, perSecond); r != (rates{}) {
		t.Errorf("in the next pass: %q", r)
	}
	// Two reports at the same moment are one.
	p.at(c.now, 7)
	p.at(c.after(2*time.Second), 20)
	if rate := p.rate(); rate != 10 {
		t.Errorf("two reports at once: %v", rate)
	}
}

func TestRemaining(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Millisecond: "1s", 1500 * time.Millisecond: "2s", 59 * time.Second: "59s", 61 * time.Second: "1m00s", 128 * time.Second: "2m10s",
		11 * time.Minute: "11m", 59*time.Minute + 50*time.Second: "60m", 90*time.Minute + 4*time.Second: "1h30m",
	} {
		if got := remaining(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
	for rate, want := range map[float64]string{12 << 20: "12.0 MB/s", 2_621_440: "2.5 MB/s", 99 << 10: "99.0 KB/s"} {
		if got := bytesPerSecond(rate); got != want {
			t.Errorf("%v: got %s, want %s", rate, got, want)
		}
	}
}

// A bar on a terminal says how fast it is, and how long it takes, once it knows.
func TestBarOnATerminal(t *testing.T) {
	var out bytes.Buffer
	c := clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	b := &Bar{w: terminal.NewWriter(&out), width: func() int { return 54 }, now: func() time.Time { return c.now }}
	for i := range 4 {
		b.bytes("reading back", int64(i)*10<<20, 100<<20)
		c.after(time.Second)
	}
	b.End()
	want := "\r░░░░░░░░░░░░░░░░░░░░ reading back: 0 B of 100.0 MB\x1b[K" +
		"\rreading back: 10.0 MB of 100.0 MB, 10.0 MB/s\x1b[K" +
		"\rreading back: 20.0 MB of 100.0 MB, 10.0 MB/s, 8s left\x1b[K" +
		"\rreading back: 30.0 MB of 100.0 MB, 10.0 MB/s, 7s left\x1b[K\r\x1b[K"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

// TestBarInALog: no escapes where there is no terminal, and a line only now
// and then.
func TestBarInALog(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	b := &Bar{w: &out, plain: true, now: func() time.Time { return now }, said: now}
	p := inherit.Progress{Files: 2, Bytes: 10e6, BytesDone: 5e6, Read: 5e6}
	b.Show(p)
	if out.Len() > 0 {
		t.Errorf("at once: %q", out.String())
	}
	b.said = now.Add(-sayEvery)
	b.Show(p)
	b.Show(p)
	b.End()
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "0/2 files, ") || strings.ContainsAny(got, "\r\x1b█") {
		t.Errorf("after a while: %q", got)
	}
}

func TestCopyLine(t *testing.T) {
	c := &Copy{what: "copying", of: 300, sessions: 12, done: 40_000, total: 100_000}
	known := rates{"10000/s", "6s left"}
	for _, test := range []struct {
		r     rates
		width int
		want  string
	}{
		{known, 0, "copying: 12 of 300 sessions, 40000 of 100000 records, 10000/s, 6s left"},
		{known, 70, "copying: 12 of 300 sessions, 40000 of 100000 records, 10000/s, 6s left"},
		{known, 50, "copying: 40000 of 100000 records, 6s left"},
		{known, 26, "copying: 40000 of 100000"},
		{known, 20, "40000 of 100000"},
		{rates{}, 70, "copying: 12 of 300 sessions, 40000 of 100000 records"},
	} {
		if got := copyLine(c, test.r, test.width); got != test.want {
			t.Errorf("%q in %d columns: got %q, want %q", test.r, test.width, got, test.want)
		}
	}
}

func TestVectorsLine(t *testing.T) {
	known := rates{"400/s", "2m00s left"}
	for _, c := range []struct {
		r     rates
		width int
		want  string
	}{
		{known, 80, "making vectors: 1200 of 50000, 400/s, 2m00s left"},
		{known, 0, "making vectors: 1200 of 50000, 400/s, 2m00s left"},
		{known, 40, "vectors: 1200 of 50000, 2m00s left"},
		{known, 30, "vectors: 1200 of 50000"},
		{known, 15, "1200 of 50000"},
		{known, 5, ""},
		{rates{}, 80, "making vectors: 1200 of 50000"},
	} {
		if got := countLine("making vectors", 1200, 50_000, "", c.r, c.width); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.r, c.width, got, c.want)
		}
	}
	if got, want := countLine("indexing", 65536, 1_000_000, "records", known, 80), "indexing: 65536 of 1000000 records, 400/s, 2m00s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := countLine("indexing", 65536, 1_000_000, "records", rates{}, 25), "65536 of 1000000"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
