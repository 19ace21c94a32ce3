package pgtest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU returns the processor time that the server's processes have used, those
// that have ended included, from /proc: 0 where there is none.
func (s *Server) CPU() (sum time.Duration) {
	pid, err := s.pid()
	if err != nil {
		return 0
	}
	first := strconv.Itoa(pid)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, _ := os.ReadFile(path) // it may have ended
		text := string(b)
		f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // from the third field on
		if len(f) < 15 {
			continue
		}
		times := f[11:13] // user and system
		switch {
		case filepath.Base(filepath.Dir(path)) == first:
			times = f[11:15] // and of children that have ended
		case f[1] != first:
			continue
		}
		for _, t := range times {
			ticks, _ := strconv.Atoi(t)
			sum += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum
}
