package line

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestCutOff: a line that could not be read to its end is not taken for one.
func TestCutOff(t *testing.T) {
	broken := errors.New("broken")
	p := NewPlain(io.MultiReader(strings.NewReader("one\ndelete ev"), iotest.ErrReader(broken)), nil)
	if got, err := p.ReadLine(t.Context(), ""); got != "one" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if got, err := p.ReadLine(t.Context(), ""); got != "" || !errors.Is(err, broken) {
		t.Errorf("read %q, %v, want the error", got, err)
	}
	p = NewPlain(strings.NewReader("one\ntwo"), nil)
	for _, want := range []string{"one", "two"} {
		if got, err := p.ReadLine(t.Context(), ""); got != want || err != nil {
			t.Errorf("read %q, %v, want %q", got, err, want)
		}
	}
}

func TestPlain(t *testing.T) {
	type read struct {
		text string
		err  error
	}
	for name, c := range map[string]struct {
		in   string
		want []read
	}{
		"lines":       {"a\n\nb\n", []read{{"a", nil}, {"", nil}, {"b", nil}, {"", io.EOF}, {"", io.EOF}}},
		"no line end": {"a", []read{{"a", nil}, {"", io.EOF}}},
		"continued":   {"a\\\nb\\\nc\nd\n", []read{{"a\nb\nc", nil}, {"d", nil}}},
		"cut short":   {"a\\\n", []read{{"a\n", nil}, {"", io.EOF}}},
		"windows":     {"a\r\nb\r\n", []read{{"a", nil}, {"b", nil}}},
		"not text":    {"a\xff\n", []read{{"a\uFFFD", nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPlain(strings.NewReader(c.in), nil)
			for i, want := range c.want {
				got, err := p.ReadLine(context.Background(), "> ")
				if got != want.text || err != want.err {
					t.Errorf("line %d is %q, %v; want %q, %v", i, got, err, want.text, want.err)
				}
			}
		})
	}
}
