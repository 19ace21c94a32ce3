package inherit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"goclaw/internal/inherit/source"
	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Place is a folder where a program keeps its sessions.
type Place struct{ Program, Path string }

// Places returns where the known programs keep their sessions on this machine,
// whether they are there or not. home is the user's; without one, only what the
// programs' own variables name is known.
func Places(home string, getenv func(string) string) []Place {
	var out []Place
	for _, src := range newSources(nil) {
		for _, path := range src.Places(home, getenv) {
			out = append(out, Place{src.Program(), path})
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		return slices.Index(Programs, out[i].Program) < slices.Index(Programs, out[j].Program)
	})
	return out
}

// FindOptions say how sessions are looked for. The zero value finds out.
type FindOptions struct {
	From string   // one of Programs; "": detected from the files
	Skip []string // folders that are not looked into: our own
	Home string   // replaces "~" in an OpenClaw configuration
	Memo *Memo    // what is known from the last time, or nil
	// Sources make the programs to look for. nil: those that are known.
	Sources []func() source.Source
}

// Find looks through paths: files, folders and databases of any of the known
// programs. Missing places are skipped; one that cannot be read is a
// Problem. The transcripts are in the order in which Import needs them.
func Find(ctx context.Context, paths []string, o FindOptions) (*Catalogue, error) {
	f := &finder{ctx: ctx, o: o, c: &Catalogue{}, sources: newSources(o.Sources), seen: map[string]bool{}, walked: map[string]bool{}, files: map[string]*Transcript{}, indices: map[string]*source.Index{}, memo: o.Memo}
	if f.memo == nil {
		f.memo = NewMemo("")
	}
	for _, s := range o.Skip {
		if real, err := filepath.EvalSymlinks(s); err == nil {
			f.seen[real] = true
		}
	}
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		f.root(abs)
		if err := ctx.Err(); err != nil {
			f.c.Close()
			return nil, err
		}
	}
	f.tellStrangers()
	for _, i := range f.order {
		if ix := f.indices[i]; f.walked[ix.Dir] {
			if p, ok := ix.Missing(); ok {
				f.c.Problems = append(f.c.Problems, p)
			}
		}
	}
	slices.SortStableFunc(f.c.Transcripts, func(a, b *Transcript) int {
		if r := rank(a) - rank(b); r != 0 {
			return r
		}
		return strings.Compare(a.Ref(), b.Ref())
	})
	return f.c, nil
}

// rank puts first what keeps its own id: live before archived, a database before
// the files that it was made from.
func rank(t *Transcript) int {
	r := 0
	if !t.Database() {
		r++
	}
	switch t.Archive {
	case "":
	case "orphan", "window":
		r += 2
	default:
		r += 4
	}
	return r
}

type finder struct {
	ctx     context.Context
	o       FindOptions
	c       *Catalogue
	sources []source.Source
	seen    map[string]bool        // folders, by their real path
	walked  map[string]bool        // folders that were looked through
	files   map[string]*Transcript // that were looked at; nil where there is no transcript of lines
	indices map[string]*source.Index
	order   []string
	memo    *Memo

	strangers []Problem // files that are called like transcripts and are not
}

func (f *finder) problem(path string, err error) {
	f.c.Problems = append(f.c.Problems, source.Unreadable(path, err))
}

func (f *finder) root(path string) {
	fi, err := os.Stat(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			f.problem(path, err)
		}
		return
	}
	switch {
	case fi.IsDir():
		f.folder(path)
	case fi.Mode().IsRegular():
		f.file(path, fi, true)
	default:
		f.problem(path, fmt.Errorf("%s, not a file", wholefile.KindOf(fi.Mode())))
	}
}

// skipped are folders that hold no transcripts, or only copies of those that are
// found elsewhere.
var skipped = map[string]bool{"node_modules": true, ".git": true, "session-sqlite-import-archive": true, "cold": true}

// folder looks through a folder. Where a program keeps other things as well, it
// looks only where the sessions are.
func (f *finder) folder(dir string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		f.problem(dir, err)
		return
	}
	if f.seen[real] || f.ctx.Err() != nil {
		return
	}
	f.seen[real] = true
	list, err := os.ReadDir(dir)
	if err != nil {
		f.problem(dir, err)
		return
	}
	f.walked[dir] = true
	if names, elsewhere, ok := f.inside(dir); ok {
		for _, other := range elsewhere {
			f.folder(other)
		}
		list = slices.DeleteFunc(list, func(e fs.DirEntry) bool { return !slices.Contains(names, e.Name()) })
	}
	closed := false // a file without permission was reported, once for all
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if !skipped[e.Name()] {
				f.folder(path)
			}
		case e.Type()&fs.ModeSymlink != 0:
			fi, err := os.Stat(path)
			switch {
			case errors.Is(err, fs.ErrPermission):
				f.problem(path, err)
			case err != nil:
				f.problem(path, fmt.Errorf("broken symbolic link: %w", errors.Unwrap(err)))
			case fi.IsDir():
				f.folder(path)
			default:
				f.entry(path, fi)
			}
		case f.candidate(e.Name()):
			fi, err := e.Info()
			if err != nil {
				denied := errors.Is(err, fs.ErrPermission)
				if !errors.Is(err, fs.ErrNotExist) && !(denied && closed) {
					f.problem(path, err)
				}
				closed = closed || denied
				continue
			}
			f.entry(path, fi)
		}
	}
}

