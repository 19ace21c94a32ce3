package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"goclaw/internal/json5"
	"goclaw/internal/rawjson"
	shorten "goclaw/internal/text"
	"goclaw/session"
)

// A sessions.json is a projection for other programs. The store takes one thing
// from it: the keys of logs that have none, such as OpenClaw's.

// row is one member of a sessions.json: its name, and its value unchanged.
type row struct {
	name string
	val  []byte
}

// parseTable returns the members of a sessions.json, which people may have
// edited as JSON5.
func parseTable(b []byte) ([]row, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, nil
	}
	b, err := json5.Standardize(b)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errors.New("not an object"), err)
	}
	var rows []row
	for dec.More() {
		name, err := dec.Token()
		var val json.RawMessage
		if err = errors.Join(err, dec.Decode(&val)); err != nil {
			return nil, err
		}
		rows = append(rows, row{name.(string), val})
	}
	return rows, nil
}

// fields returns the value of a row, parsed.
func (r row) fields() *rawjson.Tape {
	t := new(rawjson.Tape)
	if t.Parse(r.val, false) != nil { // other programs may write invalid UTF-8
		if t.Parse(bytes.ToValidUTF8(r.val, []byte("?")), false) != nil {
			_ = t.Parse([]byte("null"), false)
		}
	}
	return t
}

// text returns a field that is a text, or "".
func (r row) text(name string) string {
	t := r.fields()
	return t.String(t.Get(0, name))
}

// ours reports whether goclaw has written to the row.
func (r row) ours() bool { return r.fields().Get(0, "goclaw") >= 0 }

// sessionOf returns the id of the session in a row.
func (y Layout) sessionOf(r row) session.ID {
	switch y {
	case OpenClaw:
		return session.ID(r.text("sessionId"))
	case Claw0Old:
		return session.ID(r.text("session_id"))
	}
	return session.ID(r.name)
}

// merge returns the text of a sessions.json for logs, given the rows that it
// has.
func (y Layout) merge(rows []row, logs []saved, dir string) []byte {
	want := map[string]saved{} // by the name of the row
	dead := map[session.ID]bool{}
	here := map[session.ID]string{} // the name of its row
	for _, l := range logs {
		if !l.main || l.info.Records == 0 {
			continue
		}
		if !l.info.Trashed.IsZero() {
			dead[l.id] = true
			continue
		}
		name := string(l.info.Key)
		if y == Claw0New {
			name = string(l.id)
		}
		here[l.id] = name
		if name == "" {
			continue
		}
		if w, ok := want[name]; !ok || later(l.info, w.info) {
			want[name] = l
		}
	}
	var out []row
	for _, r := range rows {
		id := y.sessionOf(r)
		l, ok := want[r.name]
		delete(want, r.name)
		switch {
		case ok && (id == l.id || dead[id] || y.updated(r).Before(l.info.Updated)):
			out = append(out, y.row(r, l, dir))
		case dead[id], r.ours() && here[id] != r.name:
			// The log is in the trash, or it was ours and is gone, or it has
			// another key now.
		default:
			out = append(out, r)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		out = append(out, y.row(row{name: name}, want[name], dir))
	}
	b := []byte("{")
	for i, r := range out {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n  "...)
		b = append(append(append(b, quote(r.name)...), ": "...), r.val...)
	}
	if len(out) > 0 {
		b = append(b, '\n')
	}
	return append(b, "}\n"...)
}

func later(a, b session.Info) bool {
	if a.Newer(b) || b.Newer(a) {
		return a.Newer(b)
	}
	return a.ID < b.ID
}

// updated returns the time of the last use in a row.
func (y Layout) updated(r row) time.Time {
	name := "updated_at"
	switch y {
	case OpenClaw:
		t := r.fields()
		return time.UnixMilli(int64(t.Float(t.Get(0, "updatedAt"))))
	case Claw0New:
		name = "last_active"
	}
	t, _ := time.Parse(time.RFC3339, r.text(name))
	return t
}

// fields returns the members of the row of l.
func (y Layout) fields(l saved, dir string) []field {
	const iso = "2006-01-02T15:04:05.000000+00:00"
	in, name := l.info, filepath.Base(l.live)
	var fs []field
	switch y {
	case OpenClaw:
		fs = []field{{"sessionId", in.ID}, {"updatedAt", in.Updated.UnixMilli()}, {"sessionFile", nil}, {"label", nil}}
		if name != string(in.ID)+ext { // else OpenClaw finds it by its id
			fs[2].val = filepath.Join(dir, l.live)
		}
		if in.Title != "" { // what OpenClaw shows
			fs[3].val = shorten.Head(in.Title, maxLabel)
		}
	case Claw0New:
		fs = []field{{"label", in.Title}, {"created_at", in.Created.UTC().Format(iso)}, {"last_active", in.Updated.UTC().Format(iso)}, {"message_count", l.view.lines}}
	case Claw0Old:
		fs = []field{{"session_key", in.Key}, {"session_id", in.ID}, {"created_at", in.Created.UTC().Format(iso)},
			{"updated_at", in.Updated.UTC().Format(iso)}, {"message_count", in.Turns}, {"transcript_file", name}}
	}
	own := struct {
		Title       string `json:"title,omitempty"`
		Model       string `json:"model,omitempty"`
		Turns       int    `json:"turns"`
		Records     int    `json:"records"`
		Compactions int    `json:"folds,omitempty"`
		Used        int    `json:"usedTokens,omitempty"`
	}{in.Title, in.ModelName(), in.Turns, in.Records, in.Compactions, in.Used}
	return append(fs, field{"goclaw", own})
}

// labelled returns the label that goclaw gave to a row.
func labelled(row *rawjson.Tape) string {
	return shorten.Head(row.String(row.Get(row.Get(0, "goclaw"), "title")), maxLabel)
}

// maxLabel is how long a label of OpenClaw's may be, in bytes.
const maxLabel = 64

type field struct {
	name string
	val  any // nil: none
}

// row returns r with the members that l has now.
func (y Layout) row(r row, l saved, dir string) row {
	fields := y.fields(l, dir)
	has := r.fields()
	if has.Kind(0) != rawjson.Object {
		var b bytes.Buffer
		sep := "{"
		for _, f := range fields {
			if f.val == nil {
				continue
			}
			fmt.Fprintf(&b, "%s\n    %s: %s", sep, quote(f.name), quote(f.val))
			sep = ","
		}
		b.WriteString("\n  }")
		return row{r.name, b.Bytes()}
	}
	for _, f := range fields {
		at := has.Get(0, f.name)
		var val []byte // nil: remove it
		if f.val != nil {
			val = quote(f.val)
		}
		switch {
		case f.name == "label" && has.String(at) != "" && (f.val == "" || y == OpenClaw && has.String(at) != labelled(has)):
			continue // the name is the other program's
		case f.name == "sessionFile" && has.Get(0, "goclaw") < 0 && filepath.Base(has.String(at)) == filepath.Base(l.live):
			continue
		case at < 0 && val == nil, at >= 0 && bytes.Equal(has.Raw(at), val):
			continue
		}
		if set, err := rawjson.Set(r.val, f.name, val); err == nil {
			r.val = set
		}
	}
	return r
}

// quote returns v as JSON.
func quote(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte("null") // cannot happen: there are only strings and numbers
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
