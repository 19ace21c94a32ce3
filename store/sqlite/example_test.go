package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"goclaw/session"
	"goclaw/store/sqlite"
)

// A store keeps logs on disk: whoever opens it later finds them.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	for range 2 {
		st, err := sqlite.Open(filepath.Join(dir, "sessions.db"))
		if err != nil {
			fmt.Println(err)
			return
		}
		s, err := session.Load(ctx, st, "main:cli:ana", session.System{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.Key, s.Records)
		st.Close()
	}
	// Output:
	// main:cli:ana 1
	// main:cli:ana 1
}
