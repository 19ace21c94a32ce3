package editor

import (
	"strings"
	"testing"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"goclaw/internal/repl/history"
	"goclaw/internal/terminal"
)

// strange are characters that are hard to edit and to draw.
var strange = []string{"a", "b", " ", " ", "x", "é", "e\u0301", "\u0301", "文", "字", "👩‍👧", "🇩🇪", "\u200d", "\ufe0f", "\t", "/", "@", "!", "\\", "क्षि", "\u0600", "ﷺ", "\U000F0001", "\u202e", "\x1b"}

// Whatever is pressed: nothing panics, the cursor stays at the boundary of a
// character and inside of what is drawn, no line is too wide, and undo leads back
// to the text before.
func TestRandomKeys(t *testing.T) {
	names := []string{"tab", "enter", "esc", "up", "down", "left", "right", "home", "end", "backspace", "delete", "pgdown", "pgup",
		"ctrl+w", "ctrl+u", "ctrl+k", "ctrl+y", "ctrl+_", "alt+/", "alt+b", "alt+f", "alt+d", "alt+enter", "ctrl+r", "alt+backspace", "alt+<", "alt+>", "ctrl+d"}
	rapid.Check(t, func(rt *rapid.T) {
		past := &history.History{}
		past.Add("older")
		past.Add("two\nlines of 文字 text")
		o := menuOptions()
		o.History = past
		h := newHand(t, o)
		for range rapid.IntRange(1, 60).Draw(rt, "keys") {
			before, searching := h.buf.text, h.search.on
			undos := len(h.buf.undos)
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0, 1, 2:
				s := rapid.SampledFrom(strange).Draw(rt, "text")
				h.do(tea.KeyPressMsg{Code: []rune(s)[0], Text: s})
			case 3, 4:
				h.keys(rapid.SampledFrom(names).Draw(rt, "key"))
			case 5:
				s := strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(strange, "\n", "long words\n")), 0, 30).Draw(rt, "paste"), "")
				h.paste(s)
			}
			check(rt, h, rapid.IntRange(1, 90).Draw(rt, "width"), rapid.IntRange(1, 40).Draw(rt, "height"))
			if len(h.buf.undos) == undos+1 && !searching && !h.search.on {
				after := h.buf.text
				h.buf.undo()
				if h.buf.text != before {
					rt.Fatalf("undo leads to %q, the text was %q", h.buf.text, before)
				}
				h.buf.redo()
				if h.buf.text != after {
					rt.Fatalf("redo leads to %q, the text was %q", h.buf.text, after)
				}
			}
		}
	})
}

func check(t *rapid.T, h *hand, width, height int) {
	b := &h.buf
	if b.pos < 0 || b.pos > len(b.text) || b.boundary(b.pos) != b.pos {
		t.Fatalf("the cursor is at %d in %q, inside of a character", b.pos, b.text)
	}
	if !utf8.ValidString(b.text) || strings.ContainsAny(b.text, "\r\x1b\u202e") {
		t.Fatalf("the text is %q", b.text)
	}
	text, x, y := h.View(width, height)
	width = max(width, 6)
	lines := strings.Split(text, "\n")
	if y < 0 || y >= len(lines) || x < 0 || x >= width {
		t.Fatalf("the cursor is at %d,%d, outside of %d columns and %q", x, y, width, lines)
	}
	if rows := max(height/3, 1) + maxMenu; len(lines) > rows {
		t.Fatalf("%d lines are drawn, at most %d", len(lines), rows)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > width {
			t.Fatalf("a line is %d columns wide, the screen %d: %q", w, width, l)
		}
	}
	all := ""
	l := newLayout(b.text, width, &h.chips)
	for _, r := range l.rows {
		all += b.text[r.from:r.to]
		if r.hard && r.to < len(b.text) {
			all += "\n"
		}
	}
	if all != b.text {
		t.Fatalf("the rows hold %q, the text is %q", all, b.text)
	}
}

// Cleaning keeps nothing that is not shown, and needs to be done once.
func TestRandomPaste(t *testing.T) {
	piece := rapid.SampledFrom(append(strange, "\x1b[31m", "\x1b]0;t\x07", "\x1b]", "\u200b", "\ufe00", "\U000E0100", "\r", "\x9b", "\xff", "\n"))
	rapid.Check(t, func(rt *rapid.T) {
		s := strings.Join(rapid.SliceOf(piece).Draw(rt, "pasted"), "")
		got := clean(s)
		if again := clean(got); again != got {
			rt.Fatalf("%q becomes %q, and then %q", s, got, again)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return terminal.Hidden(r) || isChip(r) }); i >= 0 {
			rt.Fatalf("%q keeps %q", s, got[i:])
		}
	})
}
