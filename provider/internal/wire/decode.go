package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// Decode reads an event into v. It fails only where data is no JSON object: a
// field of another type than expected is skipped, because servers differ.
func Decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) && typ.Field != "" {
		return nil
	}
	return err
}

// Text is a string. Where a server writes something else, as a number for an id
// or an object for arguments, it is that value's JSON.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*t = Text(s) // bad bytes have become U+FFFD
	case 'n': // null leaves it as it is
	default:
		*t = Text(Clean(string(data)))
	}
	return nil
}

// Number is a count that may be missing. Fractions are cut off, and a number in
// a string is one; a value that cannot be a count is ignored.
type Number struct {
	N     int
	Given bool
}

const maxNumber = 1 << 53

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(data []byte) error {
	if f, err := strconv.ParseFloat(string(bytes.Trim(data, `"`)), 64); err == nil && f >= 0 && f <= maxNumber {
		n.N, n.Given = int(f), true
	}
	return nil
}

// Set puts the number into to, if it was given.
func (n Number) Set(to *int) {
	if n.Given {
		*to = n.N
	}
}
