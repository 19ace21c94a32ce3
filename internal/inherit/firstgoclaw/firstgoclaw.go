// Package firstgoclaw reads the database of the first program of that name: two
// tables, sessions by key, and messages, a row for each record. Its design gives
// a row a type and data; the program that was published has a column for each
// field instead, and separate tables for checkpoints and compactions. Both
// are read.
package firstgoclaw

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
	"goclaw/internal/sqlx"
	"goclaw/session"
)

// Program is its name.
const Program = "goclaw-sqlite"

// New returns the first GoClaw as a source.
func New() source.Source { return program{} }

type program struct{}

func (program) Program() string { return Program }

// Places has none: its usual place is that of goclaw's own database.
func (program) Places(string, func(string) string) []string { return nil }

func (program) Sniff(source.Line, *source.Sniffed) (mine, done bool) { return false, false }

func (program) Named(name string) bool { return name == "sessions.db" }

func (program) Open(f *source.File) ([]*source.Transcript, error) {
	if f.DB == nil {
		return nil, nil
	}
	d := database{f.DB}
	if _, ok := d.query(); !ok {
		return nil, nil
	}
	return d.sessions()
}

type database struct{ *source.Database }

// query returns the query for the records of a session, if d is a database of
// the first GoClaw. Its columns: timestamp, id, parent, type and data.
func (d database) query() (query string, ok bool) {
	if !d.Tables["sessions"] || !d.Tables["messages"] {
		return "", false
	}
	switch {
	case d.Has("messages", "id", "session_key", "parent_id", "type", "timestamp", "data"):
		query = "SELECT timestamp, id, parent_id, type, data, 0 AS part, rowid AS n FROM messages WHERE session_key = $1"
	case d.Has("messages", "id", "session_key", "parent_id", "role", "timestamp", "content", "tool_call_id", "tool_name", "tool_input", "tool_result", "tool_is_error"):
		query = `SELECT timestamp, id, parent_id, role AS type, json_object('content', content, 'id', tool_call_id, 'name', tool_name,
			'input', tool_input, 'result', tool_result, 'isError', tool_is_error) AS data, 0 AS part, rowid AS n FROM messages WHERE session_key = $1`
		if d.Tables["compactions"] {
			query += ` UNION ALL SELECT timestamp, id, parent_id, 'compaction', json_object('summary', summary, 'firstKeptEntryId', first_kept_entry_id,
				'tokensBefore', tokens_before), 1, rowid FROM compactions WHERE session_key = $1`
		}
		if d.Tables["checkpoints"] {
			query += ` UNION ALL SELECT timestamp, id, parent_id, 'checkpoint', json_object('summary', summary, 'tokensAtCheckpoint', tokens_at_checkpoint,
				'messageCountAtCheckpoint', message_count_at_checkpoint, 'topics', json(topics), 'keyDecisions', json(key_decisions),
				'openQuestions', json(open_questions)), 2, rowid FROM checkpoints WHERE session_key = $1`
		}
	default:
		return "", false
	}
	return query + " ORDER BY timestamp, part, n LIMIT $2 OFFSET $3", true
}

// sessions returns the transcripts.
// Where its sessions have no id, one is made of the key: a copy of the database
// has the same.
func (d database) sessions() (out []*source.Transcript, err error) {
	columns := "key, created_at, '', '{}'"
	switch {
	case d.Has("sessions", "id"):
		columns = "key, created_at, id, '{}'"
	case d.Has("sessions", "metadata"):
		columns = "key, created_at, '', metadata"
	}
	err = d.Each("SELECT "+columns+", (SELECT count(*) FROM messages WHERE session_key = sessions.key) FROM sessions ORDER BY key", nil, func(s sqlx.Row) error {
		key, id := s.Text(0), session.ID(s.Text(2))
		if !source.GoodID(id) {
			id = session.ID(fmt.Sprintf("goclaw-%x", sha256.Sum256([]byte(key)))[:23])
		}
		var meta struct{ Title, Label string }
		_ = json.Unmarshal(s.ColumnRawText(3), &meta) // what else is in it is the program's own
		begun := unixTime(s.Int(1))
		out = append(out, &source.Transcript{
			Program: Program, Path: d.Path, ID: id, Key: session.Key(source.Text(key)), Title: cmp.Or(meta.Title, meta.Label), Size: (s.Int(4) + 1) * 512,
			Stat: d.Stat(), Form: codec.FormNative, Listed: true, Part: "0#" + key,
			Read: func(ctx context.Context, t *source.Transcript) iter.Seq2[session.Record, error] {
				return d.records(ctx, t, key, begun)
			},
		})
		return nil
	})
	return out, err
}

