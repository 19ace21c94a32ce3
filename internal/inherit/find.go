package inherit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"goclaw/codec"
	"goclaw/session"
)

// Place is a folder where a program keeps its sessions.
type Place struct{ Program, Path string }

// Places returns where the known programs keep their sessions on this machine,
// whether they are there or not. home is the user's; without one, only what the
// programs' own variables name is known.
func Places(home string, getenv func(string) string) []Place {
	var out []Place
	for _, p := range []struct{ program, env, own, rest string }{
		{OpenClaw, "OPENCLAW_STATE_DIR", ".openclaw", ""},
		{Pi, "PI_CODING_AGENT_DIR", ".pi/agent", "sessions"},
		{Claw0, "", "claw0/workspace", ".sessions"},
		{ClaudeCode, "CLAUDE_CONFIG_DIR", ".claude", "projects"},
		{ClaudeCode, "XDG_CONFIG_HOME", ".config", "claude/projects"}, // some versions
		{Codex, "CODEX_HOME", ".codex", "sessions"},
		{Codex, "CODEX_HOME", ".codex", "archived_sessions"},
	} {
		dir := ""
		if p.env != "" {
			dir = getenv(p.env)
		}
		if dir == "" {
			dir = "~/" + p.own
		}
		if home == "" && strings.HasPrefix(dir, "~") {
			continue // what is in the folder where one happens to be is no home
		}
		out = append(out, Place{p.program, filepath.Join(expand(dir, home), filepath.FromSlash(p.rest))})
	}
	return out
}

func expand(path, home string) string {
	if path == "~" {
		return home
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return path
}

// Options say how sessions are looked for. The zero value finds out.
type Options struct {
	From string   // one of Programs; "": what the files look like
	Skip []string // folders that are not looked into: our own
	Home string   // what "~" stands for in an OpenClaw configuration
	Memo *Memo    // what is known from the last time, or nil
}

// Find looks through paths: files, folders and databases of any of the known
// programs. What is not there is passed over; what cannot be read is a
// Problem. The transcripts are in the order in which they shall be taken.
func Find(ctx context.Context, paths []string, o Options) (*Catalogue, error) {
	f := &finder{ctx: ctx, o: o, c: &Catalogue{}, seen: map[string]bool{}, walked: map[string]bool{}, files: map[string]*Transcript{}, indices: map[string]*index{}, names: map[string]map[string]string{}, memo: o.Memo}
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
		if ix := f.indices[i]; f.walked[ix.dir] {
			f.missing(ix)
		}
	}
	slices.SortStableFunc(f.c.Transcripts, func(a, b *Transcript) int {
		if r := rank(a) - rank(b); r != 0 {
			return r
		}
		return strings.Compare(a.ref(), b.ref())
	})
	return f.c, nil
}

// rank puts first what shall have its name: the live before the archived, the
// database before the files that it was made of.
func rank(t *Transcript) int {
	r := 0
	if t.old == nil {
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
	o       Options
	c       *Catalogue
	seen    map[string]bool        // folders, by their real path
	walked  map[string]bool        // folders that were looked through
	files   map[string]*Transcript // files that were looked at; nil if they are none, or a database
	indices map[string]*index
	order   []string
	names   map[string]map[string]string // of Codex's sessions, by its folder
	memo    *Memo

	strangers []string // files with the name of a transcript that are none
}

func (f *finder) problem(path string, err error) {
	f.c.Problems = append(f.c.Problems, unread(path, err))
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
		f.problem(path, fmt.Errorf("%s, not a file", kindOf(fi.Mode())))
	}
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m.IsDir():
		return "a folder"
	}
	return "something else"
}

// beside are folders that never hold transcripts of their own, or hold only
// copies of what is found elsewhere.
var beside = map[string]bool{"node_modules": true, ".git": true, "session-sqlite-import-archive": true, "cold": true}

