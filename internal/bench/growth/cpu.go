package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"goclaw/internal/pgtest"
)

// cpu returns the processor time that the processes of a server have used so far,
// from /proc; 0 where there is none. Those that have ended count.
func cpu(s *pgtest.Server) (total time.Duration) {
	b, err := os.ReadFile(filepath.Join(s.Dir, "postmaster.pid"))
	if err != nil {
		return 0
	}
	master, _, _ := strings.Cut(string(b), "\n")
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		text := string(b)
		f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		last := 13 // of the process, and of the children that have ended
		switch {
		case filepath.Base(filepath.Dir(path)) == master:
			last = 15
		case len(f) < 15 || f[1] != master:
			continue
		}
		for _, ticks := range f[11:last] {
			n, _ := strconv.Atoi(ticks)
			total += time.Duration(n) * 10 * time.Millisecond // a tick of the kernel's interface
		}
	}
	return total
}

// share returns the n-th part of d, for printing.
func share(d time.Duration, n int) string {
	return fmt.Sprint((d / time.Duration(n)).Round(time.Microsecond))
}
