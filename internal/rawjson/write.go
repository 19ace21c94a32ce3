package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Writer writes JSON, compact and in the order of the calls. A field is
// written under its key, an element of an array under the key "". Commas are
// its own business.
type Writer struct {
	B    []byte
	Err  error // what could not be written
	tape Tape
}

// Key writes a key, or only the comma that is due before an element.
func (w *Writer) Key(k string) {
	if n := len(w.B); n > 0 && w.B[n-1] != '{' && w.B[n-1] != '[' {
		w.B = append(w.B, ',')
	}
	if k != "" {
		w.B = append(append(append(w.B, '"'), k...), '"', ':')
	}
}

// Object writes an object of the fields that write writes.
func (w *Writer) Object(k string, write func()) {
	w.Key(k)
	w.B = append(w.B, '{')
	write()
	w.B = append(w.B, '}')
}

// Array writes an array of the elements that write writes.
func (w *Writer) Array(k string, write func()) {
	w.Key(k)
	w.B = append(w.B, '[')
	write()
	w.B = append(w.B, ']')
}

// Text writes a string.
func (w *Writer) Text(k, s string) {
	w.Key(k)
	w.B = AppendString(w.B, s)
}

// Opt writes a string unless it is empty.
func (w *Writer) Opt(k, s string) {
	if s != "" {
		w.Text(k, s)
	}
}

// Texts writes strings, if there are any.
func (w *Writer) Texts(k string, list []string) {
	if len(list) == 0 {
		return
	}
	w.Array(k, func() {
		for _, s := range list {
			w.Text("", s)
		}
	})
}

// Int writes a number.
func (w *Writer) Int(k string, n int) {
	w.Key(k)
	w.B = strconv.AppendInt(w.B, int64(n), 10)
}

// Bool writes true or false.
func (w *Writer) Bool(k string, v bool) {
	w.Key(k)
	w.B = strconv.AppendBool(w.B, v)
}

// Flag writes true, and nothing for false.
func (w *Writer) Flag(k string, v bool) {
	if v {
		w.Bool(k, true)
	}
}

// Raw writes json, which must be valid.
func (w *Writer) Raw(k, json string) {
	w.Key(k)
	w.B = append(w.B, json...)
}

// JSON writes v as Value does, if there is any.
func (w *Writer) JSON(k string, v json.RawMessage) {
	if len(v) > 0 {
		w.Value(k, v)
	}
}

// Value writes v as it is, but on one line.
func (w *Writer) Value(k string, v json.RawMessage) {
	w.Key(k)
	err := w.tape.Parse(v, false)
	switch {
	case err != nil:
	case bytes.IndexByte(v, '\n') < 0:
		w.B = append(w.B, w.tape.Raw(0)...)
	default:
		var one bytes.Buffer
		err = json.Compact(&one, v)
		w.B = append(w.B, one.Bytes()...)
	}
	if err != nil {
		w.Err = fmt.Errorf("a part that is not JSON: %w", err)
	}
	w.tape.Reset()
}
