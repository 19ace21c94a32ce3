package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"goclaw/internal/pgtest"
)

// own is the CPU time of this process.
func own() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// used is the CPU time of the server's processes, those that have ended
// included.
func used(server *pgtest.Server) (sum time.Duration) {
	b, err := os.ReadFile(filepath.Join(server.Dir, "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), "\n")
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, _ := os.ReadFile(path) // it may have ended
		_, rest, _ := strings.Cut(string(b), ") ")
		f := strings.Fields(rest) // from the third field on
		if len(f) < 15 {
			continue
		}
		fields := []string{f[11], f[12]} // user and system
		switch {
		case path == fmt.Sprintf("/proc/%s/stat", first):
			fields = append(fields, f[13], f[14]) // of children that have ended
		case f[1] != first:
			continue
		}
		for _, f := range fields {
			ticks, _ := strconv.Atoi(f)
			sum += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum
}
