package paint

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
)

// all returns what e shows, with what has scrolled away, without empty lines at
// the end.
func all(e *vt.Emulator) (out []string) {
	line := func(n int, at func(x int) string) string {
		var b strings.Builder
		for x := range n {
			b.WriteString(at(x))
		}
		return strings.TrimRight(b.String(), " ")
	}
	for _, l := range e.Scrollback().Lines() {
		out = append(out, line(len(l), func(x int) string { return l[x].Content }))
	}
	for y := range e.Height() {
		out = append(out, line(e.Width(), func(x int) string {
			if c := e.CellAt(x, y); c != nil {
				return c.Content
			}
			return " "
		}))
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

func rowsOf(lines []string) (out []Row) {
	for _, l := range lines {
		out = append(out, NewRow(l))
	}
	return out
}

// TestPaint draws views of all heights and prints above them, and finds on the
// terminal every line that was printed, once and in order, and then the view.
func TestPaint(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		const width, height = 20, 8
		e := vt.NewEmulator(width, height)
		var s Sheet
		var printed, view []string
		if r.IntN(2) == 0 { // what was on the screen before
			for i := range r.IntN(2 * height) {
				printed = append(printed, fmt.Sprintf("$ shell %d", i))
			}
			if len(printed) > 0 {
				fmt.Fprint(e, strings.Join(printed, "\r\n")+"\r\n")
			}
		}
		for step := range 60 {
			var news []string
			switch r.IntN(4) {
			case 0: // what was alive is printed
				news = append(news, view[:r.IntN(len(view)+1)]...)
				view = view[len(news):]
			case 1:
				for i := range r.IntN(3 * height) {
					news = append(news, fmt.Sprintf("printed %d.%d", step, i))
				}
			}
			switch r.IntN(4) {
			case 0:
				view = nil
				for range 1 + r.IntN(height-1) {
					view = append(view, words(r, width))
				}
			case 1:
				if len(view) > 0 && len(view) < height-1 {
					i := r.IntN(len(view))
					view = append(view[:i:i], append([]string{words(r, width)}, view[i:]...)...)
				}
			case 2:
				if len(view) > 0 {
					i := r.IntN(len(view))
					view = append([]string(nil), view...)
					view[i] = words(r, width)
				}
			}
			if len(view) == 0 {
				view = []string{"> "}
			}
			y := r.IntN(len(view))
			x := r.IntN(width)
			var b strings.Builder
			s.Paint(&b, rowsOf(news), rowsOf(view), x, y, height)
			if _, err := e.WriteString(b.String()); err != nil {
				t.Fatal(err)
			}
			printed = append(printed, news...)
			var want []string
			for _, l := range append(append(want, printed...), view...) {
				want = append(want, NewRow(l).plain())
			}
			for len(want) > 0 && want[len(want)-1] == "" {
				want = want[:len(want)-1]
			}
			got := all(e)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				i := 0
				for i < min(len(got), len(want)) && got[i] == want[i] {
					i++
				}
				t.Fatalf("seed %d, step %d: after %q from line %d\ngot:\n%q\nwant:\n%q", seed, step, b.String(), i, strings.Join(got[i:], "\n"), strings.Join(want[i:], "\n"))
			}
			pos := e.CursorPosition()
			if below := height - 1 - pos.Y; pos.X != x || below < len(view)-1-y {
				t.Fatalf("seed %d, step %d: the cursor is in %v, want column %d and at least %d rows below", seed, step, pos, x, len(view)-1-y)
			}
		}
	}
}

func (r Row) plain() string {
	var b strings.Builder
	for _, c := range r.cells {
		b.WriteString(c.text)
	}
	return strings.TrimRight(b.String(), " ")
}

// words returns a line that may have styles and wide characters.
func words(r *rand.Rand, width int) string {
	all := []string{"a", "word", "\x1b[1mbold\x1b[m", "\x1b[31mred\x1b[0m", "漢字", "", "· │", "\x1b[2;38;5;3mdim\x1b[m"}
	out, n := "", 0
	for range r.IntN(6) {
		w := all[r.IntN(len(all))]
		if n += NewRow(w).wide + 1; n > width {
			break
		}
		out += w + " "
	}
	return out
}

// TestDisputedWidth draws characters that terminals do not agree on over other
// text: what follows is in its column, and the rows below are not touched. What
// the terminal makes of them is one cell, or four.
func TestDisputedWidth(t *testing.T) {
	for _, emoji := range []string{"👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "🐢"} {
		for _, taken := range []string{"#", "####"} {
			const width, height = 12, 4
			e := vt.NewEmulator(width, height)
			var s Sheet
			show := func(lines ...string) {
				var b strings.Builder
				s.Paint(&b, nil, rowsOf(lines), 0, 0, height)
				if _, err := e.WriteString(strings.ReplaceAll(b.String(), emoji, taken)); err != nil {
					t.Fatal(err)
				}
			}
			show("............", "............", "> below")
			show("ab"+emoji+"cdefgh", "abcdefghij"+emoji, "> below")
			got := all(e)
			if len(got) != 3 || got[0] != "ab"+(taken + " ")[:2]+"cdefgh" || !strings.HasPrefix(got[1], "abcdefghij#") || got[2] != "> below" {
				t.Errorf("%s as %s: the screen is %q", emoji, taken, got)
			}
		}
	}
}

// A row that was wider counts as wide on tmux, unless all of it was erased.
func TestEraseAfterAResize(t *testing.T) {
	wide := strings.Repeat("x", 30)
	for _, c := range []struct {
		first, then     string
		reflows, sticky bool
		want            string
	}{
		{wide, wide, true, false, "\r\x1b[3A\x1b[J"},
		{wide, wide, false, false, "\r\x1b[A\x1b[J"},
		{wide, "short", true, true, "\r\x1b[3A\x1b[J"},
		{wide, "short", true, false, "\r\x1b[A\x1b[J"},
		{wide, "", true, true, "\r\x1b[A\x1b[J"},
	} {
		var s Sheet
		var b strings.Builder
		s.Paint(&b, nil, rowsOf([]string{c.first, "> "}), 2, 1, 8)
		s.Paint(&b, nil, rowsOf([]string{c.then, "> "}), 2, 1, 8)
		b.Reset()
		if s.Erase(&b, 10, c.reflows, c.sticky); b.String() != c.want {
			t.Errorf("%q, then %q: %q, want %q", c.first, c.then, b.String(), c.want)
		}
	}
}
