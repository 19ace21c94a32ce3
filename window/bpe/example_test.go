package bpe_test

import (
	"fmt"

	"goclaw/window/bpe"
)

func Example() {
	enc := bpe.O200K()
	text := "Conversations that survive restarts."
	fmt.Println(enc.Count(text))
	fmt.Println(enc.Prefix(text, 3))
	// Output:
	// 7
	// Conversations that
}
