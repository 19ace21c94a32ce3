package pick

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/terminal"
)

// field is a line that is typed. The zero value is empty.
type field struct {
	text []string // character by character, as people count them
	at   int      // the cursor stands before this one
}

func newField(s string) field {
	f := field{}
	f.insert(s)
	return f
}

func (f *field) String() string { return strings.Join(f.text, "") }

// insert types s, without what cannot be shown in a line.
func (f *field) insert(s string) {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case terminal.Hidden(r):
			return -1
		}
		return r
	}, s)
	after := strings.Join(f.text[f.at:], "")
	f.text = graphemes(strings.Join(f.text[:f.at], "") + s)
	f.at = len(f.text)
	f.text = graphemes(f.String() + after)
	f.at = min(f.at, len(f.text))
}

func graphemes(s string) (out []string) {
	for _, c := range characters(s) {
		out = append(out, c)
	}
	return out
}

// update handles a key or a paste. changed: the text is another.
func (f *field) update(msg tea.Msg) (changed bool) {
	before := f.String()
	switch msg := msg.(type) {
	case tea.PasteMsg:
		f.insert(msg.Content)
	case tea.KeyPressMsg:
		f.key(msg)
	}
	return f.String() != before
}

func (f *field) key(k tea.KeyPressMsg) {
	switch k.String() {
	case "left", "ctrl+b":
		f.at = max(f.at-1, 0)
	case "right":
		f.at = min(f.at+1, len(f.text))
	case "ctrl+a":
		f.at = 0
	case "ctrl+e":
		f.at = len(f.text)
	case "backspace", "ctrl+h":
		f.remove(f.at - 1)
	case "delete", "ctrl+d":
		f.remove(f.at)
		f.at = min(f.at, len(f.text))
	case "ctrl+u":
		f.text, f.at = f.text[f.at:], 0
	case "ctrl+k":
		f.text = f.text[:f.at]
	case "ctrl+w", "alt+backspace":
		for f.at > 0 && f.text[f.at-1] == " " {
			f.remove(f.at - 1)
		}
		for f.at > 0 && f.text[f.at-1] != " " {
			f.remove(f.at - 1)
		}
	default:
		f.insert(k.Text)
	}
}

func (f *field) remove(i int) {
	if i < 0 || i >= len(f.text) {
		return
	}
	f.text = append(append([]string{}, f.text[:i]...), f.text[i+1:]...)
	if f.at > i {
		f.at--
	}
}

// view shows the field after prompt in at most w columns, and where the cursor
// is. Without text it shows what can be typed.
func (f *field) view(prompt, empty string, w int) (line string, x int) {
	x = displaywidth.String(prompt)
	room := max(w-x-1, 1)
	if len(f.text) == 0 {
		return paint(cHead, prompt) + paint(cDim, cut(empty, room)), x
	}
	from := 0 // the first that is shown
	for displaywidth.String(strings.Join(f.text[from:f.at], "")) > room {
		from++
	}
	shown := strings.Join(f.text[from:], "")
	x += displaywidth.String(strings.Join(f.text[from:f.at], ""))
	return paint(cHead, prompt) + displaywidth.TruncateString(shown, room, ""), x
}
