package editor

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// key handles a key.
func (e *Editor) key(k tea.KeyPressMsg) (Event, tea.Cmd) {
	e.note = ""
	name := k.Keystroke()
	if name != "up" && name != "down" {
		e.goal = -1
	}
	if e.search.on && e.search.key(name, k) {
		return None, nil
	}
	if e.menu.open() {
		if done, ev, cmd := e.menuKey(name); done {
			return ev, cmd
		}
	}
	if s := typed(k); s != "" {
		e.buf.insert(cleanAfter(e.buf.text[:e.buf.pos], s), true)
		return None, e.complete()
	}
	switch name {
	case "enter":
		if e.buf.enter() {
			return Send, nil
		}
		return None, nil
	case "tab":
		e.menu.dismissed = false
		if p := pathAt(e.buf.text, e.buf.pos); p.kind == kindPath {
			return None, e.completeAt(p)
		}
		return None, e.complete()
	case "ctrl+r":
		e.menu.close()
		e.search.begin(&e.buf, e.past.lines)
		return None, nil
	case "ctrl+g":
		return None, e.external()
	case "ctrl+v", "alt+v":
		if e.o.Plain {
			return None, nil
		}
		return None, fromClipboard(e.o.Getenv)
	case "up", "down":
		e.vertical(name == "up")
		return None, nil
	case "ctrl+n":
		e.recall(1)
		return None, nil
	}
	if edit := edits[name]; edit != nil {
		edit(&e.buf)
		return None, e.complete()
	}
	return None, nil
}

// typed returns the text that a key inserts.
func typed(k tea.KeyPressMsg) string {
	ctrl, alt := k.Mod.Contains(tea.ModCtrl), k.Mod.Contains(tea.ModAlt)
	if k.Text == "" || ctrl != alt { // both together are AltGr
		return ""
	}
	return k.Text
}

// enter reports whether there is something to send. After a backslash it breaks
// the line.
func (b *buffer) enter() bool {
	if b.pos == len(b.text) && strings.HasSuffix(b.text, `\`) {
		b.set(b.text[:b.pos-1]+"\n", b.pos)
		return false
	}
	return strings.TrimSpace(b.text) != ""
}

// edits are the keys that change the text or move in it.
var edits = map[string]func(*buffer){
	"left":   func(b *buffer) { b.pos = b.left(b.pos) },
	"right":  func(b *buffer) { b.pos = b.right(b.pos) },
	"home":   func(b *buffer) { b.pos = b.lineStart(b.pos) },
	"end":    func(b *buffer) { b.pos = b.lineEnd(b.pos) },
	"alt+b":  func(b *buffer) { b.pos = b.wordLeft(b.pos) },
	"alt+f":  func(b *buffer) { b.pos = b.wordRight(b.pos) },
	"alt+<":  func(b *buffer) { b.pos = 0 },
	"alt+>":  func(b *buffer) { b.pos = len(b.text) },
	"ctrl+j": func(b *buffer) { b.insert("\n", false) },

	"backspace": func(b *buffer) { b.cut(b.left(b.pos), b.pos, false) },
	"delete":    func(b *buffer) { b.cut(b.pos, b.right(b.pos), false) },
	"ctrl+w":    func(b *buffer) { b.cut(b.blankLeft(b.pos), b.pos, true) },
	"alt+d":     func(b *buffer) { b.cut(b.pos, b.wordRight(b.pos), true) },
	"ctrl+u":    func(b *buffer) { b.cut(b.lineStart(b.pos), b.pos, true) },
	"ctrl+k": func(b *buffer) {
		to := b.lineEnd(b.pos)
		if to == b.pos {
			to = b.right(b.pos)
		}
		b.cut(b.pos, to, true)
	},
	"alt+backspace": func(b *buffer) { b.cut(b.wordLeft(b.pos), b.pos, true) },
	"ctrl+y":        func(b *buffer) { b.insert(b.killed, false) },
	"ctrl+_":        (*buffer).undo,
	"alt+/":         (*buffer).redo,
}

func init() {
	for _, same := range [][]string{
		{"left", "ctrl+b"},
		{"home", "ctrl+a"},
		{"end", "ctrl+e"},
		{"alt+b", "ctrl+left", "alt+left"},
		{"alt+f", "ctrl+right", "alt+right"},
		{"alt+<", "ctrl+home", "alt+shift+,"},
		{"alt+>", "ctrl+end", "alt+shift+."},
		{"ctrl+j", "alt+enter", "shift+enter", "ctrl+enter"},
		{"backspace", "ctrl+h", "shift+backspace"},
		{"delete", "ctrl+d"},
		{"alt+backspace", "ctrl+backspace"},
		{"alt+d", "ctrl+delete", "alt+delete"},
		{"ctrl+_", "ctrl+/", "ctrl+-", "ctrl+shift+-"}, // terminals name it in many ways
		{"alt+/", "ctrl+shift+z", "alt+shift+-", "alt+_"},
	} {
		for _, name := range same[1:] {
			edits[name] = edits[same[0]]
		}
	}
}

// vertical moves a row up or down, and beyond the text through the history.
func (e *Editor) vertical(up bool) {
	l := e.layout()
	y, x := l.find(e.buf.pos)
	if e.goal >= 0 {
		x = e.goal
	}
	by := 1
	if up {
		by = -1
	}
	if to := y + by; to >= 0 && to < len(l.rows) {
		e.buf.pos, e.goal = l.place(to, x), x
		return
	}
	e.recall(by)
}

func (e *Editor) layout() *layout {
	if e.laid == nil || e.laid.text != e.buf.text || e.laid.width != e.width {
		e.laid = newLayout(e.buf.text, e.width, &e.chips)
	}
	return e.laid
}
