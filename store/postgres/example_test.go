package postgres_test

import (
	"context"
	"fmt"

	"goclaw/session"
	"goclaw/store/postgres"
)

// Any number of processes share a database: what one of them appends, the others
// find.
func ExampleOpen() {
	dsn := postgres.TestDSN("example") // such as postgres://goclaw@db.example.com/goclaw
	ctx := context.Background()
	for range 2 {
		st, err := postgres.Open(ctx, dsn, postgres.Options{})
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