// folder looks through a folder. The state folder of OpenClaw and the folder
// of claw0 hold much else: only where sessions are is looked at.
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
	// An agent's own folder of sessions is none, even if a store was made in it.
	if isState(dir) && agentOf(filepath.Join(dir, "x")) == "" {
		f.moved(dir)
		list = slices.DeleteFunc(list, func(e fs.DirEntry) bool {
			return !slices.Contains([]string{"agents", "sessions", "transcripts"}, e.Name())
		})
	}
	closed := false // its files cannot be looked at, which is said once
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if !beside[e.Name()] {
				f.folder(path)
			}
		case e.Type()&fs.ModeSymlink != 0:
			fi, err := os.Stat(path)
			switch {
			case errors.Is(err, fs.ErrPermission):
				f.problem(path, err)
			case err != nil:
				f.problem(path, fmt.Errorf("a symbolic link that leads nowhere: %w", errors.Unwrap(err)))
			case fi.IsDir():
				f.folder(path)
			default:
				f.entry(path, fi)
			}
		case candidate(e.Name()):
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

// isState reports whether dir is the state folder of OpenClaw or the folder of
// claw0: their agents have sessions. Other programs have folders of that name,
// too, and transcripts beside them.
func isState(dir string) bool {
	for _, pattern := range []string{"sessions", "sessions.json", "agent"} {
		if found, _ := filepath.Glob(filepath.Join(globQuote(dir), "agents", "*", pattern)); len(found) > 0 {
			return true
		}
	}
	return false
}

// globQuote makes a path mean itself in a pattern.
func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func (f *finder) entry(path string, fi fs.FileInfo) {
	if !candidate(filepath.Base(path)) {
		return
	}
	if !fi.Mode().IsRegular() {
		f.problem(path, fmt.Errorf("%s, not a file", kindOf(fi.Mode())))
		return
	}
	f.file(path, fi, false)
}

// maxConfig is how large OpenClaw's configuration may be.
const maxConfig = 16 << 20

// moved looks where OpenClaw's configuration says that its index is.
func (f *finder) moved(state string) {
	config := filepath.Join(state, "openclaw.json")
	data, err := readFile(config, maxConfig)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			f.problem(config, err)
		}
		return
	}
	var c struct {
		Session struct {
			Store string `json:"store"`
		} `json:"session"`
	}
	if unmarshal(data, &c) != nil || c.Session.Store == "" {
		return
	}
	pattern := strings.ReplaceAll(expand(c.Session.Store, f.o.Home), "{agentId}", "*")
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(state, pattern)
	}
	found, _ := filepath.Glob(pattern)
	for _, index := range found {
		f.folder(filepath.Dir(index))
	}
}

const ext = ".jsonl"

// candidate reports whether a file of this name can be a transcript.
func candidate(name string) bool {
	if strings.HasSuffix(name, ".sqlite") || name == earlierName {
		return true
	}
	_, _, ok := parseName(name)
	return ok
}

// parseName reads the name of a transcript: the session's id, and why it is
// an archive, if it is one.
func parseName(name string) (id, archive string, ok bool) {
	name = strings.TrimSuffix(name, ".zst")
	i := strings.LastIndex(name, ext)
	if i <= 0 {
		return "", "", false
	}
	stem, rest := name[:i], name[i+len(ext):]
	switch {
	case rest == "":
		if k := strings.Index(stem, ".checkpoint."); k > 0 {
			stem, archive = stem[:k], "checkpoint"
		}
	case strings.HasSuffix(rest, ".lock"), strings.HasSuffix(rest, ".tmp"), rest[0] != '.':
		return "", "", false
	case strings.HasPrefix(rest, ".imported-"), rest == ".migrated":
		archive = "migrated"
	default:
		archive, _, _ = strings.Cut(rest[1:], ".")
		if strings.HasPrefix(archive, "pre-doctor") {
			archive = "bak"
		}
		if !slices.Contains([]string{"deleted", "reset", "bak"}, archive) {
			return "", "", false
		}
	}
	if k := strings.Index(stem, "-topic-"); k > 0 {
		stem = stem[:k]
	}
	if k := strings.IndexByte(stem, '_'); k > 0 && strings.Contains(stem[:k], "T") {
		stem = stem[k+1:]
	}
	return stem, archive, true
}

