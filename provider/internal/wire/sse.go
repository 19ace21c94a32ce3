package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Event is one event of a stream.
type Event struct {
	Name string
	Data []byte // valid until the next event
}

// maxEvent bounds the data of an event, and a line of it. More than MaxAnswer
// would not be kept.
const maxEvent = 2 * MaxAnswer

// Events reads an event stream as the WHATWG describes it: fields in lines, an
// event ends with an empty line, lines that begin with a colon are comments,
// and several data lines are joined by line feeds. Events without data are
// skipped, and so is one in which the stream breaks off. The last item may
// be an error.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxEvent) // the least is read at once, whatever the limit
		var ev Event
		for first := true; lines.Scan(); first = false {
			line := lines.Bytes() // without \n or \r\n
			if first {
				line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
			}
			if len(line) == 0 {
				if len(ev.Data) > 0 {
					ev.Data = ev.Data[:len(ev.Data)-1]
					if !yield(ev, nil) {
						return
					}
				}
				ev = Event{Data: ev.Data[:0]}
				continue
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(name) {
			case "event":
				ev.Name = string(value)
			case "data":
				if len(ev.Data)+len(value) > maxEvent {
					yield(Event{}, tooLong)
					return
				}
				ev.Data = append(append(ev.Data, value...), '\n')
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(Event{}, tooLong)
		case err != nil:
			yield(Event{}, err)
		}
	}
}

var tooLong = &MalformedError{What: fmt.Sprintf("an event of more than %d MiB", maxEvent>>20)}

// StreamError is an error that the server put into a stream that had begun.
type StreamError struct{ Data []byte }

func (e *StreamError) Error() string { return "error in the stream: " + Line(string(e.Data)) }
