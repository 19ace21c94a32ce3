//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
)

// wellFormed fails unless svg is XML.
func wellFormed(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v:\n%s", err, svg)
		}
	}
}

// Rows that are seen twice are drawn once, the same picture twice is one frame,
// and colours and markup are what they were.
func TestFilm(t *testing.T) {
	v := vt.NewEmulator(20, 3)
	f := &film{cols: 20, rows: 3, defs: map[string]string{}}
	v.WriteString("\x1b[31;1mred\x1b[m <b> & \x1b[7mturned\x1b[m\r\n東京 here\r\n")
	f.shoot(v, time.Second)
	f.shoot(v, time.Second)
	v.WriteString("more")
	f.shoot(v, 2*time.Second)
	if len(f.frames) != 2 || f.frames[0].shown != 2*time.Second || len(f.order) != 3 {
		t.Errorf("%d frames, the first for %v, of %d rows", len(f.frames), f.frames[0].shown, len(f.order))
	}
	svg := f.svg(`a "title"`)
	wellFormed(t, svg)
	for _, want := range []string{
		`fill="#ff7b72" font-weight="bold" textLength="25.2">red<`, `&lt;b&gt; &amp;`, `<rect x="84" width="50.4" height="18" fill="#c9d1d9"/>`, `>turned<`,
		`<text x="42" y="13.5" textLength="33.6">here<`, `50.000%{transform:translateY(-54px)}`, "animation:f 4.00s",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
}

// The picture in the README is one, and not too large.
func TestRecording(t *testing.T) {
	data, err := os.ReadFile("../../../docs/images/terminal.svg")
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, string(data))
	if len(data) > 300_000 || !strings.Contains(string(data), first) {
		t.Errorf("it has %d bytes", len(data))
	}
}
