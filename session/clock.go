package session

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// System is the clock on the wall.
type System struct{}

// Now implements Clock.
func (System) Now() time.Time { return time.Now() }

// Rand implements Clock.
func (System) Rand() uint64 { return rand.Uint64() }

// NewRecordID returns "{unix ms}_{hex}".
func NewRecordID(c Clock) string {
	return recordID(c.Now(), c.Rand())
}

func recordID(at time.Time, n uint64) string {
	return fmt.Sprintf("%d_%08x", at.UnixMilli(), uint32(n))
}

// NewID returns a fresh session id in the form of a UUIDv7, which is what
// the other programs expect of a file name.
func NewID(c Clock) ID {
	ms := uint64(c.Now().UnixMilli())
	a, b := c.Rand(), c.Rand()
	return ID(fmt.Sprintf("%08x-%04x-7%03x-%04x-%012x",
		uint32(ms>>16), uint16(ms), a&0xfff, 0x8000|(a>>12)&0x3fff, b&0xffffffffffff))
}
