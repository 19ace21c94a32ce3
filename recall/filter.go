package recall

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"goclaw/internal/naming"
	"goclaw/recall/internal/postings"
	"goclaw/session"
)

// Filter narrows a search by what people and models type. The zero value of
// each field allows everything.
type Filter struct {
	Session string // see Query.Within
	Agent   string
	Folder  string // an absolute path
	Source  string
	Tool    string
	Role    string
	Since   string // see Moment
	Until   string // the same; a day, month or year is included
}

// FilterError says that a field of a Filter cannot be understood. Its text
// begins with the name of the field.
type FilterError struct {
	Field string
	Err   error
}

func (e *FilterError) Error() string { return e.Field + " " + e.Err.Error() }
func (e *FilterError) Unwrap() error { return e.Err }

// Apply narrows q to what f says. Search reports an agent, a folder, a program
// or a tool that there is not.
func (f Filter) Apply(ctx context.Context, st session.Store, now time.Time, q *Query) (err error) {
	q.Agent, q.Folder, q.Source, q.Tool = f.Agent, f.Folder, f.Source, f.Tool
	switch q.Role = Role(strings.ToLower(f.Role)); q.Role {
	case "", User, Assistant, Output, Summary:
	default:
		return &FilterError{"role", fmt.Errorf("must be user, assistant, tool or summary, not %q", f.Role)}
	}
	if f.Since != "" {
		if q.Since, err = Moment(f.Since, now); err != nil {
			return &FilterError{"since", err}
		}
	}
	if f.Until != "" {
		if q.Until, err = momentEnd(f.Until, now); err != nil {
			return &FilterError{"until", err}
		}
		if !q.Since.IsZero() && !q.Since.Before(q.Until) {
			return &FilterError{"until", fmt.Errorf("must be later than since: %q is not after %q", f.Until, f.Since)}
		}
	}
	if f.Session != "" {
		return q.Within(ctx, st, f.Session)
	}
	return nil
}

// ofSessions reports whether q is about some sessions only.
func (q *Query) ofSessions() bool {
	return q.Session != "" || q.Key != "" || q.Agent != "" || q.Folder != "" || q.Source != ""
}

// wants reports whether q is about what was said like s.
func (q *Query) wants(s said) bool {
	return (q.Role == "" || s.role == q.Role) &&
		(q.Since.IsZero() || !s.at.Before(q.Since)) && (q.Until.IsZero() || s.at.Before(q.Until)) &&
		(q.Tool == "" || slices.ContainsFunc(s.tools, func(name string) bool { return postings.ToolTerm(name) == postings.ToolTerm(q.Tool) }))
}

// sessions lists the sessions that q is about, those used last first. There is
// an error if no session has the agent, folder or program that q names.
func (q *Query) sessions(ctx context.Context, st session.Store) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		below, none := naming.InFolder(q.Folder), true
		for in, err := range st.List(ctx, session.Query{ID: q.Session, Key: q.Key, Agent: q.Agent}) {
			if err != nil {
				yield(in, err)
				return
			}
			if q.Folder != "" && !below(in.CWD) || q.Source != "" && !strings.EqualFold(q.Source, sourceOf(in)) {
				continue
			}
			none = false
			if !yield(in, nil) {
				return
			}
		}
		if none {
			if err := q.unknown(ctx, st); err != nil {
				yield(session.Info{}, err)
			}
		}
	}
}

// sourceOf returns the program that a session is of.
func sourceOf(in session.Info) string { return cmp.Or(in.Origin.Program, "goclaw") }

// maxNamed is how many values an error names.
const maxNamed = 8

// unknown returns an error if no session has the agent, folder or program that
// q names: it tells which there are.
func (q *Query) unknown(ctx context.Context, st session.Store) error {
	if q.Agent == "" && q.Folder == "" && q.Source == "" {
		return nil
	}
	var all []session.Info
	for in, err := range st.List(ctx, session.Query{}) {
		if err != nil {
			return err
		}
		all = append(all, in)
	}
	below := naming.InFolder(q.Folder)
	for _, f := range []struct {
		want, none string
		of         func(session.Info) string
		fits       func(string) bool
	}{
		{q.Agent, "there is no agent", func(in session.Info) string { return in.Key.Parts().Agent }, func(v string) bool { return v == q.Agent }},
		{q.Folder, "no session worked in", func(in session.Info) string { return in.CWD }, below},
		{q.Source, "there is no session from", sourceOf, func(v string) bool { return strings.EqualFold(v, q.Source) }},
	} {
		if f.want == "" || slices.ContainsFunc(all, func(in session.Info) bool { return f.fits(f.of(in)) }) {
			continue
		}
		var there []string
		for _, in := range all {
			if v := f.of(in); v != "" && !slices.Contains(there, v) {
				there = append(there, v)
			}
		}
		return session.NotFound("%s %q%s", f.none, f.want, thereAre(there))
	}
	return nil
}

// thereAre names values for an error.
func thereAre(values []string) string {
	more := ""
	switch n := len(values); {
	case n == 0:
		return ""
	case n > maxNamed:
		values, more = values[:maxNamed], fmt.Sprintf(" and %d more", n-maxNamed)
	}
	return "; there are " + strings.Join(values, ", ") + more
}

// filter returns which docs of segs the query allows.
func (s *search) filter(ctx context.Context, segs []*postings.Segment) (func(postings.Doc) bool, error) {
	q := s.q
	var groups map[uint32]bool
	if q.ofSessions() {
		ids := map[session.ID]bool{}
		for in, err := range q.sessions(ctx, s.o.Store) {
			if err != nil {
				return nil, err
			}
			ids[in.ID] = true
		}
		groups = map[uint32]bool{}
		for g, id := range s.messages.ids {
			if ids[id] {
				groups[g] = true
			}
		}
	}
	var using map[uint64]bool
	if q.Tool != "" {
		var err error
		if using, err = usingTool(segs, q.Tool); err != nil {
			return nil, err
		}
	}
	since, until := q.Since.Unix(), q.Until.Unix()
	return func(d postings.Doc) bool {
		switch {
		case groups != nil && !groups[d.Group],
			!q.Since.IsZero() && d.Time() < since,
			!q.Until.IsZero() && d.Time() >= until,
			q.Role != "" && roleOf(d) != q.Role,
			using != nil && !using[placeOf(d)]:
			return false
		}
		return true
	}, nil
}

// placeOf is the group and the place of d.
func placeOf(d postings.Doc) uint64 { return uint64(d.Group)<<32 | uint64(d.Seq) }

// usingTool returns the places of the docs that call a tool or are its output.
// A tool that was never called is an error, which tells which were.
func usingTool(segs []*postings.Segment, name string) (map[uint64]bool, error) {
	using := map[uint64]bool{}
	var ps []postings.Posting
	for _, seg := range segs {
		list, _, err := seg.List(postings.ToolTerm(name))
		if err != nil {
			return nil, err
		}
		if list == nil {
			continue
		}
		if ps, err = seg.Decode(list, ps[:0]); err != nil {
			return nil, err
		}
		for _, p := range ps {
			using[placeOf(seg.Docs[p.At])] = true
		}
	}
	if len(using) > 0 {
		return using, nil
	}
	there := map[string]bool{}
	for _, seg := range segs {
		names, err := seg.Tools()
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			there[n] = true
		}
	}
	return nil, session.NotFound("no tool %q was ever called%s", name, thereAre(slices.Sorted(maps.Keys(there))))
}
