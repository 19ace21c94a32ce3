package session

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Clock hands in time and randomness.
type Clock interface {
	Now() time.Time
	Rand() uint64
}

// System is the Clock of the machine.
type System struct{}

// Now implements Clock.
func (System) Now() time.Time { return time.Now() }

// Rand implements Clock.
func (System) Rand() uint64 { return rand.Uint64() }

// recordID returns "{unix ms}_{hex}".
func recordID(at time.Time, n uint64) string {
	return fmt.Sprintf("%d_%08x", at.UnixMilli(), uint32(n))
}

// IDTime returns the time in the id of r, "{unix ms}_{hex}", in milliseconds.
// ok is false if another program made the id.
func (r Record) IDTime() (ms int64, ok bool) {
	a, b, ok := strings.Cut(strings.TrimPrefix(r.ID, RedactionPrefix), "_")
	if !ok || len(a) < 12 || len(a) > 15 || a[0] == '0' || b == "" || len(b) > 32 {
		return 0, false
	}
	for i := 0; i < len(a); i++ {
		if a[i] < '0' || a[i] > '9' {
			return 0, false
		}
		ms = ms*10 + int64(a[i]-'0')
	}
	return ms, strings.Trim(b, "0123456789abcdef") == ""
}

// newID returns a new session id in the form of a UUIDv7, which is what other
// programs expect of a file name.
func newID(c Clock) ID {
	ms := uint64(c.Now().UnixMilli())
	a, b := c.Rand(), c.Rand()
	return ID(fmt.Sprintf("%08x-%04x-7%03x-%04x-%012x",
		uint32(ms>>16), uint16(ms), a&0xfff, 0x8000|(a>>12)&0x3fff, b&0xffffffffffff))
}
