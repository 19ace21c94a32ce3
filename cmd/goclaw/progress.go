package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"goclaw/internal/inherit"
	"goclaw/internal/terminal"
)

// bar shows the progress of an import: on a terminal in one line that is
// overwritten, elsewhere in a plain line now and then, for a log file.
type bar struct {
	w     io.Writer
	plain bool
	width func() int
	begin time.Time
	said  time.Time // the last plain line
	shown bool      // there is a line to be cleared
}

// sayEvery is how often a plain line is written.
const sayEvery = 10 * time.Second

func newBar(e *env) *bar {
	now := time.Now()
	b := &bar{w: e.err, begin: now, said: now, plain: !isTerminal(e.err) || e.getenv("TERM") == "dumb"}
	b.width = func() int {
		if f, ok := fileOf(e.err); ok {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
				return w
			}
		}
		return 80
	}
	return b
}

func (b *bar) show(p inherit.Progress) {
	now := time.Now()
	switch {
	case !b.plain:
		fmt.Fprint(b.w, terminal.Return()+progressLine(p, now.Sub(b.begin), b.width()-1)+terminal.Control("K"))
		b.shown = true
	case now.Sub(b.said) >= sayEvery:
		fmt.Fprintln(b.w, progressLine(p, now.Sub(b.begin), 0))
		b.said = now
	}
}

// end clears the line, however the import has ended.
func (b *bar) end() {
	if b.shown {
		fmt.Fprint(b.w, terminal.Return()+terminal.Control("K"))
		b.shown = false
	}
}

// progressLine shows the progress in at most width columns: files, bytes, the
// speed of reading, and what is left. With a width of 0 there is no bar, and
// no limit.
func progressLine(p inherit.Progress, took time.Duration, width int) string {
	share := 1.0
	if p.Bytes > 0 {
		share = min(float64(p.BytesDone)/float64(p.Bytes), 1)
	}
	files := fmt.Sprintf("%d/%d files", p.FilesDone, p.Files)
	size := fmt.Sprintf("%s of %s", megabytes(p.BytesDone), megabytes(p.Bytes))
	rate := float64(p.Read) / 1e6 / max(took.Seconds(), 0.001)
	speed := fmt.Sprintf("%.0f MB/s", rate)
	if rate < 10 {
		speed = fmt.Sprintf("%.1f MB/s", rate)
	}
	rest := max(p.Bytes-p.BytesDone, 0)
	left := megabytes(rest) + " left"
	if took >= time.Second && rate > 0 { // before, it would be a guess
		left = max(time.Duration(float64(rest)/rate*1000).Round(time.Second), time.Second).String() + " left"
	}
	if rest == 0 {
		left = "nearly done"
	}
	const cells = 20
	blocks := strings.Repeat("█", int(share*cells)) + strings.Repeat("░", cells-int(share*cells))
	plain := strings.Join([]string{files, size, speed, left}, ", ")
	if width == 0 {
		return plain
	}
	percent := fmt.Sprintf("%d%%", int(share*100))
	for _, line := range []string{
		blocks + " " + plain,
		plain,
		strings.Join([]string{files, speed, left}, ", "),
		strings.Join([]string{files, left}, ", "),
		files,
		percent,
	} {
		if utf8.RuneCountInString(line) <= width {
			return line
		}
	}
	return ""
}
