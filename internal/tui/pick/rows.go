package pick

import (
	"cmp"
	"slices"

	"goclaw/internal/naming"
	"goclaw/internal/transcript"
	"goclaw/internal/tui/fuzzy"
	"goclaw/recall"
	"goclaw/session"
)

// row is a session.
type row struct {
	session.Info
	title string     // as it is shown; the key if there is none
	text  fuzzy.Text // the title, the key and the folder
	gone  bool       // in the trash
}

func newRow(in session.Info) *row {
	r := &row{Info: in}
	r.call(in.Title)
	return r
}

// call gives the row a title.
func (r *row) call(title string) {
	r.Title = title
	if r.title = name(title); r.Origin.Mark != "" {
		r.title = "[" + name(r.Origin.Mark) + "] " + r.title
	}
	r.title = cmp.Or(r.title, name(r.Key))
	r.text = fuzzy.Fold(r.title + " " + name(r.Key) + " " + name(transcript.Tilde(r.CWD)))
}

// rows are the sessions that are loaded, the latest first, and those of them that
// are shown.
type rows struct {
	all   []*row
	byID  map[session.ID]*row
	hits  map[session.ID]recall.Hit // what was found in them
	found []session.ID              // the same, the best first
	shown []*row
	query fuzzy.Pattern
	here  string // only sessions of this folder; "": all
	in    func(folder string) bool
}

// add adds sessions. One that there is already becomes what it is now.
func (r *rows) add(front bool, infos ...session.Info) {
	if r.byID == nil {
		r.byID = map[session.ID]*row{}
	}
	var fresh []*row
	for _, in := range infos {
		if old := r.byID[in.ID]; old != nil {
			old.Info = in
			old.call(in.Title)
			continue
		}
		n := newRow(in)
		r.byID[in.ID] = n
		fresh = append(fresh, n)
	}
	if front {
		r.all = append(fresh, r.all...)
	} else {
		r.all = append(r.all, fresh...)
	}
}

// filter computes what is shown: the sessions that fit the query, the best first,
// then those in which only what was said does.
func (r *rows) filter() {
	type scored struct {
		*row
		score int
	}
	var fits []scored
	seen := map[session.ID]bool{}
	for _, row := range r.all {
		if row.gone || r.here != "" && !r.in(row.CWD) {
			continue
		}
		if score, ok := r.query.Score(row.text); ok {
			fits = append(fits, scored{row, score})
			if len(r.found) > 0 {
				seen[row.ID] = true
			}
		}
	}
	if !r.query.Empty() {
		slices.SortStableFunc(fits, func(a, b scored) int { return b.score - a.score })
	}
	r.shown = make([]*row, len(fits), len(fits)+len(r.found))
	for i, f := range fits {
		r.shown[i] = f.row
	}
	for _, id := range r.found {
		if row := r.byID[id]; row != nil && !seen[id] && !row.gone && (r.here == "" || r.in(row.CWD)) {
			r.shown = append(r.shown, row)
		}
	}
}

// only shows the sessions of a folder, or all if that is "".
func (r *rows) only(folder string) { r.here, r.in = folder, naming.InFolder(folder) }

// any reports whether there are sessions of the folder.
func (r *rows) any() bool {
	return slices.ContainsFunc(r.all, func(row *row) bool { return r.in(row.CWD) })
}

// count returns how many there are that could be shown.
func (r *rows) count() (n int) {
	for _, row := range r.all {
		if !row.gone {
			n++
		}
	}
	return n
}

// take takes what a search has found.
func (r *rows) take(hits []recall.Hit) {
	r.hits, r.found = map[session.ID]recall.Hit{}, nil
	for _, h := range hits {
		if _, ok := r.hits[h.Session]; ok || h.Session == "" || h.Near {
			continue
		}
		r.hits[h.Session] = h
		r.found = append(r.found, h.Session)
	}
}
