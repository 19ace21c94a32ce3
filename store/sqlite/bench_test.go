package sqlite

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/storetest"
)

// BenchmarkOpen is what listing a small store costs, from opening to closing.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "sessions.db")
	s := at(b, path)
	talk(b, s, "s1", 20)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, err := range s.List(bg, session.Query{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if err := s.Close(); err != nil || n != 1 {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkList lists 10,000 sessions.
func BenchmarkList(b *testing.B) {
	s := at(b, filepath.Join(b.TempDir(), "sessions.db"))
	const many = 10_000
	for seed := range uint64(many) {
		recs := slices.Collect(storetest.Conversation(seed+1, 5))
		if err := s.Append(bg, storetest.ConversationID(seed+1), recs...); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		n := 0
		for _, err := range s.List(bg, session.Query{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != many {
			b.Fatalf("%d of %d sessions are listed", n, many)
		}
	}
}

// BenchmarkRead reads a log of 20,000 records.
func BenchmarkRead(b *testing.B) {
	s := at(b, filepath.Join(b.TempDir(), "sessions.db"))
	var recs []session.Record
	for r := range storetest.Conversation(1, 20_000) {
		recs = append(recs, r)
	}
	id := recs[0].Body.(session.Header).ID
	if err := s.Append(bg, id, recs...); err != nil {
		b.Fatal(err)
	}
	size := 0
	for b.Loop() {
		size = 0
		for r, err := range s.Read(bg, id, 0) {
			if err != nil {
				b.Fatal(err)
			}
			size += len(r.Raw)
		}
	}
	b.SetBytes(int64(size))
}

// BenchmarkAppendMany appends 1,000 short records to each of many logs.
func BenchmarkAppendMany(b *testing.B) {
	s := at(b, filepath.Join(b.TempDir(), "sessions.db"))
	logs := 0
	for b.Loop() {
		logs++
		recs := make([]session.Record, 1000)
		id := session.ID(fmt.Sprint("log", logs))
		for i := range recs {
			recs[i] = session.Record{Seq: session.Seq(i + 1), Time: time.Unix(int64(i), 0).UTC(), Body: session.Header{Version: session.Version, ID: id, Key: "main:cli:x"}}
			if i > 0 {
				m := session.Message{Message: llm.UserText("as long as what people write to each other in chats, about so much")}
				recs[i].ID, recs[i].Parent, recs[i].Body = fmt.Sprintf("1785578400%05d_%08x", i, i*7919), recs[i-1].ID, m
			}
		}
		if err := s.Append(bg, id, recs...); err != nil {
			b.Fatal(err)
		}
	}
}
