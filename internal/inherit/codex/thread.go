package codex

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
)

// A thread, which is what users know as a session, begins with a rollout file of
// its own name. If the user goes back to an earlier message, or forks the thread,
// a new file names the file that its past is in, and how much of it: that file
// may have a past of its own. The newest file of a thread is where it goes on.
//
// All files of a thread become one log, one after the other, and each continues
// where it says: what was thrown away is another branch. A fork gets a copy of
// its past, without what had been thrown away of that.

// base is where the past of a file is.
type base struct {
	Rollout string `json:"thread_id"` // despite its name
	End     int64  `json:"end_byte_offset"`
}

// rollouts are the files in a folder of Codex, or in any other folder.
type rollouts struct {
	byID    map[string]string   // the path of each rollout
	threads map[string][]string // the paths of a thread's, the oldest first
}

const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

// rolloutName has the ids of the thread and, of all but its first file, of the
// rollout.
var rolloutName = regexp.MustCompile(`^rollout-[0-9T-]+-(` + uuid + `)(?:_(` + uuid + `))?\.jsonl(?:\.zst)?$`)

// beside returns the rollouts that a file can belong to.
func (p *program) beside(path string) *rollouts {
	dir, ok := homeOf(path)
	roots := []string{filepath.Dir(path)}
	if ok {
		roots = nil
		for _, f := range folders {
			roots = append(roots, filepath.Join(dir, f))
		}
	} else {
		dir = roots[0]
	}
	if r, ok := p.rollouts[dir]; ok {
		return r
	}
	r := &rollouts{map[string]string{}, map[string][]string{}}
	p.rollouts[dir] = r
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // the search reports it
			}
			if e.IsDir() {
				if path != root && !ok {
					return fs.SkipDir
				}
				return nil
			}
			r.add(path)
			return nil
		})
	}
	for _, files := range r.threads {
		slices.SortFunc(files, func(a, b string) int { return cmp.Compare(filepath.Base(a), filepath.Base(b)) })
	}
	return r
}

// add takes in a file, unless there is another one of that rollout already.
func (r *rollouts) add(path string) {
	m := rolloutName.FindStringSubmatch(filepath.Base(path))
	if m == nil || source.HasTwin(path) {
		return
	}
	id := cmp.Or(m[2], m[1])
	if _, again := r.byID[id]; !again {
		r.byID[id] = path
		r.threads[m[1]] = append(r.threads[m[1]], path)
	}
}

// thread returns the files that f is one of, or nil if it stands alone.
func (p *program) thread(f *source.File) []string {
	m := rolloutName.FindStringSubmatch(filepath.Base(f.Path))
	if m == nil {
		if f.Sniffed.Past {
			return []string{f.Path}
		}
		return nil
	}
	r := p.beside(f.Path)
	files := r.threads[m[1]]
	if len(files) < 2 && !f.Sniffed.Past || !slices.Contains(files, f.Path) {
		return nil
	}
	return files
}

// span is a part of a file.
type span struct {
	path     string
	from, to int64 // to: 0 if it ends with the file
	at       *mark // where it goes on; nil: where the span before it ends
}

// mark is a place in a file: the end of the file, if off is 0.
type mark struct {
	path string
	off  int64
}

// root is where a file goes on whose past is missing.
var root = mark{}

// join makes t all of the files of a thread.
func (p *program) join(t *source.Transcript, files []string) error {
	spans, err := p.spans(t, files)
	if err != nil {
		return err
	}
	t.Pieces = []source.Piece{}
	for i, s := range spans {
		enter := func(to codec.Stream) {
			c := to.(*stream)
			if i > 0 {
				c.mark(mark{spans[i-1].path, spans[i-1].to})
			}
			if s.at != nil {
				c.resume(*s.at)
			}
		}
		t.Pieces = append(t.Pieces, source.Piece{Path: s.path, From: s.from, To: s.to, Enter: enter})
	}
	t.Size = 0
	for _, path := range files {
		fi, err := os.Stat(path)
		if err != nil {
			return err
		}
		st := source.StatOf(fi)
		if path == files[0] {
			t.Stat.Ino = st.Ino
		}
		t.Stat.MTime = max(t.Stat.MTime, st.MTime)
		t.Size += st.Size
	}
	t.Stat.Size, t.Stat.Extra = t.Size, int64(len(t.Pieces))
	return nil
}

// spans returns what the log of a thread is read from, in its order.
func (p *program) spans(t *source.Transcript, files []string) (out []span, err error) {
	known := p.beside(files[0])
	for _, path := range files {
		past, first, err := pastOf(path)
		if err != nil {
			return nil, err
		}
		if first == 0 && path != files[0] {
			continue // it is being begun
		}
		var before []span
		own := []span{{path: path}}
		if past != nil {
			if before, err = known.past(*past, map[string]bool{path: true}); err != nil {
				return nil, err
			}
			if before == nil {
				t.Note = fmt.Sprintf("what came before it is in a missing file (rollout %s)", past.Rollout)
			}
		}
		switch {
		case len(out) == 0 && before != nil:
			// Its first line comes first, for it is the session's.
			out = append([]span{{path: path, to: first}}, before...)
			own[0].from = first
		case len(out) == 0:
		case before == nil:
			own[0].at = &root
		default:
			last := before[len(before)-1]
			if !slices.ContainsFunc(out, func(s span) bool { return s.path == last.path }) {
				before[0].at = &root
				out = append(out, before...)
				break
			}
			out = split(out, last.path, last.to)
			own[0].at = &mark{last.path, last.to}
		}
		out = append(out, own...)
	}
	return out, nil
}

// past returns what comes before a file, the oldest first, as far as it is there.
func (r *rollouts) past(b base, seen map[string]bool) ([]span, error) {
	path, ok := r.byID[b.Rollout]
	if !ok || seen[path] || b.End <= 0 {
		return nil, nil
	}
	seen[path] = true
	older, _, err := pastOf(path)
	if err != nil {
		return nil, err
	}
	var out []span
	if older != nil {
		if out, err = r.past(*older, seen); err != nil {
			return nil, err
		}
	}
	return append(out, span{path: path, to: b.End}), nil
}

// split parts the span that goes on after an offset of a file.
func split(spans []span, path string, off int64) []span {
	for i, s := range spans {
		if s.path == path && s.from < off && (s.to == 0 || off < s.to) {
			head := s
			head.to = off
			return slices.Replace(spans, i, i+1, head, span{path: path, from: off, to: s.to})
		}
	}
	return spans
}

// maxFirst is how long the first line of a file may be.
const maxFirst = 16 << 20

// pastOf returns where the past of a file is, if it has one, and how long its
// first line is: 0 if it is not complete.
func pastOf(path string) (past *base, first int64, err error) {
	f, err := (&source.Transcript{Path: path}).Open()
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, maxFirst)).ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var l struct {
		Payload struct {
			Base *base `json:"history_base"`
		} `json:"payload"`
	}
	_ = json.Unmarshal(line, &l) // a line that cannot be read names no past
	return l.Payload.Base, int64(len(line)), nil
}
