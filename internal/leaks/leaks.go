// Package leaks finds secrets in the logs of sessions and in memory files, and makes
// the redactions that take them out of what is read of a session. What a secret
// looks like, internal/secrets knows.
package leaks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"goclaw/internal/memoryfiles"
	"goclaw/internal/secrets"
	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Leak is a secret that was found. Programs read it.
type Leak struct {
	Key     session.Key `json:"key,omitempty"`
	ID      session.ID  `json:"id,omitempty"`
	Seq     session.Seq `json:"record,omitempty"`
	Trashed bool        `json:"trashed,omitempty"`
	File    string      `json:"file,omitempty"` // a memory file
	Line    int         `json:"line,omitempty"`
	Rule    string      `json:"rule"`
	Preview string      `json:"preview"`
}

// String is the line that people read.
func (l Leak) String() string {
	at := fmt.Sprintf("%s:%d", l.File, l.Line)
	if l.File == "" {
		at = fmt.Sprintf("%s %s#%d", l.Key, l.ID, l.Seq)
	}
	if l.Trashed {
		at += " (in the trash)"
	}
	return fmt.Sprintf("%s  %s  %s", transcript.Printable(at), l.Rule, l.Preview)
}

// Finder finds secrets in a text. The text of a JSON value has its texts
// escaped.
type Finder func(text string) []secrets.Match

// Literally finds a text as it is written, and as JSON writes it.
func Literally(text string) Finder {
	forms := []string{text}
	if quoted, err := json.Marshal(text); err == nil {
		var plain strings.Builder
		enc := json.NewEncoder(&plain)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(text) // a string has no error
		for _, form := range []string{string(quoted[1 : len(quoted)-1]), strings.Trim(strings.TrimSpace(plain.String()), `"`)} {
			if form != "" && form != forms[0] {
				forms = append(forms, form)
			}
		}
	}
	return func(in string) (found []secrets.Match) {
		for at := 0; at < len(in); {
			next, end := -1, 0
			for _, form := range forms {
				if i := strings.Index(in[at:], form); i >= 0 && (next < 0 || at+i < next) {
					next, end = at+i, at+i+len(form)
				}
			}
			if next < 0 {
				break
			}
			found = append(found, secrets.Match{Rule: "text", Start: next, End: end})
			at = end
		}
		return found
	}
}

// inLog returns the secrets in the log of in, and the redaction that takes
// them out.
func inLog(ctx context.Context, st session.Store, in session.Info, find Finder) (leaks []Leak, b session.Redaction, err error) {
	report := func(r session.Record, m secrets.Match, text string) {
		leaks = append(leaks, Leak{Key: in.Key, ID: in.ID, Seq: r.Seq, Trashed: !in.Trashed.IsZero(), Rule: m.Rule, Preview: secrets.Mask(text[m.Start:m.End])})
	}
	target := func(t session.Target) {
		if len(t.Spans) > 0 && t.ID != "" {
			b.Targets = append(b.Targets, t)
		}
	}
	var parts []session.Record // of one answer
	flush := func() {
		for _, t := range inParts(parts, find, report) {
			target(t)
		}
		parts = nil
	}
	for r, err := range session.Undamaged(st.Read(ctx, in.ID, 0), func(*session.Damage) {}) {
		if err != nil {
			return leaks, b, err
		}
		if p, ok := r.Body.(session.Partial); ok {
			if p.Offset == 0 {
				flush()
			}
			parts = append(parts, r)
			continue
		}
		t := session.Target{ID: r.ID}
		r.Texts(func(field, text string) string {
			for _, m := range find(text) {
				report(r, m, text)
				t.Spans = append(t.Spans, session.Span{Field: field, Start: m.Start, End: m.End, Rule: m.Rule})
			}
			return text
		})
		target(t)
	}
	flush()
	return leaks, b, nil
}

