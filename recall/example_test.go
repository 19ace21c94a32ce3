package recall_test

import (
	"context"
	"fmt"

	"goclaw/llm"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/store/memory"
)

// Everything that was said can be found from the moment it is appended.
func Example() {
	ctx := context.Background()
	store := memory.New()
	s, err := session.Load(ctx, store, "main:cli:ana", session.System{})
	if err != nil {
		fmt.Println(err)
		return
	}
	rec := s.Next(session.Message{Message: llm.UserText("We drop redis because of its licence.")}, session.System{})
	if err := store.Append(ctx, s.ID, rec); err != nil {
		fmt.Println(err)
		return
	}
	index, err := recall.Open(recall.Options{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer index.Close()
	res, err := index.Search(ctx, recall.Query{Text: "why did we drop redis?"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range res.Hits {
		fmt.Println(h.Key, h.Role, h.Text)
	}
	// Output: main:cli:ana user We drop redis because of its licence.
}
