package inherit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/codec"
	"goclaw/session"
)

// The first GoClaw kept its sessions in a database of two tables: sessions, by
// key, and messages, a row for each record. Its design gives a row a type and
// data; the program that was published has a column for each field instead, and
// tables of their own for checkpoints and compactions. Both are read.

// earlierName is how the first GoClaw names its database.
const earlierName = "sessions.db"

// earlier returns the query for the records of a session, if d is a database of
// the first GoClaw. Its columns: timestamp, id, parent, type and data.
func (d *database) earlier() (query string, ok bool) {
	if !d.tables["sessions"] || !d.tables["messages"] {
		return "", false
	}
	switch {
	case d.has("messages", "id", "session_key", "parent_id", "type", "timestamp", "data"):
		query = "SELECT timestamp, id, parent_id, type, data, 0 AS part, rowid AS n FROM messages WHERE session_key = $1"
	case d.has("messages", "id", "session_key", "parent_id", "role", "timestamp", "content", "tool_call_id", "tool_name", "tool_input", "tool_result", "tool_is_error"):
		query = `SELECT timestamp, id, parent_id, role AS type, json_object('content', content, 'id', tool_call_id, 'name', tool_name,
			'input', tool_input, 'result', tool_result, 'isError', tool_is_error) AS data, 0 AS part, rowid AS n FROM messages WHERE session_key = $1`
		if d.tables["compactions"] {
			query += ` UNION ALL SELECT timestamp, id, parent_id, 'compaction', json_object('summary', summary, 'firstKeptEntryId', first_kept_entry_id,
				'tokensBefore', tokens_before), 1, rowid FROM compactions WHERE session_key = $1`
		}
		if d.tables["checkpoints"] {
			query += ` UNION ALL SELECT timestamp, id, parent_id, 'checkpoint', json_object('summary', summary, 'tokensAtCheckpoint', tokens_at_checkpoint,
				'messageCountAtCheckpoint', message_count_at_checkpoint, 'topics', json(topics), 'keyDecisions', json(key_decisions),
				'openQuestions', json(open_questions)), 2, rowid FROM checkpoints WHERE session_key = $1`
		}
	default:
		return "", false
	}
	return query + " ORDER BY timestamp, part, n LIMIT $2 OFFSET $3", true
}

// has reports whether a table has all of the columns.
func (d *database) has(table string, columns ...string) bool {
	found := map[string]bool{}
	err := d.each("SELECT name FROM pragma_table_info($1)", []any{table}, func(s *sqlite3.Stmt) error {
		found[s.ColumnText(0)] = true
		return nil
	})
	return err == nil && !slices.ContainsFunc(columns, func(c string) bool { return !found[c] })
}

// earlierSessions returns the transcripts of a database of the first GoClaw.
// Where its sessions have no id, one is made of the key: a copy of the database
// has the same.
func (d *database) earlierSessions() (out []*Transcript, err error) {
	columns := "key, created_at, '', '{}'"
	switch {
	case d.has("sessions", "id"):
		columns = "key, created_at, id, '{}'"
	case d.has("sessions", "metadata"):
		columns = "key, created_at, '', metadata"
	}
	err = d.each("SELECT "+columns+", (SELECT count(*) FROM messages WHERE session_key = sessions.key) FROM sessions ORDER BY key", nil, func(s *sqlite3.Stmt) error {
		key, id := s.ColumnText(0), session.ID(s.ColumnText(2))
		if !goodID(id) {
			id = session.ID(fmt.Sprintf("goclaw-%x", sha256.Sum256([]byte(key)))[:23])
		}
		var meta struct{ Title, Label string }
		_ = json.Unmarshal(s.ColumnRawText(3), &meta) // what else is in it is the program's own
		out = append(out, &Transcript{
			Program: EarlierGoclaw, Path: d.path, ID: id, Key: session.Key(text(key)), Title: or(meta.Title, meta.Label), Size: (s.ColumnInt64(4) + 1) * 512,
			stat: d.snap.stat, form: codec.FormNative, old: d, window: key, begun: unixTime(s.ColumnInt64(1)), listed: true,
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

// earlierRow is a row of the query that earlier returns.
type earlierRow struct {
	id, parent, kind string
	at               time.Time
	data             []byte
}

// earlierRecords yields the records of t, header first.
func (d *database) earlierRecords(ctx context.Context, t *Transcript) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		h := *t.header()
		h.Key = t.Key
		n := session.Seq(1)
		if !yield(session.Record{Seq: n, Time: t.begun, Body: h}, nil) {
			return
		}
		for at := int64(0); ; at += pieceRows {
			var rows []earlierRow
			err := d.read(func() error {
				rows = rows[:0]
				query, ok := d.earlier()
				if !ok {
					return errors.New("its tables are no longer there")
				}
				return d.each(query, []any{t.window, int64(pieceRows), at}, func(s *sqlite3.Stmt) error {
					r := earlierRow{at: unixTime(s.ColumnInt64(0)), id: s.ColumnText(1), parent: s.ColumnText(2), kind: s.ColumnText(3), data: bytes.Clone(s.ColumnRawText(4))}
					rows = append(rows, r)
					return nil
				})
			})
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(session.Record{}, fmt.Errorf("%s: %w", d.path, err))
				return
			}
			for i, r := range rows {
				t.counted(len(r.data))
				line, err := r.line()
				rec, err := event(line, err)
				if err != nil {
					if !yield(session.Record{}, &session.Damage{File: d.path + "#" + t.window, Line: int(at) + i + 1, After: n, Size: int64(len(r.data)), Reason: err.Error()}) {
						return
					}
					continue
				}
				n++
				rec.Seq = n
				if !yield(rec, nil) {
					return
				}
			}
			if len(rows) < pieceRows {
				return
			}
		}
	}
}

// line returns the row as a native line. Its data may be the whole line, what
// its type wraps, or the columns of a message.
func (r earlierRow) line() ([]byte, error) {
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
func (r earlierRow) message() json.RawMessage {
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
		content := []object{{"type": "toolCall", "id": c.ID, "name": c.Name, "arguments": arguments(json.RawMessage(c.Input))}}
		if c.Content != "" {
			content = append([]object{{"type": "text", "text": c.Content}}, content...)
		}
		m["content"] = content
	case "tool_result":
		m["role"], m["toolCallId"], m["toolName"], m["isError"] = "toolResult", c.ID, c.Name, c.IsError != 0
		m["content"] = []object{{"type": "text", "text": or(c.Result, c.Content)}}
	}
	out, _ := json.Marshal(m)
	return out
}
