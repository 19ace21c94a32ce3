package postings

import (
	"encoding/binary"
	"slices"
	"strings"
)

// Range calls f for the terms that begin with prefix, in order, with their
// lists and how many docs those have, until it returns false.
func (s *Segment) Range(prefix string, f func(term string, list []byte, n int) bool) error {
	at, ok := slices.BinarySearch(s.firsts, prefix)
	if !ok {
		at = max(at-1, 0)
	}
	for more := true; more && at < len(s.firsts); at++ {
		if s.firsts[at] > prefix && !strings.HasPrefix(s.firsts[at], prefix) {
			return nil
		}
		block, err := s.block(at)
		if err != nil {
			return err
		}
		bad := false
		err = eachList(block, func(term, list []byte) bool {
			t := string(term)
			if !strings.HasPrefix(t, prefix) {
				more = t < prefix
				return more
			}
			n, size := binary.Uvarint(list)
			if bad = size <= 0 || n > uint64(len(s.Docs)); bad {
				return false
			}
			more = f(t, list, int(n))
			return more
		})
		if bad {
			err = errPostings
		}
		if err != nil {
			return s.damage(err)
		}
	}
	return nil
}
