package main

import (
	"context"
	"fmt"
	"strings"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/sqlite"
)

// seed makes the generated questions the same in every run.
const seed = 7

// knownItems asks for known items of the messages of s in place of its own
// questions.
func (s *set) knownItems(each int) {
	if s.docs[""] == nil {
		s.join()
	}
	s.name, s.goal = s.name+", known items", nil
	s.queries = generate(s.docs[""], seed, each)
	for i := range s.queries {
		s.queries[i].Conversation = ""
	}
}

// maxOwn is how many messages of a store are measured, those of the sessions
// used last.
const maxOwn = 20_000

// ownSet returns the messages of the store at path. It only reads it.
func ownSet(ctx context.Context, path string) (*set, error) {
	st, err := sqlite.Open(path, sqlite.ReadOnly())
	if err != nil {
		return nil, err
	}
	defer st.Close()
	s := &set{name: "own", docs: map[string][]document{}}
	for in, err := range st.List(ctx, session.Query{}) {
		if err != nil {
			return nil, err
		}
		if len(s.docs[""]) >= maxOwn {
			break
		}
		for r, err := range st.Read(ctx, in.ID, 0) {
			if err != nil {
				return nil, err
			}
			if d, ok := ownDocument(in.ID, r); ok {
				s.docs[""] = append(s.docs[""], d)
			}
		}
	}
	if len(s.docs) == 0 {
		return nil, fmt.Errorf("%s holds no messages", path)
	}
	return s, nil
}

// ownDocument is a record of a store as a document, if it is a message.
func ownDocument(id session.ID, r session.Record) (document, bool) {
	m, ok := r.Body.(session.Message)
	if !ok {
		return document{}, false
	}
	d := document{ID: fmt.Sprintf("%s#%d", id, r.Seq), Session: string(id), Speaker: "assistant", Text: m.Text(), TS: r.Time}
	if m.Role == llm.User {
		d.Speaker = "user"
	}
	if results := m.Results(); len(results) > 0 {
		d.Speaker, d.Text = "tool", ""
		for _, res := range results {
			d.Text += res.Text() + "\n"
		}
	}
	return d, strings.TrimSpace(d.Text) != ""
}