// unixTime reads seconds or, where that would be thousands of years off,
// milliseconds.
func unixTime(n int64) time.Time {
	if n > 1e11 || n < -1e11 {
		return time.UnixMilli(n).UTC()
	}
	return time.Unix(n, 0).UTC()
}

// pieceRows is how many rows are read at once.
const pieceRows = 500

// row is what the query gives.
type row struct {
	id, parent, kind string
	at               time.Time
	data             []byte
}

// records yields the records of t, header first.
func (d database) records(ctx context.Context, t *source.Transcript, key string, begun time.Time) iter.Seq2[session.Record, error] {
	h := *t.Header()
	h.Key = t.Key
	head := session.Record{Seq: 1, Time: begun, Body: h}
	head.Raw, _ = codec.Native.Encode(head) // without it, it is encoded when it is written
	at := 0
	next := func() (rows []source.Row, err error) {
		err = d.View(func() error {
			rows = nil
			query, ok := d.query()
			if !ok {
				return errors.New("its tables are no longer there")
			}
			return d.Each(query, []any{key, pieceRows, at}, func(s sqlx.Row) error {
				r := row{at: unixTime(s.Int(0)), id: s.Text(1), parent: s.Text(2), kind: s.Text(3), data: s.ColumnRawText(4)}
				line, err := r.line()
				if err != nil {
					line = bytes.Clone(r.data)
				}
				rows = append(rows, source.Row{Number: at + len(rows) + 1, Line: line, Err: err})
				return nil
			})
		})
		at += len(rows)
		return rows, err
	}
	return d.Records(ctx, t, key, next, func(session.Record) (session.Record, bool) { return head, true })
}

// line returns the row as a native line. Its data may be the whole line, what
// its type wraps, or the columns of a message.
func (r row) line() ([]byte, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(r.data, &fields) != nil || fields == nil {
		return nil, errors.New("data that is not a JSON object")
	}
	kind := r.kind
	switch {
	case fields["type"] != nil:
		_ = json.Unmarshal(fields["type"], &kind)
	case kind == "message" && fields["message"] == nil, kind == "checkpoint" && fields["checkpoint"] == nil:
		fields = map[string]json.RawMessage{kind: r.data}
	case kind == "user" || kind == "assistant" || kind == "system" || kind == "tool_use" || kind == "tool_result":
		fields = map[string]json.RawMessage{"message": r.message()}
		kind = "message"
	}
	for name, value := range map[string]string{"id": r.id, "parentId": r.parent, "timestamp": r.at.Format("2006-01-02T15:04:05.000Z")} {
		if fields[name] == nil && value != "" {
			fields[name], _ = json.Marshal(value)
		}
	}
	delete(fields, "type")
	first, _ := json.Marshal(kind)
	b := append([]byte(`{"type":`), first...)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		quoted, _ := json.Marshal(name)
		b = append(append(append(append(b, ','), quoted...), ':'), fields[name]...)
	}
	return append(b, '}'), nil
}

// message returns a message of which the row has columns.
func (r row) message() json.RawMessage {
	var c struct {
		Content, ID, Name, Input, Result string
		IsError                          int
	}
	_ = json.Unmarshal(r.data, &c)
	type object = map[string]any
	m := object{"role": r.kind, "content": []object{{"type": "text", "text": c.Content}}, "timestamp": r.at.UnixMilli()}
	switch r.kind {
	case "tool_use":
		m["role"] = "assistant"
		content := []object{{"type": "toolCall", "id": c.ID, "name": c.Name, "arguments": source.Arguments(json.RawMessage(c.Input))}}
		if c.Content != "" {
			content = append([]object{{"type": "text", "text": c.Content}}, content...)
		}
		m["content"] = content
	case "tool_result":
		m["role"], m["toolCallId"], m["toolName"], m["isError"] = "toolResult", c.ID, c.Name, c.IsError != 0
		m["content"] = []object{{"type": "text", "text": cmp.Or(c.Result, c.Content)}}
	}
	out, _ := json.Marshal(m)
	return out
}
