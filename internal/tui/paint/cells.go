package paint

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// cell is a character on the screen, with what it looks like.
type cell struct {
	text  string
	width int
	look  look
}

// look is how a character is drawn.
type look struct {
	fg, bg, line string // colours, as in SGR
	attrs        uint16 // bit n: SGR n
	link         string // a hyperlink: the sequence that begins it
}

// set changes l by the parameters of SGR.
func (l *look) set(params string) {
	fields := strings.Split(params, ";")
	for i := 0; i < len(fields); i++ {
		head, _, sub := strings.Cut(fields[i], ":")
		n, _ := strconv.Atoi(head)
		switch {
		case n == 0:
			*l = look{link: l.link}
		case n == 4 && fields[i] == "4:0":
			l.attrs &^= 1 << 4
		case n < 10:
			l.attrs |= 1 << n
		case n == 22:
			l.attrs &^= 1<<1 | 1<<2
		case n > 22 && n < 30:
			l.attrs &^= 1 << (n - 20)
		case n == 38 || n == 48 || n == 58:
			colour := fields[i]
			if !sub && i+1 < len(fields) {
				end := i + 3
				if fields[i+1] == "2" {
					end = i + 5
				}
				end = min(end, len(fields))
				colour = strings.Join(fields[i:end], ";")
				i = end - 1
			}
			*map[int]*string{38: &l.fg, 48: &l.bg, 58: &l.line}[n] = colour
		case n == 39:
			l.fg = ""
		case n == 49:
			l.bg = ""
		case n == 59:
			l.line = ""
		case n >= 30 && n < 38 || n >= 90 && n < 98:
			l.fg = fields[i]
		case n >= 40 && n < 48 || n >= 100 && n < 108:
			l.bg = fields[i]
		}
	}
}

// sgr returns the sequence that makes l of a plain look; "" if l is plain.
func (l look) sgr() string {
	var out []string
	for n := range 10 {
		if l.attrs&(1<<n) != 0 {
			out = append(out, strconv.Itoa(n))
		}
	}
	for _, colour := range []string{l.fg, l.bg, l.line} {
		if colour != "" {
			out = append(out, colour)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%sm", strings.Join(out, ";"))
}

const unlink = "\x1b]8;;\x07"

// cells takes a line apart. Blanks at its end that look like nothing are left
// out.
func cells(text string) (out []cell) {
	var now look
	var state byte
	for len(text) > 0 {
		seq, width, n, next := ansi.DecodeSequence(text, state, nil)
		state, text = next, text[n:]
		switch {
		case width > 0:
			out = append(out, cell{seq, width, now})
		case strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m"):
			now.set(seq[2 : len(seq)-1])
		case strings.HasPrefix(seq, "\x1b]8;"):
			if _, uri, _ := strings.Cut(seq[4:], ";"); strings.Trim(uri, "\a\x1b\\") == "" {
				now.link = ""
			} else {
				now.link = seq
			}
		case len(out) > 0 && seq[0] >= 0x80: // it combines with the character before
			out[len(out)-1].text += seq
		}
	}
	for len(out) > 0 && out[len(out)-1].text == " " && out[len(out)-1].look == (look{}) {
		out = out[:len(out)-1]
	}
	return out
}

// put writes cells to b. After one that terminals do not draw equally wide, the
// cursor is moved to where the next belongs; x is the column of the first, or -1
// if it is not known and the cursor is not moved.
func put(b *strings.Builder, cs []cell, x int) {
	var now look
	for i, c := range cs {
		if x >= 0 && i > 0 {
			x += cs[i-1].width
			if cs[i-1].disputed() {
				b.WriteString(ansi.CursorHorizontalAbsolute(x + 1))
			}
		}
		if c.look != now {
			if now.link != c.look.link {
				if now.link != "" {
					b.WriteString(unlink)
				}
				b.WriteString(c.look.link)
			}
			if before, after := now.sgr(), c.look.sgr(); before != after {
				if before != "" {
					b.WriteString("\x1b[m")
				}
				b.WriteString(after)
			}
			now = c.look
		}
		b.WriteString(c.text)
	}
	if now.sgr() != "" {
		b.WriteString("\x1b[m")
	}
	if now.link != "" {
		b.WriteString(unlink)
	}
}

func widthOf(cs []cell) (n int) {
	for _, c := range cs {
		n += c.width
	}
	return n
}

// certain reports whether every terminal draws c as wide as we think.
func (c cell) certain() bool {
	for i, r := range c.text {
		switch {
		case i > 0:
			return false
		case r < 0x300, r >= 0x2010 && r <= 0x2027, r >= 0x2190 && r <= 0x2193, r >= 0x2500 && r < 0x25a0, r >= 0x2800 && r < 0x2900, r == '✓', r == '✗', r == '❯':
		default:
			return false
		}
	}
	return true
}

// disputed reports whether terminals are known to draw c differently wide: flags,
// families, skin tones and other emoji that are several characters.
func (c cell) disputed() bool {
	for i, r := range c.text {
		if i > 0 || r >= 0x2600 && r < 0x27c0 && !c.certain() || r >= 0x1f000 && r < 0x20000 {
			return true
		}
	}
	return false
}
