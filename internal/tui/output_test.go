package tui

import (
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// An inline view is drawn as soon as it is offered; one that comes with the
// alternate screen, or while another program has the terminal, when Bubble Tea
// has switched.
func TestDrawnAtOnce(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	o := newOutput(w, reflowing{}, colorprofile.TrueColor)
	number := uint64(0)
	offer := func(content string, alt bool) {
		number++
		o.offer(frame{number: number, width: 20, height: 5, content: content, alt: alt})
	}
	comes := func(want string) (text string) { // reads no more than that
		t.Helper()
		for c := make([]byte, 1); !strings.HasSuffix(text, want); text += string(c) {
			if _, err := r.Read(c); err != nil {
				t.Fatalf("%q was written, want %q: %v", text, want, err)
			}
		}
		return text
	}
	offer("111", false)
	comes("111")
	offer("222", false)
	comes("222")

	offer("333", true)
	offer("444", false)
	o.flush() // as when it is time
	o.Write([]byte(ansi.SetWindowTitle("goclaw 3") + ansi.SetModeAltScreenSaveCursor + "all of it"))
	if text := comes("all of it"); strings.Contains(text, "444") {
		t.Errorf("%q: drawn before the alternate screen", text)
	}
	o.flush()
	o.Write([]byte(ansi.SetWindowTitle("goclaw 4") + ansi.ResetModeAltScreenSaveCursor))
	if text := comes("444"); !strings.Contains(text, ansi.ResetModeAltScreenSaveCursor) {
		t.Errorf("%q: drawn on the alternate screen", text)
	}
	offer("555", false)
	comes("555")

	o.Write([]byte(ansi.SetWindowTitle(""))) // the terminal is lent
	offer("666", false)
	o.flush()
	w.WriteString("the shell's")
	if text := comes("the shell's"); strings.Contains(text, "666") {
		t.Errorf("%q: drawn while another program has the terminal", text)
	}
	o.Write([]byte(ansi.SetWindowTitle("goclaw 6")))
	comes("666")
}
