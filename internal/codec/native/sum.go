package native

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
)

// A line that goclaw writes ends in its checksum:
//
//	{"type":"message", ... ,"crc32c":"1f2e3d4c"}
//
// It is the CRC-32C of the bytes before the comma, so that checking a line
// takes no parsing. Lines of other programs and of older versions have none.
const (
	sumName = `,"crc32c":"`
	sumEnd  = `"}`
	sumSize = len(sumName) + 8 + len(sumEnd)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of b.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Seal adds the checksum to a line, which is an object with at least one field.
// It may write to the memory after line.
func Seal(line []byte) []byte {
	if n := len(line) - 1; n > 1 && line[n] == '}' {
		sum := digits(line[:n])
		return append(append(append(line[:n], sumName...), sum[:]...), sumEnd...)
	}
	return line
}

// digits returns the checksum of b in hex.
func digits(b []byte) (d [8]byte) {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], Checksum(b))
	hex.Encode(d[:], sum[:])
	return d
}

// Check compares a line with its checksum. sealed says whether it has one. A
// damaged field of a right checksum counts as one.
func Check(line []byte) (sealed bool, err error) {
	line = Trim(line)
	n := len(line) - sumSize
	if n < 2 {
		return false, nil
	}
	at := n + len(sumName)
	name, sum, end := line[n:at], line[at:at+8], line[at+8:]
	want := digits(line[:n])
	named := string(name) == sumName && string(end) == sumEnd
	switch right := bytes.Equal(sum, want[:]); {
	case named && right:
		return true, nil
	case named:
		return true, fmt.Errorf("its bytes have the CRC-32C %s, its checksum is %q", want, sum)
	case right:
		return true, fmt.Errorf("the field of its checksum is damaged: %q", line[n:])
	}
	return false, nil
}

// Unseal returns a line without its checksum, and whether it had one that
// matches. Whoever changes a line unseals it first, and seals it again if it
// had one: a checksum must not outlive the bytes that it is about.
func Unseal(line []byte) (bare []byte, sealed bool) {
	sealed, err := Check(line)
	if !sealed {
		return line, false
	}
	t := Trim(line)
	n := len(t) - sumSize
	return append(bytes.Clone(t[:n]), '}'), err == nil
}
