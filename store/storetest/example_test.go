package storetest_test

import (
	"fmt"
	"testing"

	"goclaw/session"
	"goclaw/store/jsonl"
	"goclaw/store/storetest"
)

// The tests of a store are three functions around the one that opens it.
// examples/auditstore is a whole store with its tests.
func Example() {
	open := func(dir string) (session.Store, error) { return jsonl.Open(dir, jsonl.Options{}) }

	TestMain := func(m *testing.M) { storetest.Main(m, open) }
	TestStore := func(t *testing.T) { storetest.Run(t, open) }
	TestProcesses := func(t *testing.T) { storetest.Processes(t, open) }

	_, _, _ = TestMain, TestStore, TestProcesses
}

// The same seed always makes the same records, to fill a store with.
func ExampleConversation() {
	for r := range storetest.Conversation(1, 4) {
		fmt.Printf("%d %T\n", r.Seq, r.Body)
	}
	// Output:
	// 1 session.Header
	// 2 session.Message
	// 3 session.Message
	// 4 session.Message
}