// file looks at one file. named: the user gave its path.
func (f *finder) file(path string, fi fs.FileInfo, named bool) {
	if t, again := f.files[path]; again { // two of the paths lead to it
		if t != nil {
			t.named = t.named || named
		}
		return
	}
	f.files[path] = nil
	st := statOf(fi)
	db := strings.HasSuffix(path, ".sqlite") || filepath.Base(path) == earlierName && (st.Size == 0 || isDatabase(path))
	if filepath.Base(path) == earlierName && !db && !named {
		return // any program may have a file of this name
	}
	if db && st.Size == 0 && !named {
		return // its owner has not begun it
	}
	if db || named && isDatabase(path) {
		f.database(path, st, named)
		return
	}
	id, archive, ok := parseName(filepath.Base(path))
	if !ok {
		id = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	ix := f.index(path)
	t := &Transcript{Path: path, ID: session.ID(text(id)), Archive: archive, Size: st.Size, stat: st, named: named}
	s, err := f.sniff(t)
	switch {
	case err != nil:
		f.problem(path, err)
		return
	case s.Form == "" && s.Empty && (ix == nil || !ix.claw0):
		if named {
			f.problem(path, errors.New("an empty file"))
		}
		return
	case s.Form == "" && s.Empty: // a claw0 session that was never used
		s.Form, s.Program = codec.FormClaw0, Claw0
	case s.Zeros:
		f.problem(path, errors.New("nothing but zeros, as a power failure leaves it: what was in it is lost"))
		return
	case s.Form == "" && f.o.From == "":
		if named || archive != "" || ix != nil || agentOf(path) != "" {
			f.problem(path, errStranger)
		} else if !aside[filepath.Base(path)] {
			f.strangers = append(f.strangers, path)
		}
		return
	case s.Bare && !named:
		return
	case s.Program == Codex && packedTwice(path):
		return
	}
	f.name(t, s, ix)
	f.files[path] = t
	f.c.Transcripts = append(f.c.Transcripts, t)
}

// aside are what programs keep beside their transcripts: what was typed, names,
// the steps of a workflow.
var aside = map[string]bool{"history.jsonl": true, "session_index.jsonl": true, "journal.jsonl": true}

var errStranger = errors.New("not a transcript that is known here")

// maxStrangers is how many files that are no transcripts are told one by one,
// of those that lie where other things may lie.
const maxStrangers = 10

func (f *finder) tellStrangers() {
	if n := len(f.strangers); n > maxStrangers {
		f.c.Problems = append(f.c.Problems, Problem{Path: f.strangers[0], What: fmt.Sprintf("not a transcript that is known here, nor are %d more files", n-1), Unread: true})
		return
	}
	for _, p := range f.strangers {
		f.problem(p, errStranger)
	}
}

// packedTwice reports whether path is the packed form of a file that lies
// beside it. Codex unpacks a session before it goes on with it.
func packedTwice(path string) bool {
	plain, ok := strings.CutSuffix(path, ".zst")
	if !ok {
		return false
	}
	_, err := os.Stat(plain)
	return err == nil
}

// sniff looks into the file of t, unless it is remembered.
func (f *finder) sniff(t *Transcript) (sniffed, error) {
	if s, ok := f.memo.sniffed(t.Path, t.stat); ok {
		return s, nil
	}
	r, err := t.open()
	if err != nil {
		return sniffed{}, err
	}
	defer r.Close()
	s, err := sniff(r)
	if err == nil {
		f.memo.setSniffed(t.Path, t.stat, s)
	}
	return s, err
}

// name says whose transcript t is.
func (f *finder) name(t *Transcript, s sniffed, ix *index) {
	t.form, t.cwd, t.Program, t.side = s.Form, s.CWD, s.Program, s.Side
	agent := text(agentOf(t.Path))
	if t.Program == "" {
		// OpenClaw 2026.9.6 writes version 4. Where a file is says more: pi's
		// versions go on as well.
		t.Program = Pi
		if ix != nil || agent != "" || t.Archive != "" || s.Version == 4 && !piName.MatchString(filepath.Base(t.Path)) {
			t.Program = OpenClaw
		}
	}
	if f.o.From != "" && f.o.From != t.Program {
		t.Program = f.o.From
		switch t.Program {
		case ClaudeCode:
			t.form = formClaude
		case Codex:
			t.form = formCodex
		case Claw0:
			if t.form != codec.FormClaw0Old {
				t.form = codec.FormClaw0
			}
		default:
			t.form = codec.FormNative
		}
	}
	if agent == "" {
		agent = "main"
	}
	named := t.ID
	// A session of Claude Code that goes on from another begins with its
	// lines, and with its id in them: the name of the file is its own.
	if goodID(session.ID(s.ID)) && !(t.Program == ClaudeCode && (s.Side || isUUID(string(named)))) {
		t.ID = session.ID(s.ID)
	}
	e, listed := entry{}, false
	if ix != nil {
		if e, listed = ix.find(filepath.Base(t.Path), t.ID); listed && t.Archive == "" && goodID(session.ID(e.ID)) {
			t.ID = session.ID(e.ID)
		}
	}
	switch t.Program {
	case OpenClaw:
		switch {
		case listed && t.Archive == "":
			t.Key, t.Title, t.listed = session.Key(e.Key), e.Title, true
		case t.Archive == "":
			t.Archive, t.unlisted = "orphan", ix != nil && !ix.torn
			fallthrough
		default:
			t.Key = recovered(agent, t.ID)
		}
		if listed && t.Archive == "bak" {
			t.Note = fmt.Sprintf("the whole text of %s before it was cut to its last lines", e.Key)
		}
	case Claw0:
		switch {
		case s.Key != "":
			t.Key = session.Key(s.Key)
		case listed && e.Key != "":
			t.Key, t.listed = session.Key(e.Key), true
		default:
			t.Key = session.Key(fmt.Sprintf("%s:cli:%s", or(agentOf(t.Path), "claw0"), t.ID))
		}
		if listed {
			t.Title = e.Title
		}
	case Goclaw:
		t.Key = session.Key(s.Key)
	case ClaudeCode:
		t.Key = project("claude", s.CWD, t.ID)
		if s.Side {
			// Its lines carry the id of the session that it worked for.
			t.Key = project("claude", s.CWD, session.ID(s.ID)) + ":" + session.Key(named)
			t.Archive = "subagent"
		}
	case Codex:
		t.Key = project("codex", s.CWD, t.ID)
		t.Title = f.codexName(t.Path, string(t.ID))
		if s.Side && t.Archive == "" {
			t.Archive = "subagent"
		}
	}
	if t.Key == "" {
		t.Key = project(t.Program, s.CWD, t.ID)
	}
}

// piName is how pi names its files: by their time and id.
var piName = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_`)

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func isUUID(s string) bool { return uuidForm.MatchString(s) }

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// recovered is the key that OpenClaw 2026.9.6 gives to what it finds without
// one.
func recovered(agent string, id session.ID) session.Key {
	return session.Key(fmt.Sprintf("agent:%s:recovered:%s", agent, id))
}

// project is the key of a session whose program keeps them by folder.
func project(program, cwd string, id session.ID) session.Key {
	dir := filepath.Base(filepath.ToSlash(cwd))
	if cwd == "" || dir == "/" || dir == "." {
		dir = "home"
	}
	return session.Key(fmt.Sprintf("%s:%s:%s", program, strings.ReplaceAll(dir, ":", "-"), id))
}

// agentOf returns the agent whose folder path is in: agents/<agent>/...
func agentOf(path string) string {
	seg := strings.Split(filepath.ToSlash(path), "/")
	for i := len(seg) - 3; i > 0; i-- {
		if seg[i-1] == "agents" && (seg[i+1] == "sessions" || seg[i+1] == "agent") {
			return seg[i]
		}
	}
	return ""
}
