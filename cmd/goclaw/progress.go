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
	"goclaw/internal/transcript"
)

// bar shows progress: on a terminal in one line that is overwritten, elsewhere in
// a plain line now and then, for a log file.
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

// show shows the progress of an import.
func (b *bar) show(p inherit.Progress) {
	b.line(func(took time.Duration, width int) string { return progressLine(p, took, width) })
}

// line shows what text returns for the time that has passed and the columns that
// there are; with 0 columns there is no limit.
func (b *bar) line(text func(took time.Duration, width int) string) {
	now := time.Now()
	switch {
	case !b.plain:
		fmt.Fprint(b.w, terminal.Return()+text(now.Sub(b.begin), b.width()-1)+terminal.Control("K"))
		b.shown = true
	case now.Sub(b.said) >= sayEvery:
		fmt.Fprintln(b.w, text(now.Sub(b.begin), 0))
		b.said = now
	}
}

// end clears the line, however what it shows has ended.
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
	return widest(width,
		blocks+" "+plain,
		plain,
		strings.Join([]string{files, speed, left}, ", "),
		strings.Join([]string{files, left}, ", "),
		files,
		fmt.Sprintf("%d%%", int(share*100)),
	)
}

// vectorsLine shows how many vectors are made, how fast, and how long the others
// will take.
func vectorsLine(made, total int, took time.Duration, width int) string {
	count := fmt.Sprintf("%d of %d", made, total)
	speed, left := pace(made, total, took)
	return widest(width,
		fmt.Sprintf("making vectors: %s, %s, %s", count, speed, left),
		fmt.Sprintf("vectors: %s, %s", count, left),
		"vectors: "+count,
		count,
	)
}

// pace says how fast things are done, and how long the others will take.
func pace(done, total int, took time.Duration) (speed, left string) {
	rate := float64(done) / max(took.Seconds(), 0.001)
	rest := total - done
	left = fmt.Sprintf("%d left", rest)
	switch {
	case rest <= 0:
		left = "nearly done"
	case took >= time.Second && done > 0: // before, it would be a guess
		left = max(time.Duration(float64(rest)/rate*float64(time.Second)).Round(time.Second), time.Second).String() + " left"
	}
	return fmt.Sprintf("%.0f/s", rate), left
}

// copyLine shows how many sessions and records are copied or compared.
func copyLine(c *copying, took time.Duration, width int) string {
	count := fmt.Sprintf("%d of %s", c.done, transcript.Count(c.total, "record"))
	speed, left := pace(c.done, c.total, took)
	return widest(width,
		fmt.Sprintf("%s: %d of %s, %s, %s, %s", c.what, c.sessions, transcript.Count(len(c.infos), "session"), count, speed, left),
		fmt.Sprintf("%s: %s, %s", c.what, count, left),
		c.what+": "+left,
		left,
	)
}

// indexLine shows how many records are indexed.
func indexLine(done, total, width int) string {
	count := fmt.Sprintf("%d of %d", done, total)
	return widest(width, "indexing: "+count+" records", count)
}

// widest returns the first of lines that fits into width columns; 0: any does.
func widest(width int, lines ...string) string {
	for _, line := range lines {
		if width == 0 || utf8.RuneCountInString(line) <= width {
			return line
		}
	}
	return ""
}
