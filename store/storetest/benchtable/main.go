// Command benchtable measures every store and prints one table: figures as
// ratios, the limits beside them, and what the peers reach. It exits with 1 if
// a limit is not kept.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"goclaw/session"
	"goclaw/store/jsonl"
	"goclaw/store/sqlite"
	"goclaw/store/storetest"
)

func main() {
	full := flag.Bool("full", false, "measure sessions of a million records, too")
	dir := flag.String("dir", "", "folder on the disk to measure; empty: the one for temporary files")
	flag.Parse()
	ok, err := run(*dir, *full)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(dir string, full bool) (bool, error) {
	tmp, err := os.MkdirTemp(dir, "benchtable")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(tmp)
	inSQLite := func(opts ...sqlite.Option) storetest.Opener {
		return func(dir string) (session.Store, error) {
			return sqlite.Open(filepath.Join(dir, "sessions.db"), opts...)
		}
	}
	return storetest.Table(os.Stdout, tmp, full,
		storetest.Named{Name: "sqlite", Open: inSQLite(), Slow: inSQLite(sqlite.WithVFS(slowVFS))},
		storetest.Named{Name: "jsonl", Open: func(dir string) (session.Store, error) {
			return jsonl.Open(dir, jsonl.Options{})
		}})
}
