package storekit_test

import (
	"fmt"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/session/storekit"
)

// A store checks records before it writes them, so that all stores refuse the
// same ones.
func ExampleCheckAppend() {
	log := sessiontest.Log(sessiontest.User("hi"), sessiontest.Answer("hello"))
	var last session.Seq // of an empty log
	fmt.Println(storekit.CheckAppend("s1", last, log))
	fmt.Println(storekit.CheckAppend("s1", last, log[1:]))
	// Output:
	// <nil>
	// session "s1": record 2 cannot follow record 0: session: conflict, the log has other records
}

// Keys hold characters that file systems do not take.
func ExampleFileName() {
	fmt.Println(storekit.FileName("main:cli:Ana"))
	// Output: main%3acli%3a%41na
}