// inside returns what of dir is to be looked at, if it is a program's folder.
func (f *finder) inside(dir string) (names, elsewhere []string, ok bool) {
	for _, src := range f.sources {
		h, is := src.(source.Home)
		if !is {
			continue
		}
		names, elsewhere, ok, err := h.Inside(dir, f.o.Home)
		if err != nil {
			path := dir
			var p *fs.PathError
			if errors.As(err, &p) {
				path = p.Path
			}
			f.problem(path, err)
		}
		if ok {
			return names, elsewhere, true
		}
	}
	return nil, nil, false
}

func (f *finder) entry(path string, fi fs.FileInfo) {
	if !f.candidate(filepath.Base(path)) {
		return
	}
	if !fi.Mode().IsRegular() {
		f.problem(path, fmt.Errorf("%s, not a file", wholefile.KindOf(fi.Mode())))
		return
	}
	f.file(path, fi, false)
}

// candidate reports whether a file of this name can hold sessions.
func (f *finder) candidate(name string) bool {
	_, _, ok := source.ParseName(name)
	return ok || f.named(name)
}

// named reports whether a program has files of this name, which is not that of a
// transcript.
func (f *finder) named(name string) bool {
	return slices.ContainsFunc(f.sources, func(src source.Source) bool {
		n, ok := src.(source.Namer)
		return ok && n.Named(name)
	})
}

// file looks at one file. named: the user gave its path.
func (f *finder) file(path string, fi fs.FileInfo, named bool) {
	if t, again := f.files[path]; again { // two of the paths lead to it
		if t != nil {
			t.Named = t.Named || named
		}
		return
	}
	f.files[path] = nil
	file := &source.File{Path: path, Stat: source.StatOf(fi), Named: named, Forced: f.o.From != ""}
	file.Problem = func(p Problem) { f.c.Problems = append(f.c.Problems, p) }
	base := filepath.Base(path)
	id, archive, ok := source.ParseName(base)
	if !ok && file.Stat.Size == 0 && !named {
		return // its owner has not begun it
	}
	if (named || !ok) && source.IsDatabase(path) || strings.HasSuffix(base, ".sqlite") {
		f.database(file)
		return
	}
	if !ok {
		id = strings.TrimSuffix(base, filepath.Ext(base))
	}
	file.ID, file.Archive, file.Index = session.ID(source.Text(id)), archive, f.index(path)
	f.lines(file, ok)
}

// lines looks at a file of lines. called: it has the name of a transcript, so
// that it should be reported if it is not one.
func (f *finder) lines(file *source.File, called bool) {
	s, err := f.sniff(file)
	if err != nil {
		f.problem(file.Path, err)
		return
	}
	file.Sniffed = s
	if s.Zeros {
		f.problem(file.Path, errors.New("nothing but zeros, as a power failure leaves it: its content is lost"))
		return
	}
	if s.Begun && called && file.Named {
		f.problem(file.Path, errors.New("its first line is not complete: it is being written, or was cut off"))
	}
	if s.Begun && called || s.Bare && !file.Named {
		return
	}
	file.Forced = file.Forced && !s.Empty // an empty file says nothing, whoever wrote it
	found, err := f.open(file)
	switch {
	case err != nil:
		f.problem(file.Path, err)
	case len(found) > 0:
		f.files[file.Path] = found[0]
		f.c.Transcripts = append(f.c.Transcripts, found...)
	case s.Form != "": // its program does not want it
	case s.Empty:
		if file.Named {
			f.problem(file.Path, errors.New("an empty file"))
		}
	case file.Named || file.Archive != "" || file.Index != nil || source.AgentOf(file.Path) != "":
		f.problem(file.Path, stranger(s))
	case called && !aside[filepath.Base(file.Path)]:
		f.strangers = append(f.strangers, source.Unreadable(file.Path, stranger(s)))
	}
}

