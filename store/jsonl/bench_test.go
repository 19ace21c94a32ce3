package jsonl

import (
	"flag"
	"testing"

	"goclaw/session"
	"goclaw/store/storetest"
)

var full = flag.Bool("full", false, "measure sessions of a million records as well")

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(dir string) (session.Store, error) { return Open(dir, Options{}) }, *full)
}
