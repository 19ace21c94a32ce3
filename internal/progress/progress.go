// Package progress shows how far something is: an import, a copy, a backup, the
// search index. On a terminal that is one line that is overwritten, with the speed and
// the time left once they are known; elsewhere a plain line now and then.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"goclaw/internal/inherit"
	"goclaw/internal/terminal"
	"goclaw/internal/text"
	"goclaw/internal/transcript"
)

// Bar shows progress: on a terminal in one line that is overwritten, elsewhere in
// a plain line now and then, for a log file.
type Bar struct {
	w io.Writer
	// Draw is called in place of writing to w: the interface has the terminal.
	Draw  func(line string)
	plain bool
	width func() int
	now   func() time.Time
	pace  pace
	said  time.Time // the last plain line
	shown bool      // there is a line to be cleared
}

// sayEvery is how often a plain line is written.
const sayEvery = 10 * time.Second

// New returns a bar on w. A dumb terminal gets lines, as a file does.
func New(w io.Writer, dumb bool) *Bar {
	b := &Bar{w: w, now: time.Now, said: time.Now(), plain: dumb || !terminal.Is(w)}
	b.width = func() int {
		if f, ok := terminal.File(w); ok {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
				return w
			}
		}
		return 80
	}
	return b
}

// Show shows the progress of an import.
func (b *Bar) Show(p inherit.Progress) {
	b.line(float64(p.Read), func(width int) string {
		rest := float64(max(p.Bytes-p.BytesDone, 0))
		return progressLine(p, b.pace.rates(rest, bytesPerSecond), width)
	})
}

// line shows that so much is done, as what text returns for the columns that
// there are; with 0 columns there is no limit.
func (b *Bar) line(done float64, text func(width int) string) {
	now := b.now()
	b.pace.at(now, done)
	switch {
	case b.Draw != nil:
		b.Draw(text(max(b.width()-6, 1)))
	case !b.plain:
		fmt.Fprint(b.w, terminal.Return()+text(b.width()-1)+terminal.Control("K"))
		b.shown = true
	case now.Sub(b.said) >= sayEvery:
		fmt.Fprintln(b.w, text(0))
		b.said = now
	}
}

// Count shows that so many things of total are done: what says which.
func (b *Bar) Count(what string, done, total int, things string) {
	b.line(float64(done), func(width int) string {
		return countLine(what, done, total, things, b.pace.rates(float64(total-done), perSecond), width)
	})
}

// bytes shows that so many bytes of total are done.
func (b *Bar) bytes(what string, done, total int64) {
	b.line(float64(done), func(width int) string {
		return bytesLine(what, done, total, b.pace.rates(float64(total-done), bytesPerSecond), width)
	})
}

// Transfer shows how many bytes of a backup are written or read, in passes.
type Transfer struct {
	bar         *Bar
	what        string
	done, total int64
	shown       time.Time
}

// NewTransfer returns a transfer that is shown on b.
func NewTransfer(b *Bar) *Transfer { return &Transfer{bar: b} }

// End clears the line.
func (t *Transfer) End() { t.bar.End() }

// Begin begins a pass over total bytes.
func (t *Transfer) Begin(what string, total int64) {
	t.what, t.done, t.total, t.shown = what, 0, total, t.bar.now()
	t.bar.pace = pace{}
	t.bar.pace.at(t.shown, 0)
}

// Add says that n more bytes are done. The line changes now and then.
func (t *Transfer) Add(n int) {
	t.done += int64(n)
	if now := t.bar.now(); now.Sub(t.shown) >= 200*time.Millisecond {
		t.shown = now
		t.bar.bytes(t.what, t.done, max(t.total, t.done))
	}
}

// Copy shows how many sessions and records are copied or compared, in passes.
type Copy struct {
	bar          *Bar
	what         string
	sessions, of int
	done, total  int // records
	shown        time.Time
}

// NewCopy returns what shows a copy on b.
func NewCopy(b *Bar) *Copy { return &Copy{bar: b} }

// End clears the line.
func (c *Copy) End() { c.bar.End() }

