//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tuitest

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/term"
)

// Lines that scroll away are kept once, in order; lines that are deleted or
// inserted at the top of the screen are not kept.
func TestScrollback(t *testing.T) {
	p := New(t, 20, 4)
	for i := range 10 {
		fmt.Fprintf(p.TTY, "line %d\n", i)
	}
	p.See("line 9")
	if diff := cmp.Diff([]string{"line 0", "line 1", "line 2", "line 3", "line 4", "line 5", "line 6"}, p.Scrollback()); diff != "" {
		t.Error(diff)
	}
	if got, want := p.Screen(), "line 7\nline 8\nline 9"; got != want {
		t.Errorf("the screen shows %q, want %q", got, want)
	}
	fmt.Fprint(p.TTY, "\x1b[H\x1b[2MMORE\x1b[Lend")
	p.See("end")
	if n := len(p.Scrollback()); n != 7 {
		t.Errorf("%d lines scrolled away, want 7:\n%s", n, p.Text())
	}
	fmt.Fprint(p.TTY, "\x1b[?1049h\x1b[H1\r\n2\r\n3\r\n4\r\n5\r\nalt")
	p.See("alt")
	if n := len(p.Scrollback()); n != 7 {
		t.Errorf("the alternate screen scrolls into the scrollback:\n%s", p.Text())
	}
	fmt.Fprint(p.TTY, "\x1b[?1049l")
	p.See("end\nMORE")
}

// What scrolls away and what is deleted may come at once, if the machine is slow.
func TestScrollbackAtOnce(t *testing.T) {
	p := New(t, 20, 4)
	fmt.Fprint(p.TTY, "line 0\nline 1\nline 2\nline 3\nline 4\nline 5\x1b[H\x1b[Mend")
	p.See("end")
	if got, want := p.Text(), "line 0\nline 1\nende 3\nline 4\nline 5"; got != want {
		t.Errorf("the terminal has %q, want %q", got, want)
	}
}

// A smaller terminal keeps its last lines on the screen.
func TestResize(t *testing.T) {
	p := New(t, 20, 6)
	fmt.Fprint(p.TTY, "1\n2\n3\n4\n5> ")
	p.Shows("1\n2\n3\n4\n5>", 4, 3)
	p.Drag(10, 3)
	p.Shows("1\n2\n3\n4\n5>", 2, 3)
	if diff := cmp.Diff([]string{"1", "2"}, p.Scrollback()); diff != "" {
		t.Error(diff)
	}
	if w, h, err := term.GetSize(int(p.TTY.Fd())); w != 10 || h != 3 || err != nil {
		t.Errorf("the program sees %dx%d, %v", w, h, err)
	}
}

// A frame that is half drawn is not looked at.
func TestFrames(t *testing.T) {
	p := New(t, 20, 4)
	fmt.Fprint(p.TTY, "\x1b[?2026hhalf")
	seen := make(chan string, 1)
	go p.Until(Patience, func(text string, _, _ int) bool { seen <- text; return true })
	fmt.Fprint(p.TTY, " and half\x1b[?2026l")
	p.See("half and half")
	if got := <-seen; got != "half and half" && got != "" {
		t.Errorf("seen was %q", got)
	}
}

// A program that asks its terminal something is answered.
func TestAnswers(t *testing.T) {
	p := New(t, 80, 10)
	p.Run(exec.Command("bash", "--norc", "-c", `
		stty -echo raw
		printf '\033[c\033[?2026$p\033[6n\033]11;?\033\\'
		got= end=0
		while [ $end -lt 1 ]; do IFS= read -r -N 1 c; got+=$c; [[ $got == *rgb:*/*/*[$'\a\\'] ]] && end=1; done
		printf '%s' "$got" | tr '\033\a' 'EB'; stty sane; echo over`))
	p.See("over")
	for _, want := range []string{"E[?62;1;6;22c", "E[?2026;2$y", "E[1;1R", "E]11;rgb:0000/0000/0000"} {
		if !strings.Contains(p.Screen(), want) {
			t.Errorf("no %s in the answers: %s", want, p.Screen())
		}
	}
}

// A key that is pressed when something is seen comes after the terminal's answer
// to what the program asked with it.
func TestAnswersComeFirst(t *testing.T) {
	p := New(t, 80, 10)
	if _, err := term.MakeRaw(int(p.TTY.Fd())); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		seen := fmt.Sprintf("question %d", i)
		fmt.Fprint(p.TTY, "\x1b[H"+seen+"\x1b[6n")
		p.See(seen)
		p.Press("k")
		want := fmt.Sprintf("\x1b[1;%dRk", len(seen)+1)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(p.TTY, got); err != nil || string(got) != want {
			t.Fatalf("%s: the program reads %q, %v; want %q", seen, got, err, want)
		}
	}
}
