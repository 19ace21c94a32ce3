package tui

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"goclaw/internal/tui/paint"
)

// frame is a view, and what is printed with it.
type frame struct {
	number        uint64
	width, height int // of the terminal that it was made for
	content       string
	x, y          int // of the cursor
	alt           bool
	print         []string
	probe         bool // the terminal is to answer when it has drawn it
}

// same reports whether f looks as g does.
func (f frame) same(g frame) bool {
	return f.content == g.content && f.x == g.x && f.y == g.y && f.alt == g.alt && f.width == g.width && f.height == g.height
}

func (f frame) title() string { return fmt.Sprintf("goclaw %d", f.number) }

// output is the terminal that Bubble Tea draws on. The alternate screen is drawn
// by Bubble Tea, which looks for something to draw at a fixed rate. What it writes
// to draw an inline view is thrown away, and the view is painted by package paint,
// together with what is printed above it: both appear at once, and what was on the
// screen already is not written again. That does not wait for Bubble Tea, whose
// rate is low so that a chat that rests costs little.
//
// The file is not embedded: it has WriteString and ReadFrom, which io would call
// in place of Write.
type output struct {
	file    *os.File
	kind    reflowing
	colours colorprofile.Profile

	mu      sync.Mutex
	offered []frame   // views that were not drawn yet
	soon    bool      // they are drawn soon
	at      time.Time // when a view was drawn last
	texts   []string  // to print, of views that Bubble Tea has drawn
	probe   bool
	last    frame // that Bubble Tea has drawn
	sheet   paint.Sheet
	drawn   bool // there is something on the sheet
	alt     bool // the alternate screen is on
	width   int  // of the terminal when the sheet was painted
	lent    bool // another program had the terminal: the sheet is to be painted again
	synced  bool // the terminal shows an update at once

	size  func() (width, height int)
	told  [2]int // the size that was told last
	rests bool   // it is known for sure
}

func newOutput(f *os.File, kind reflowing, colours colorprofile.Profile) *output {
	return &output{file: f, kind: kind, colours: colours, rests: true, size: func() (int, int) {
		w, h, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0, 0
		}
		return w, h
	}}
}

// Read, Close and Fd are the file's: with them, Bubble Tea takes it for a
// terminal.
func (o *output) Read(p []byte) (int, error) { return o.file.Read(p) }
func (o *output) Close() error               { return o.file.Close() }
func (o *output) Fd() uintptr                { return o.file.Fd() }

// Terminal returns the terminal, for programs that need it themselves.
func (o *output) Terminal() *os.File { return o.file }

// apart is the shortest time between two views that are drawn.
const apart = time.Second / 120

// offer says that f may be drawn from now on.
func (o *output) offer(f frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offered = append(o.offered, f)
	if !o.soon {
		o.soon = true
		time.AfterFunc(apart-time.Since(o.at), o.flush)
	}
}

// flush draws the inline views that were offered. Those before and after the
// alternate screen, and after another program had the terminal, are drawn when
// Bubble Tea has switched.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.soon = false
	if o.alt || o.last.alt || o.lent {
		return
	}
	var latest uint64
	for _, f := range o.offered {
		if f.alt {
			break
		}
		latest = f.number
	}
	if o.find(latest) {
		var b strings.Builder
		o.draw(&b)
		o.write([]byte(b.String()))
	}
}

// sync says that the terminal has synchronised output.
func (o *output) sync() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.synced = true
}

// rest returns what was not printed.
func (o *output) rest() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.offered {
		o.texts = append(o.texts, f.print...)
	}
	texts := o.texts
	o.offered, o.texts = nil, nil
	return texts
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, number, closes := untitled(p)
	ok := o.find(number)
	if o.alt || o.last.alt {
		return len(p), o.write(o.alternate(text))
	}
	b := &strings.Builder{}
	settings(b, text)
	switch {
	case closes: // the terminal is given back, or lent to another program
		o.sheet.Leave(b)
		b.WriteString(ansi.EraseScreenBelow)
		o.lent = true
	case ok || o.lent && len(p) > 0 && number == 0:
		o.draw(b)
	}
	return len(p), o.write([]byte(b.String()))
}

// find takes the view with a number for the last one that was drawn, and what is
// to be printed with it and with those before. It reports whether there is one.
func (o *output) find(number uint64) (ok bool) {
	for len(o.offered) > 0 && o.offered[0].number <= number {
		f := o.offered[0]
		o.texts, o.probe = append(o.texts, f.print...), o.probe || f.probe
		o.last, ok = f, true
		o.offered = o.offered[1:]
	}
	return ok
}