// inParts finds the secrets in an answer that was recorded in parts. One
// may begin in one part and end in the next.
func inParts(parts []session.Record, find Finder, report func(session.Record, secrets.Match, string)) []session.Target {
	targets := make([]session.Target, len(parts))
	for _, field := range []string{"thinking", "text"} {
		whole, starts := "", make([]int, len(parts))
		for i, r := range parts {
			starts[i] = len(whole)
			r.Texts(func(f, text string) string {
				if f == field {
					whole += text
				}
				return text
			})
		}
		for _, m := range find(whole) {
			reported := false
			for i, r := range parts {
				end := len(whole)
				if i+1 < len(parts) {
					end = starts[i+1]
				}
				from, to := max(m.Start, starts[i]), min(m.End, end)
				if from >= to {
					continue
				}
				if !reported {
					report(r, m, whole)
					reported = true
				}
				targets[i].ID = r.ID
				targets[i].Spans = append(targets[i].Spans, session.Span{Field: field, Start: from - starts[i], End: to - starts[i], Rule: m.Rule})
			}
		}
	}
	return targets
}

// maxMemoryFile is the largest memory file that is scanned.
const maxMemoryFile = 64 << 20

// inMemory returns the secrets in the memory files of the workspace, and
// how many files there are.
func inMemory(workspace string, find Finder) (leaks []Leak, files int, err error) {
	scan := func(path string) error {
		data, err := wholefile.Read(path, maxMemoryFile)
		if err != nil {
			return err
		}
		files++
		text := string(data)
		for _, m := range find(text) {
			leaks = append(leaks, Leak{File: path, Line: 1 + strings.Count(text[:m.Start], "\n"), Rule: m.Rule, Preview: secrets.Mask(text[m.Start:m.End])})
		}
		return nil
	}
	if err := scan(filepath.Join(workspace, memoryfiles.Main)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, files, err
	}
	err = filepath.WalkDir(filepath.Join(workspace, memoryfiles.Dir), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || !d.Type().IsRegular() || !memoryfiles.IsText(path):
			return err
		}
		return scan(path)
	})
	return leaks, files, err
}

// Scan is what goclaw secrets looks at.
type Scan struct {
	Leaks    []Leak
	Sessions []session.Info
	Found    map[session.ID]session.Redaction
	Files    int
}

// Look scans sessions of st, and the memory files of a workspace unless it is "".
func Look(ctx context.Context, st session.Store, infos []session.Info, workspace string, find Finder) (s Scan, err error) {
	s.Sessions, s.Found = infos, map[session.ID]session.Redaction{}
	for _, in := range s.Sessions {
		leaks, b, err := inLog(ctx, st, in, find)
		if err != nil {
			return s, fmt.Errorf("session %s: %w", in.ID, err)
		}
		s.Leaks = append(s.Leaks, leaks...)
		if len(b.Targets) > 0 {
			s.Found[in.ID] = b
		}
	}
	if workspace != "" {
		var more []Leak
		if more, s.Files, err = inMemory(workspace, find); err != nil {
			return s, err
		}
		s.Leaks = append(s.Leaks, more...)
	}
	return s, nil
}

// Where says what was scanned.
func (s Scan) Where() string {
	text := transcript.Count(len(s.Sessions), "session")
	if s.Files > 0 {
		text += " and " + transcript.Count(s.Files, "memory file")
	}
	return text
}

// Redact appends b to the log of in, and a title without secrets if it
// has one with them.
func Redact(ctx context.Context, st session.Store, in session.Info, b session.Redaction, find Finder) error {
	s, err := session.Open(ctx, st, in.ID)
	if err != nil {
		return err
	}
	if _, err := session.Keep(ctx, st, s, s.Next(b, session.System{}), session.System{}); err != nil {
		return err
	}
	title := secrets.Replace(s.Title, find(s.Title))
	if title == s.Title {
		return nil
	}
	_, err = session.Keep(ctx, st, s, s.Next(session.Title{Title: title}, session.System{}), session.System{})
	return err
}
