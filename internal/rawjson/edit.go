package rawjson

import (
	"errors"
	"slices"
)

var errNoObject = errors.New("not a JSON object")

// Set returns the object obj with the value val under key, or without the key
// if val is nil. Every other byte of it stays.
func Set(obj []byte, key string, val []byte) ([]byte, error) {
	var t Tape
	if err := t.Parse(obj, false); err != nil {
		return nil, err
	}
	if t.Kind(0) != Object {
		return nil, errNoObject
	}
	at, prev, last := -1, -1, -1 // the value, the one before it, and the last one
	for k, v := range t.Members(0) {
		if string(t.Text(k)) == key {
			at, prev = v, last
		}
		last = v
	}
	end := func(v int) int { return t.place(v) + len(t.Raw(v)) }
	switch {
	case at >= 0 && val != nil:
		return slices.Replace(slices.Clone(obj), t.place(at), end(at), val...), nil
	case at >= 0 && at == last && prev >= 0:
		return slices.Delete(slices.Clone(obj), end(prev), end(at)), nil
	case at >= 0 && at == last:
		return slices.Delete(slices.Clone(obj), t.place(at-1), end(at)), nil
	case at >= 0: // up to the key after it
		return slices.Delete(slices.Clone(obj), t.place(at-1), t.place(int(t.nodes[at].next))), nil
	case val == nil:
		return obj, nil
	}
	member := append(append(AppendString(nil, key), ':'), val...)
	if last < 0 {
		return slices.Insert(slices.Clone(obj), t.place(0)+1, member...), nil
	}
	return slices.Insert(slices.Clone(obj), end(last), append([]byte{','}, member...)...), nil
}

// place returns where the text of a value begins.
func (t *Tape) place(n int) int {
	if t.nodes[n].kind == String {
		return int(t.nodes[n].start) - 1
	}
	return int(t.nodes[n].start)
}