// alternate returns what is written of text while the alternate screen is on,
// goes on or goes off.
func (o *output) alternate(text []byte) []byte {
	on, off := []byte(ansi.SetModeAltScreenSaveCursor), []byte(ansi.ResetModeAltScreenSaveCursor)
	b := &strings.Builder{}
	if bytes.Contains(text, on) {
		if o.kind.single && !o.alt { // what is on the screen scrolls away, all of it
			o.erase(b, o.width)
			b.WriteString(strings.Repeat("\n", max(o.last.height-1, 0)))
		}
		o.alt = true
	}
	before, after, leaves := bytes.Cut(text, off)
	b.Write(before)
	if !leaves {
		return []byte(b.String())
	}
	o.alt = false
	b.Write(off)
	if o.kind.single {
		// screen keeps what is erased at once.
		b.WriteString(ansi.CursorHomePosition + strings.Repeat(ansi.EraseEntireLine+"\r\n", max(o.last.height-1, 0)) + ansi.EraseEntireLine + ansi.CursorHomePosition)
	}
	settings(b, after)
	if o.last.alt { // the terminal is given back, or lent to another program
		return []byte(b.String())
	}
	if o.width != o.last.width { // the view was broken while it was not seen
		o.erase(b, o.last.width)
	}
	o.draw(b)
	return []byte(b.String())
}

func (o *output) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := o.file.Write(p)
	return err
}

// draw writes to b what paints the last view, and prints what is to be printed.
func (o *output) draw(b *strings.Builder) {
	f := o.last
	o.at = time.Now()
	w, h := o.size()
	if moved := w > 0 && (w != f.width || h != f.height); o.drawn && (moved || !o.rests) {
		return // a view for the new size follows
	}
	if o.lent {
		o.lent = false
		o.erase(b, f.width)
	}
	var update strings.Builder
	var printed []string
	for _, t := range o.texts {
		printed = append(printed, lines(o.painted(t), f.width)...)
	}
	o.sheet.Paint(&update, rows(printed), rows(strings.Split(o.painted(f.content), "\n")), f.x, f.y, f.height)
	o.texts, o.width = nil, f.width
	const small = 100 // bytes, which a terminal shows at once anyway
	switch {
	case update.Len() < small && o.drawn:
		b.WriteString(update.String())
	case o.synced:
		b.WriteString(ansi.SetModeSynchronizedOutput + update.String() + ansi.SetModeTextCursorEnable + ansi.ResetModeSynchronizedOutput)
	default:
		b.WriteString(ansi.ResetModeTextCursorEnable + update.String() + ansi.SetModeTextCursorEnable)
	}
	o.drawn = true
	if o.probe {
		b.WriteString(ansi.RequestCursorPositionReport)
		o.probe = false
	}
}

// painted returns text in the colours that the terminal has.
func (o *output) painted(text string) string {
	if o.colours == colorprofile.TrueColor {
		return text
	}
	var b strings.Builder
	io.WriteString(&colorprofile.Writer{Forward: &b, Profile: o.colours}, text)
	return b.String()
}

func rows(lines []string) []paint.Row {
	out := make([]paint.Row, len(lines))
	for i, l := range lines {
		out[i] = paint.NewRow(l)
	}
	return out
}

// untitled takes the title of the window out of p, and returns the number of the
// view in it; 0 if there is none. closes: the renderer leaves the terminal.
func untitled(p []byte) (rest []byte, number uint64, closes bool) {
	for {
		before, after, ok := bytes.Cut(p, []byte("\x1b]2;"))
		if !ok {
			return p, number, closes
		}
		title, after, _ := bytes.Cut(after, []byte("\a"))
		if s, ok := strings.CutPrefix(string(title), "goclaw "); ok {
			number, _ = strconv.ParseUint(s, 10, 64)
		} else {
			closes = true
		}
		p = append(before[:len(before):len(before)], after...)
	}
}

// settings writes to b what text sets and asks of the terminal, and leaves out
// what it draws.
func settings(b *strings.Builder, text []byte) {
	var state byte
	for len(text) > 0 {
		seq, _, n, next := ansi.DecodeSequence(text, state, nil)
		state, text = next, text[n:]
		if len(seq) < 3 || seq[0] != '\x1b' || bytes.HasPrefix(seq, []byte("\x1b]8;")) {
			continue
		}
		switch string(seq) {
		case ansi.SetModeTextCursorEnable, ansi.ResetModeTextCursorEnable, ansi.SetModeSynchronizedOutput, ansi.ResetModeSynchronizedOutput:
			continue
		}
		if seq[1] == '[' && (seq[2] == ';' || seq[2] >= '0' && seq[2] <= '9' || seq[2] >= '@') && !bytes.ContainsRune([]byte("nctqlh"), rune(seq[len(seq)-1])) {
			continue
		}
		b.Write(seq)
	}
}