// open asks the program that wrote a file, or each one where the lines do not
// tell, for its transcripts.
func (f *finder) open(file *source.File) ([]*Transcript, error) {
	by := file.Sniffed.Program
	if f.o.From != "" && file.DB == nil {
		by = f.o.From
	}
	for _, src := range f.sources {
		if by != "" && by != src.Program() {
			continue
		}
		if found, err := src.Open(file); len(found) > 0 || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// database looks at a database.
func (f *finder) database(file *source.File) {
	d, err := source.OpenDatabase(file.Path)
	if err != nil {
		f.broken(file, err)
		return
	}
	file.DB = d
	found, err := f.open(file)
	if err != nil {
		f.problem(file.Path, err)
	} else if len(found) == 0 && file.Named {
		tables := slices.Sorted(maps.Keys(d.Tables))
		f.problem(file.Path, fmt.Errorf("not a known kind of session database: it has the tables %s", strings.Join(tables[:min(len(tables), maxTables)], ", ")))
	}
	if len(found) == 0 {
		d.Close()
		return
	}
	f.c.databases = append(f.c.databases, d)
	f.c.Transcripts = append(f.c.Transcripts, found...)
}

// broken looks at a database that SQLite cannot read. A source may find its
// sessions without it.
func (f *finder) broken(file *source.File, why error) {
	file.Broken = why
	found, err := f.open(file)
	if file.DB != nil {
		f.c.databases = append(f.c.databases, file.DB)
	}
	if err != nil || len(found) == 0 {
		f.problem(file.Path, why)
		return
	}
	f.c.Problems = append(f.c.Problems, Problem{Path: file.Path, What: fmt.Sprintf("%v: %d sessions were found in it page by page", why, len(found))})
	f.c.Transcripts = append(f.c.Transcripts, found...)
}

// maxTables is how many tables of an unknown database are named.
const maxTables = 8

// sniff looks into a file, unless it is remembered.
func (f *finder) sniff(file *source.File) (source.Sniffed, error) {
	if s, ok := f.memo.sniffed(file.Path, file.Stat); ok {
		return s, nil
	}
	r, err := (&Transcript{Path: file.Path}).Open()
	if err != nil {
		return source.Sniffed{}, err
	}
	defer r.Close()
	s, err := source.Sniff(r, f.sources)
	if err == nil {
		f.memo.setSniffed(file.Path, file.Stat, s)
	}
	return s, err
}

// index returns the index that lists the file at path, or nil.
func (f *finder) index(path string) *source.Index {
	dir := filepath.Dir(path)
	places := []string{filepath.Join(dir, "sessions.json")}
	if b := filepath.Base(dir); b == "sessions" || b == "transcripts" {
		places = append(places, filepath.Join(filepath.Dir(dir), "sessions.json"))
	}
	for _, p := range places {
		ix, ok := f.indices[p]
		if !ok {
			ix = f.readIndex(p, dir)
			f.indices[p] = ix
			if ix != nil {
				f.order = append(f.order, p)
			}
		}
		if ix != nil {
			return ix
		}
	}
	return nil
}

func (f *finder) readIndex(path, dir string) *source.Index {
	fi, err := os.Stat(path)
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s, not an index: its transcripts are imported without their keys", wholefile.KindOf(fi.Mode()))
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			f.problem(path, err)
		}
		return nil
	}
	st := source.StatOf(fi)
	if m, ok := f.memo.index(path); ok && m.Stat == st {
		return source.NewIndex(path, dir, m.program(), m.Entries)
	}
	var listers []source.Lister
	for _, src := range f.sources {
		if l, ok := src.(source.Lister); ok {
			listers = append(listers, l)
		}
	}
	ix, err := source.ReadIndex(path, dir, listers)
	if err != nil {
		p := source.Unreadable(path, err)
		p.What = "the index cannot be read, its transcripts are imported without their keys: " + p.What
		f.c.Problems = append(f.c.Problems, p)
		ix = source.NewIndex(path, dir, "", nil)
		ix.Unreadable = true
		return ix
	}
	f.memo.setIndex(path, memoIndex{Stat: st, Program: ix.Program, Entries: ix.Entries})
	return ix
}

// aside are files that programs keep next to their transcripts: input, names,
// the steps of a workflow.
var aside = map[string]bool{"history.jsonl": true, "session_index.jsonl": true, "journal.jsonl": true}

// stranger says that no source knows a file, and what it looks like.
func stranger(s source.Sniffed) error {
	return fmt.Errorf("not a known kind of transcript: %s", s.Looks)
}

// maxStrangers is how many such files are listed one by one, outside of agents'
// own folders.
const maxStrangers = 10

func (f *finder) tellStrangers() {
	if n := len(f.strangers); n > maxStrangers {
		p := f.strangers[0]
		p.What += fmt.Sprintf(" (and %d more files)", n-1)
		f.strangers = []Problem{p}
	}
	f.c.Problems = append(f.c.Problems, f.strangers...)
}
