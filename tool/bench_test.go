package tool

import (
	"strings"
	"testing"
)

// What a call costs besides its own work: finding the tool, checking the
// arguments, tidying the result.
func BenchmarkOverhead(b *testing.B) {
	s := open(b, Options{}, nil)
	c := call("get_current_time", o{"timezone": "UTC"})
	for b.Loop() {
		s.Run(b.Context(), c)
	}
}

func BenchmarkReadFile(b *testing.B) {
	s := open(b, Options{}, map[string]string{"f": strings.Repeat("a line of some forty bytes, more or less\n", 1000)})
	c := call("read_file", o{"path": "f"})
	for b.Loop() {
		s.Run(b.Context(), c)
	}
}

func BenchmarkBash(b *testing.B) {
	s := open(b, Options{Allowed: []string{"true"}}, nil)
	c := call("bash", o{"command": "true"})
	for b.Loop() {
		s.Run(b.Context(), c)
	}
}