// Begin begins a pass over so many sessions and records.
func (c *Copy) Begin(what string, sessions, records int) {
	c.what, c.sessions, c.of, c.done, c.total, c.shown = what, 0, sessions, 0, records, c.bar.now()
	c.bar.pace = pace{}
	c.bar.pace.at(c.shown, 0)
}

// Session says that n sessions are done.
func (c *Copy) Session(n int) { c.sessions = n }

// Record says that one more record is done. The line changes now and then.
func (c *Copy) Record() {
	c.done++
	now := c.bar.now()
	if now.Sub(c.shown) < 200*time.Millisecond {
		return
	}
	c.shown = now
	c.bar.line(float64(c.done), func(width int) string {
		return copyLine(c, c.bar.pace.rates(float64(c.total-c.done), perSecond), width)
	})
}

// ImportLines returns what writes the progress of an import as lines of at most
// width columns.
func ImportLines(width int) func(inherit.Progress) string {
	var p pace
	return func(at inherit.Progress) string {
		p.at(time.Now(), float64(at.Read))
		return progressLine(at, p.rates(float64(max(at.Bytes-at.BytesDone, 0)), bytesPerSecond), width)
	}
}

// End clears the line, however what it shows has ended.
func (b *Bar) End() {
	if b.shown {
		fmt.Fprint(b.w, terminal.Return()+terminal.Control("K"))
		b.shown = false
	}
}

// progressLine shows the progress of an import in at most width columns: files,
// bytes, the speed of reading, and how long the rest takes. With a width of 0
// there is no bar, and no limit.
func progressLine(p inherit.Progress, r rates, width int) string {
	files := fmt.Sprintf("%d/%d files", p.FilesDone, p.Files)
	size := fmt.Sprintf("%s of %s", text.Bytes(p.BytesDone), text.Bytes(p.Bytes))
	share := 1.0
	if p.Bytes > 0 {
		share = min(float64(p.BytesDone)/float64(p.Bytes), 1)
	}
	plain := commas(files, size, r.speed, r.left)
	if width == 0 {
		return plain
	}
	return widest(width,
		blocks(share)+" "+plain,
		plain,
		commas(files, r.speed, r.left),
		commas(files, r.left),
		files,
		fmt.Sprintf("%d%%", int(share*100)),
	)
}

// blocks draws a share.
func blocks(share float64) string {
	const cells = 20
	full := int(share * cells)
	return strings.Repeat("█", full) + strings.Repeat("░", cells-full)
}

// commas joins what is known.
func commas(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// countLine shows how many things are done, how fast, and how long the others
// will take.
func countLine(what string, done, total int, things string, r rates, width int) string {
	count := fmt.Sprintf("%d of %d", done, total)
	short := what[strings.LastIndexByte(what, ' ')+1:] + ": "
	return widest(width,
		what+": "+commas(strings.TrimSpace(count+" "+things), r.speed, r.left),
		what+": "+commas(strings.TrimSpace(count+" "+things), r.left),
		short+commas(count, r.left),
		short+count,
		count,
	)
}

// bytesLine is countLine for bytes.
func bytesLine(what string, done, total int64, r rates, width int) string {
	size := fmt.Sprintf("%s of %s", text.Bytes(done), text.Bytes(total))
	share := min(float64(done)/float64(max(total, 1)), 1)
	plain := what + ": " + commas(size, r.speed, r.left)
	if width == 0 {
		return plain
	}
	return widest(width,
		blocks(share)+" "+plain,
		plain,
		what+": "+commas(size, r.left),
		what+": "+size,
		fmt.Sprintf("%d%%", int(share*100)),
	)
}

// copyLine shows how many sessions and records are copied or compared.
func copyLine(c *Copy, r rates, width int) string {
	count := fmt.Sprintf("%d of %s", c.done, transcript.Count(c.total, "record"))
	short := fmt.Sprintf("%d of %d", c.done, c.total)
	return widest(width,
		c.what+": "+commas(fmt.Sprintf("%d of %s", c.sessions, transcript.Count(c.of, "session")), count, r.speed, r.left),
		c.what+": "+commas(count, r.left),
		c.what+": "+short,
		short,
	)
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
