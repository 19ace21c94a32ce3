package tui

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
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

// output is the terminal that Bubble Tea draws on. What is printed above a view
// is added to the very write that draws the view, so that both appear at once
// and neither is ever on the screen without the other.
//
// The file is not embedded: it has WriteString and ReadFrom, which io would call
// in place of Write.
type output struct {
	file *os.File
	kind reflowing

	// colours are those that the terminal has.
	colours colorprofile.Profile

	mu    sync.Mutex
	offed []frame  // views that were offered and not drawn yet
	texts []string // to print, of views that were drawn
	probe bool
	drawn frame // what is on the screen
	wide  []int // the columns that its rows take
	// thought is what the renderer takes for drawn: views that were made for
	// another size of the terminal are not written.
	thought frame
	size    func() (width, height int)
	told    [2]int // the size that was told last
	rests   bool   // it is known for sure
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

// offer says that f may be drawn from now on.
func (o *output) offer(f frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offed = append(o.offed, f)
}

// rest returns what was not printed.
func (o *output) rest() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.offed {
		o.texts = append(o.texts, f.print...)
	}
	texts := o.texts
	o.offed, o.texts = nil, nil
	return texts
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, number, closes := untitled(p)
	if closes { // the terminal is lent to another program, or given back
		o.thought.x, o.thought.y = 0, strings.Count(o.thought.content, "\n")
	}
	f, ok := o.find(number)
	if !ok {
		return len(p), o.write(text)
	}
	before := o.thought
	o.thought = f
	w, h := o.size()
	if moved := w > 0 && (w != f.width || h != f.height); (moved || !o.rests) && !modal(text) && o.drawn.number > 0 {
		return len(p), nil // a view for the new size follows
	}
	o.drew(f)
	// The renderer takes a cursor below a view that has become shorter to be in
	// its last row.
	if up := before.y - strings.Count(f.content, "\n"); up > 0 && before.number > 0 && !before.alt && !f.alt {
		text = append([]byte(ansi.CursorUp(up)), text...)
	}
	if len(o.texts) > 0 && !f.alt {
		text = o.printed(text, f)
		o.texts = nil
	}
	if o.probe {
		text, o.probe = append(text[:len(text):len(text)], ansi.RequestCursorPositionReport...), false
	}
	return len(p), o.write(text)
}

func (o *output) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := o.file.Write(p)
	return err
}

// find returns the view with a number, and takes what is to be printed with it
// and with those before.
func (o *output) find(number uint64) (f frame, ok bool) {
	for len(o.offed) > 0 && o.offed[0].number <= number {
		f, ok = o.offed[0], true
		o.texts, o.probe = append(o.texts, f.print...), o.probe || f.probe
		o.offed = o.offed[1:]
	}
	return f, ok
}

// printed adds to text, which draws f, what prints o.texts: before the marks
// that end an update.
func (o *output) printed(text []byte, f frame) []byte {
	var all []string
	for _, t := range o.texts {
		var b strings.Builder
		io.WriteString(&colorprofile.Writer{Forward: &b, Profile: o.colours}, t)
		all = append(all, lines(b.String(), f.width)...)
	}
	end := 0
	for _, mark := range []string{ansi.ResetModeSynchronizedOutput, ansi.SetModeTextCursorEnable} {
		if bytes.HasSuffix(text[:len(text)-end], []byte(mark)) {
			end += len(mark)
		}
	}
	var b strings.Builder
	b.Write(text[:len(text)-end])
	insert(&b, all, f.height, strings.Count(f.content, "\n")+1, f.x, f.y)
	b.Write(text[len(text)-end:])
	return []byte(b.String())
}

// untitled takes the title of the window out of p, and returns the number of the
// view in it; 0 if there is none. closes: the renderer leaves the terminal, with
// the cursor at the bottom of the view.
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

// modal reports whether text changes a mode of the terminal. Such a text is
// written in any case.
func modal(text []byte) bool {
	for {
		_, after, ok := bytes.Cut(text, []byte("\x1b[?"))
		if !ok {
			return false
		}
		if !bytes.HasPrefix(after, []byte("25")) && !bytes.HasPrefix(after, []byte("2026")) {
			return true
		}
		text = after
	}
}
