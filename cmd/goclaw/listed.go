package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"goclaw/internal/config"
	"goclaw/internal/models"
	"goclaw/internal/naming"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
	"goclaw/session"
)

// listing is a list of sessions that was printed with numbers.
type listing struct {
	At  time.Time    `json:"at"`
	IDs []session.ID `json:"ids"`
}

// lists prints lists of sessions with numbers, and knows what these stand for.
type lists struct{ *env }

// numbersLast is how long the numbers of a list can be used: nobody remembers
// yesterday's.
const numbersLast = 24 * time.Hour

func (l lists) listedFile() string { return filepath.Join(l.conf.Home, "listed.json") }

// terminalName tells terminals apart; "" if no stream is one.
func (l lists) terminalName() string {
	for _, stream := range []any{l.in, l.out, l.err} {
		if f, ok := terminal.File(stream); ok && terminal.Is(stream) {
			return ttyName(f)
		}
	}
	return ""
}

// parseListings reads lists by terminal. What cannot be read is forgotten.
func parseListings(data []byte) map[string]listing {
	all := map[string]listing{}
	if json.Unmarshal(data, &all) != nil {
		return map[string]listing{}
	}
	return all
}

// Show remembers which sessions were printed, by number, on this terminal.
func (l lists) Show(ids []session.ID) {
	err := wholefile.Update(l.listedFile(), func(old []byte) ([]byte, error) {
		all := parseListings(old)
		maps.DeleteFunc(all, func(_ string, l listing) bool { return time.Since(l.At) > 7*numbersLast })
		all[l.terminalName()] = listing{time.Now(), ids}
		return json.Marshal(all)
	})
	l.unsaved = nil
	if err != nil { // the numbers of another list are still there
		l.unsaved = ids
		l.warn("the numbers of this list are not remembered: %s", transcript.Problem(err))
	}
}

// Last returns the list that was printed last on this terminal, or on any other
// if none was printed here.
func (l lists) Last() naming.Listed {
	if l.unsaved != nil {
		return naming.Listed{IDs: l.unsaved}
	}
	data, err := wholefile.Read(l.listedFile(), 64<<20)
	if err != nil {
		return naming.Listed{}
	}
	all := parseListings(data)
	last, ok := all[l.terminalName()]
	if !ok && len(all) > 0 {
		last = slices.MaxFunc(slices.Collect(maps.Values(all)), func(a, b listing) int { return a.At.Compare(b.At) })
	}
	switch {
	case last.At.IsZero():
		return naming.Listed{}
	case time.Since(last.At) > numbersLast:
		return naming.Listed{Why: fmt.Sprintf("the last list, of %s, is too old: list the sessions again", last.At.Local().Format("2006-01-02 15:04"))}
	}
	return naming.Listed{IDs: last.IDs}
}

// listRows prepares sessions for a list.
func listRows(c *config.Loaded, infos []session.Info) []transcript.Row {
	rows := make([]transcript.Row, len(infos))
	known := map[string]int{}
	for i, in := range infos {
		name := in.ModelName()
		if _, ok := known[name]; !ok {
			known[name] = models.WindowOf(c, name)
		}
		rows[i] = transcript.Row{Info: in, Window: known[name]}
	}
	return rows
}

// printSessions prints sessions with numbers that can be used from now on.
func (l lists) printSessions(infos []session.Info) error {
	ids := make([]session.ID, len(infos))
	for i, in := range infos {
		ids[i] = in.ID
	}
	l.Show(ids)
	return l.print(transcript.Sessions(listRows(l.conf, infos), time.Now(), l.style(), l.columns())...)
}

// candidates says on standard error which sessions fit, if err is that several
// do. Their numbers can be used from now on.
func (l lists) candidates(err error) bool {
	var many *naming.AmbiguousError
	if !errors.As(err, &many) {
		return false
	}
	l.warn("%s", many.Brief())
	ids := make([]session.ID, len(many.Candidates))
	for i, in := range many.Candidates {
		ids[i] = in.ID
	}
	l.Show(ids)
	style := l.style()
	style.Colour = style.Colour && terminal.Is(l.err)
	for _, line := range transcript.Sessions(listRows(l.conf, many.Candidates), time.Now(), style, terminal.Columns(l.err)) {
		fmt.Fprintln(l.err, line)
	}
	transcript.Say(l.err, "  type its number, more of its key, or its id")
	return true
}

// findAll resolves refs, or lists all sessions if there are none: those in the
// trash last, if trash.
func (l lists) findAll(ctx context.Context, st session.Store, refs []string, trash bool) (infos []session.Info, err error) {
	for _, ref := range refs {
		in, err := naming.Find(ctx, st, ref, false, l.Last())
		if err != nil {
			return nil, err
		}
		infos = append(infos, in)
	}
	for _, q := range []session.Query{{}, {Trash: true}} {
		if len(refs) > 0 || q.Trash && !trash {
			break
		}
		for in, err := range st.List(ctx, q) {
			if err != nil {
				return nil, err
			}
			infos = append(infos, in)
		}
	}
	return infos, nil
}
