package line

import (
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
