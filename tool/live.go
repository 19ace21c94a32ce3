package tool

import (
	"bytes"
	"strings"
	"time"

	"goclaw/internal/secrets"
)

const (
	tellEvery = 200 * time.Millisecond
	tellLines = 20       // at most, of
	tellBytes = 4 << 10  // at most, and
	lookBytes = 16 << 10 // are looked at for secrets
)

// tell tells output the end of what was written, a few times a second while that
// changes, until stop is called. It does not hold up whoever writes.
func (c *capture) tell(output func(tail string, bytes int64)) (stop func()) {
	if output == nil {
		return func() {}
	}
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		t := time.NewTicker(tellEvery)
		defer t.Stop()
		told, before := "", int64(0)
		for {
			select {
			case <-over:
				return
			case <-t.C:
			}
			b, total := c.end(lookBytes)
			if now := lastLines(b, total == before); now != told {
				told = now
				output(now, total)
			}
			before = total
		}
	}()
	return func() {
		close(over)
		<-stopped
	}
}

// lastLines returns what is shown of output that ends in b: its last lines as a
// terminal would show them, without secrets. A line that is still being written
// may hold half a secret: it counts if it has rested.
func lastLines(b []byte, rested bool) string {
	if !rested {
		b = b[:bytes.LastIndexByte(b, '\n')+1]
	}
	text, _ := secrets.Redact(clean(string(tailRunes(b))))
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[max(0, len(lines)-tellLines):]
	for i, l := range lines {
		l = strings.TrimRight(l, "\r")
		lines[i] = l[strings.LastIndexByte(l, '\r')+1:] // a progress bar
	}
	text = strings.Join(lines, "\n")
	return string(tailRunes([]byte(text[max(0, len(text)-tellBytes):])))
}
