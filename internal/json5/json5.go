// Package json5 reads files that people edit by hand and that OpenClaw reads as
// JSON5: its configuration and its sessions.json.
//
// hujson, which reads goclaw's own configuration, knows comments and trailing
// commas. What JSON5 has beyond that is rewritten token by token: names without
// quotes, single quotes, more escapes and more numbers.
package json5

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// maxDepth is how deep a file may nest.
const maxDepth = 1000

var (
	token = regexp.MustCompile(`//[^\n]*|(?s:/\*.*?\*/)` + // comments
		`|(?s:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')` + // strings
		`|[{}\[\]]` +
		`|[\p{Z}\x{feff}\v\f]+` + // white space that JSON does not know
		`|[^\s\p{Z}\x{feff},:{}\[\]"'/]+(?:[\s\p{Z}]*:)?`) // names, numbers, true, false, null
	special = regexp.MustCompile(`(?s)\\x[0-9a-fA-F]{2}|\\\r\n|\\.|["\x00-\x1f]`)
	name    = regexp.MustCompile(`^([\pL\pN_$]+)[\s\p{Z}]*:$`)
)

// Standardize turns JSON5 into JSON.
func Standardize(data []byte) ([]byte, error) {
	if json.Valid(data) {
		return data, nil
	}
	depth, deepest := 0, 0
	out := token.ReplaceAllFunc(data, func(tok []byte) []byte {
		if json.Valid(tok) { // it stays, byte for byte
			return tok
		}
		switch tok[0] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		case '/':
		case '"', '\'':
			return text(tok)
		default:
			if r, _ := utf8.DecodeRune(tok); unicode.In(r, unicode.Z, unicode.C) {
				return []byte(" ")
			}
			return word(tok)
		}
		return tok
	})
	if deepest > maxDepth {
		return nil, errors.New("nested too deep")
	}
	return hujson.Standardize(out)
}

// Unmarshal reads JSON5 into v.
func Unmarshal(data []byte, v any) error {
	plain, err := Standardize(data)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, v)
}

// text returns a string as JSON has it.
func text(tok []byte) []byte {
	inner := special.ReplaceAllFunc(tok[1:len(tok)-1], func(s []byte) []byte {
		if s[0] != '\\' {
			return fmt.Appendf(nil, `\u%04x`, s[0])
		}
		switch c := s[1]; c {
		case '\n', '\r': // the string continues on the next line
			return nil
		case 'u', 'b', 'f', 'n', 'r', 't', '\\', '"':
			return s
		case 'x':
			if len(s) == 4 {
				return append([]byte(`\u00`), s[2:]...)
			}
		case 'v':
			return []byte(`\u000b`)
		case '0':
			return []byte(`\u0000`)
		}
		return s[1:]
	})
	return append(append([]byte{'"'}, inner...), '"')
}

// word returns a name with quotes, and a number as JSON has it. What is neither
// stays, and hujson says where it is.
func word(tok []byte) []byte {
	if m := name.FindSubmatch(tok); m != nil {
		return append(strconv.AppendQuote(nil, string(m[1])), ':')
	}
	switch s := string(tok); s {
	case "Infinity", "+Infinity", "-Infinity", "NaN", "+NaN", "-NaN":
		return []byte("null")
	default:
		if n, err := strconv.ParseInt(s, 0, 64); err == nil {
			return strconv.AppendInt(nil, n, 10)
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return strconv.AppendFloat(nil, f, 'g', -1, 64)
		}
	}
	return tok
}
