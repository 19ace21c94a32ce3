// Command store measures every store and prints one table: figures as ratios,
// their limits, and what the peers reach. It exits with 1 if a limit does not
// hold.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"goclaw/internal/bench/share"
	"goclaw/session"
	"goclaw/store/jsonl"
	"goclaw/store/sqlite"
	"goclaw/store/storetest"
)

func main() {
	full := flag.Bool("full", false, "also measure sessions of a million records")
	dir := flag.String("dir", "", "folder on the disk to measure; empty: the one for temporary files")
	flag.Parse()
	had := share.Begin()
	ok, err := run(*dir, *full)
	fmt.Println(had())
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/store:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(dir string, full bool) (bool, error) {
	tmp, err := os.MkdirTemp(dir, "bench-store")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(tmp)
	return table(os.Stdout, tmp, full,
		named{name: "sqlite", open: inSQLite(), slow: inSQLite(sqlite.WithVFS(slowVFS))},
		named{name: "jsonl", open: inFolder})
}

func inSQLite(opts ...sqlite.Option) storetest.Opener {
	return func(dir string) (session.Store, error) {
		return sqlite.Open(filepath.Join(dir, "sessions.db"), opts...)
	}
}

func inFolder(dir string) (session.Store, error) { return jsonl.Open(dir, jsonl.Options{}) }
