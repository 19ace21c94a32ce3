//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"fmt"
	"html"
	"image/color"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// film is a recording: the rows of each frame, as SVG, and how long it is shown.
type film struct {
	cols, rows int
	frames     []frame
	defs       map[string]string // a row and its name
	order      []string
}

type frame struct {
	rows   []string // the names of rows, "" for an empty one
	cursor uv.Position
	shown  time.Duration
}

// The size of a cell, in the units of the picture.
const cellW, cellH, margin = 8.4, 18.0, 14.0

// palette are the sixteen colours of a dark terminal.
var palette = [16]string{"#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
	"#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff"}

const ground, ink = "#0d1117", "#c9d1d9"

func hex(c color.Color, none string) string {
	switch c := c.(type) {
	case nil:
		return none
	case ansi.BasicColor:
		return palette[c]
	case ansi.IndexedColor:
		if c < 16 {
			return palette[c]
		}
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

// shoot adds what the terminal shows, for that long. The same picture twice is
// one that lasts longer.
func (f *film) shoot(v *vt.Emulator, shown time.Duration) {
	x := frame{cursor: v.CursorPosition(), shown: shown}
	for y := range v.Height() {
		x.rows = append(x.rows, f.row(v, y))
	}
	if n := len(f.frames); n > 0 && fmt.Sprint(f.frames[n-1].rows, f.frames[n-1].cursor) == fmt.Sprint(x.rows, x.cursor) {
		f.frames[n-1].shown += shown
		return
	}
	f.frames = append(f.frames, x)
}

// row returns the name of row y, which is drawn once however often it is seen.
func (f *film) row(v *vt.Emulator, y int) string {
	var b strings.Builder
	for x := 0; x < v.Width(); {
		c := v.CellAt(x, y)
		if c == nil || c.Content == "" {
			x++
			continue
		}
		from, style, text := x, c.Style, ""
		for x < v.Width() {
			n := v.CellAt(x, y)
			if n == nil || n.Content == "" {
				break
			}
			if !n.Style.Equal(&style) {
				break
			}
			wide := ansi.StringWidth(n.Content) != len(n.Content) || n.Width > 1
			if wide && text != "" && n.Width > 1 {
				break // its own text, so that what follows stands in its column
			}
			text += n.Content
			x += max(n.Width, 1)
			if n.Width > 1 {
				break
			}
		}
		run(&b, from, x-from, text, style)
	}
	out := b.String()
	if out == "" {
		return ""
	}
	if name, ok := f.defs[out]; ok {
		return name
	}
	name := fmt.Sprintf("r%d", len(f.order))
	f.defs[out] = name
	f.order = append(f.order, out)
	return name
}

// run draws text of one style.
func run(b *strings.Builder, x, width int, text string, s uv.Style) {
	fg, bg := hex(s.Fg, ink), hex(s.Bg, "")
	if s.Attrs&uv.AttrReverse != 0 {
		if bg == "" {
			bg = ground
		}
		fg, bg = bg, fg
	}
	if bg != "" {
		fmt.Fprintf(b, `<rect x="%.4g" width="%.4g" height="%g" fill="%s"/>`, float64(x)*cellW, float64(width)*cellW, cellH, bg)
	}
	text = strings.TrimRight(text, " ")
	lead := len(text) - len(strings.TrimLeft(text, " "))
	if text = text[lead:]; text == "" {
		return
	}
	fmt.Fprintf(b, `<text x="%.5g" y="13.5"`, float64(x+lead)*cellW)
	if fg != ink {
		fmt.Fprintf(b, ` fill="%s"`, fg)
	}
	if s.Attrs&uv.AttrBold != 0 {
		b.WriteString(` font-weight="bold"`)
	}
	if s.Attrs&uv.AttrFaint != 0 {
		b.WriteString(` opacity=".6"`)
	}
	if s.Attrs&uv.AttrItalic != 0 {
		b.WriteString(` font-style="italic"`)
	}
	if n := ansi.StringWidth(text); n > 1 { // whatever font there is
		fmt.Fprintf(b, ` textLength="%.5g"`, float64(n)*cellW)
	}
	fmt.Fprintf(b, `>%s</text>`, html.EscapeString(text))
}

// svg is the whole picture. Frames stand below each other, and one at a time is
// moved into the window.
func (f *film) svg(title string) string {
	w, h := float64(f.cols)*cellW, float64(f.rows)*cellH
	var total time.Duration
	for _, x := range f.frames {
		total += x.shown
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.5g %.5g" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14" role="img" aria-label="%s">`+"\n", w+2*margin, h+2*margin+24, html.EscapeString(title))
	fmt.Fprintf(&b, "<title>%s</title>\n<style>text{white-space:pre}#f{animation:f %.2fs infinite step-end}@media (prefers-reduced-motion:reduce){#f{animation:none;transform:translateY(-%.6gpx)}}@keyframes f{",
		html.EscapeString(title), total.Seconds(), float64(len(f.frames)-1)*h)
	var at time.Duration
	for i, x := range f.frames {
		fmt.Fprintf(&b, "%.3f%%{transform:translateY(-%.6gpx)}", 100*at.Seconds()/total.Seconds(), float64(i)*h)
		at += x.shown
	}
	b.WriteString("}</style>\n<defs>\n")
	for i, row := range f.order {
		fmt.Fprintf(&b, "<g id=\"r%d\">%s</g>\n", i, row)
	}
	fmt.Fprintf(&b, "<clipPath id=\"c\"><rect width=\"%.5g\" height=\"%.5g\"/></clipPath>\n</defs>\n", w, h)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", ground)
	for i, c := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="16" r="5.5" fill="%s"/>`, 18+18*i, c)
	}
	fmt.Fprintf(&b, "\n<g transform=\"translate(%g %g)\" clip-path=\"url(#c)\" fill=\"%s\"><g id=\"f\">\n", margin, margin+20, ink)
	for i, x := range f.frames {
		fmt.Fprintf(&b, `<g transform="translate(0 %.6g)">`, float64(i)*h)
		fmt.Fprintf(&b, `<rect x="%.5g" y="%.5g" width="%g" height="%g" fill="%s" opacity=".5"/>`, float64(x.cursor.X)*cellW, float64(x.cursor.Y)*cellH, cellW, cellH, ink)
		for y, name := range x.rows {
			if name != "" {
				fmt.Fprintf(&b, `<use href="#%s" y="%g"/>`, name, float64(y)*cellH)
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</g></g>\n</svg>\n")
	return b.String()
}
