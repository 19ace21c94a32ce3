package jsonl

import (
	"bytes"
	"io"

	"goclaw/internal/codec"
	"goclaw/session"
)

// scan reads f from the mark from to end. name stands for f in damage.
func (s *Store) scan(name string, f io.ReaderAt, from mark, end int64) *codec.Scanner {
	return codec.NewScanner(name, io.NewSectionReader(f, from.off, end-from.off),
		codec.Options{Form: s.layout.form(), Offset: from.off, Line: from.line - 1, After: from.seq - 1})
}

// readBack returns the records that the lines b will be read as.
func (s *Store) readBack(b []byte) ([]session.Record, error) {
	var recs []session.Record
	for line := range bytes.SplitSeq(b, []byte("\n")) {
		r, err := s.codec.Decode(line)
		if err != nil {
			return nil, err
		}
		recs = append(recs, r...)
	}
	return recs, nil
}
