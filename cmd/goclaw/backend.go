package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/internal/asjson"
	"goclaw/internal/mirrors"
	"goclaw/internal/naming"
	"goclaw/internal/permits"
	"goclaw/internal/query"
	"goclaw/internal/serve"
	"goclaw/internal/spending"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/tool"
)

// backend is what goclaw serve serves: what the commands do, for many clients at
// a time.
type backend struct {
	*app

	titles  naming.Memo
	tallies spending.Tallies

	mu   sync.Mutex
	open map[session.ID]*seat
}

// seat is what runs the turns of one session. Each has its own, since
// permissions and MCP servers belong to a session, and its tools work in its
// folder.
type seat struct {
	ready func() error // opens turns, once
	turns *turns
	asked *asked
	users int
	left  time.Time // when the last user left
}

const (
	maxSeats = 64               // without users
	seatLife = 15 * time.Minute // of one without users
)

func newBackend(a *app) *backend { return &backend{app: a, open: map[session.ID]*seat{}} }

func (b *backend) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, s := range b.open {
		if s.ready() == nil {
			s.turns.close()
		}
		delete(b.open, id)
	}
}

// at returns an app that works in folder, with the same store and the same
// index. Several may be used at the same time.
func (a *app) at(folder string) *app {
	c := *a.conf
	c.Workspace = folder
	e := &env{in: a.in, out: a.out, err: a.err, getenv: a.getenv, given: a.given, conf: &c, placed: a.placed, openclaw: a.openclaw}
	ms := modelsOf(e)
	ms.Flag = a.models.Flag
	return &app{env: e, stores: a.stores, models: ms, brief: briefingOf(e), search: a.search, who: a.who, spawn: a.spawn}
}

// folderOf returns the folder that the tools of a session work in: its own if
// that is here, else the one of the memory files.
func (b *backend) folderOf(in session.Info) string {
	if fi, err := os.Stat(in.CWD); err == nil && fi.IsDir() && filepath.IsAbs(in.CWD) && permits.Fence(b.conf).Check(in.CWD) == nil {
		return in.CWD
	}
	return b.conf.Memory
}

func (b *backend) Store() session.Store { return b.stores.Store }

func (b *backend) Find(ctx context.Context, ref string, trash bool) (session.Info, error) {
	in, err := session.Stat(ctx, b.stores.Store, session.ID(ref))
	switch {
	case err == nil && in.Trashed.IsZero() == trash:
		return in, session.NotFound("session %q is %s", ref, map[bool]string{true: "not in the trash", false: "in the trash"}[trash])
	case errors.Is(err, session.ErrNotFound) && !trash:
		in, err = session.Current(ctx, b.stores.Store, session.Key(ref))
	}
	if errors.Is(err, session.ErrNotFound) {
		return in, session.NotFound("there is no session %q", ref)
	}
	if err == nil {
		in.Title = b.titles.Title(ctx, b.stores.Store, in)
	}
	return in, err
}

const (
	listPage = 100
	maxList  = 1000
)

func (b *backend) List(ctx context.Context, q url.Values) (infos []session.Info, next string, err error) {
	limit, err := strconv.Atoi(cmp.Or(q.Get("limit"), strconv.Itoa(listPage)))
	if err != nil || limit < 1 {
		return nil, "", badRequest("limit must be a number from 1 on, not %q", q.Get("limit"))
	}
	limit = min(limit, maxList)
	at, err := parseCursor(q.Get("after"))
	if err != nil {
		return nil, "", badRequest("after is the next of the page before, not %q", q.Get("after"))
	}
	source, moved := q.Get("source"), false
	sel := naming.Choice{Folder: q.Get("folder"), All: q.Get("all") == "true", Titles: &b.titles, Expect: 2*limit + 20}
	sel.Query = session.Query{Agent: q.Get("agent"), Channel: q.Get("channel"), Text: q.Get("text"), Trash: q.Get("trash") == "true"}
	for in, err := range naming.List(ctx, b.stores.Store, sel) {
		if err != nil {
			return nil, "", err
		}
		if at.top.IsZero() {
			at.top = in.Updated
		}
		switch {
		case source != "" && transcript.Source(in) != source:
			continue
		case !at.again && in.Updated.After(at.top):
			moved = true
			continue
		case at.again && !in.Updated.After(at.top):
			return infos, "", nil
		case !at.before(in):
			continue
		}
		if len(infos) == limit {
			return infos, at.String(), nil
		}
		infos, at.updated, at.id = append(infos, in), in.Updated, in.ID
	}
	if moved {
		next = cursor{top: at.top, again: true}.String()
	}
	return infos, next, nil
}

// cursor is a place in the list of sessions, which changes while a client reads
// it: a session that is written to moves to its top. At the end of the list those
// that were written to since its beginning come again, so that none is missed.
type cursor struct {
	top     time.Time // when the first session of the list was written to
	again   bool      // only those are left that were written to later
	updated time.Time // of the last session that was read; zero: none was
	id      session.ID
}

// before reports whether in comes after the place.
func (c cursor) before(in session.Info) bool {
	return c.updated.IsZero() || in.Updated.Before(c.updated) || in.Updated.Equal(c.updated) && in.ID > c.id
}

func (c cursor) String() string {
	form := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	return strings.Join([]string{map[bool]string{true: "again"}[c.again], form(c.top), form(c.updated), string(c.id)}, "_")
}

// parseCursor reads what String wrote. The beginning of the list is "".
func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	parts := strings.SplitN(text, "_", 4)
	if len(parts) < 4 || parts[0] != "" && parts[0] != "again" {
		return c, errors.New("not a cursor")
	}
	c.again, c.id = parts[0] != "", session.ID(parts[3])
	if c.top, err = time.Parse(time.RFC3339Nano, parts[1]); err == nil && parts[2] != "" {
		c.updated, err = time.Parse(time.RFC3339Nano, parts[2])
	}
	return c, err
}

// badRequest is the error of a request with a wrong parameter.
func badRequest(format string, args ...any) error {
	return serve.Wrong(http.StatusBadRequest, format, args...)
}

func (b *backend) Session(in session.Info) any { return asjson.SessionOf(in) }

func (b *backend) Record(r session.Record) (json.RawMessage, error) { return asjson.Record(r) }

func (b *backend) Event(ev agent.Event) map[string]any { return asjson.Event(ev) }

func (b *backend) Begin(ctx context.Context, h session.Header) (session.Info, error) {
	if h.CWD == "" {
		h.CWD = b.conf.Workspace
	}
	if fi, err := os.Stat(h.CWD); err != nil || !fi.IsDir() || !filepath.IsAbs(h.CWD) {
		return session.Info{}, badRequest("folder %q is not a folder here", h.CWD)
	}
	if h.Key == "" {
		h.Key = session.Key(fmt.Sprintf("main:web:%s", time.Now().UTC().Format("20060102-150405.000000")))
	}
	s, err := session.Begin(ctx, b.stores.Store, h, session.System{})
	if err != nil {
		return session.Info{}, err
	}
	return s.Info, nil
}

func (b *backend) Continue(ctx context.Context, in session.Info) (session.Info, error) {
	if !in.Mirror() {
		return in, nil
	}
	return mirrors.Continue(ctx, b.stores.Store, in, session.System{})
}

func (b *backend) Context(ctx context.Context, in session.Info) (json.RawMessage, error) {
	s, err := session.Open(ctx, b.stores.Store, in.ID)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	sub := b.at(b.folderOf(in))
	sub.out = terminal.NewWriter(&out)
	err = showContext(ctx, sub, s, false, true, false)
	return out.Bytes(), err
}

func (b *backend) Choose(ctx context.Context, in session.Info, name string) error {
	if name == "" || name == "goclaw" {
		return nil
	}
	s, err := session.Open(ctx, b.stores.Store, in.ID)
	if err != nil {
		return err
	}
	models := b.at(b.folderOf(in)).models
	if m, _, err := models.Decide(ctx, s); err == nil && m.Name() == name {
		return nil
	}
	m, err := models.Named(name)
	if err != nil {
		return serve.Wrong(http.StatusNotFound, "%s", err)
	}
	_, err = session.Keep(ctx, b.stores.Store, s, s.Next(session.ModelChange{Provider: m.ProviderName, Model: m.ModelName, Chosen: true}, session.System{}), session.System{})
	return err
}

func (b *backend) Models(ctx context.Context) ([]string, error) {
	m, err := b.at(b.conf.Workspace).models.Choose(ctx)
	if err != nil {
		return nil, err
	}
	return []string{m.Name()}, nil
}

func (b *backend) Usage(ctx context.Context, in *session.Info, q url.Values) (any, error) {
	if in != nil {
		return b.tallies.Steps(ctx, b.stores.Store, b.conf, *in, q.Get("brief") == "true")
	}
	by := cmp.Or(q.Get("by"), "both")
	if !slices.Contains([]string{"day", "model", "session", "both"}, by) {
		return nil, badRequest("by is day, model, session or both, not %q", by)
	}
	from, err := recall.Moment(cmp.Or(q.Get("since"), "30d"), time.Now())
	if err != nil {
		return nil, badRequest("since: %v", err)
	}
	lines, err := spending.Since(ctx, b.stores.Store, b.conf, by, from, q.Get("imported") == "true")
	return map[string]any{"usage": lines}, err
}

func (b *backend) Search(ctx context.Context, q url.Values) (any, error) {
	var f query.Flags
	fs := pflag.NewFlagSet("search", pflag.ContinueOnError)
	f.Bind(fs)
	for name, values := range q {
		if name == "q" {
			continue
		}
		if fs.Lookup(name) == nil || name == "open" || name == "here" {
			return nil, badRequest("there is no parameter %q", name)
		}
		if err := fs.Set(name, values[0]); err != nil {
			return nil, badRequest("%s: %v", name, err)
		}
	}
	text := q.Get("q")
	sel, err := f.Query(ctx, b.stores.Store, text, b.conf.Workspace)
	var wrong query.Usage
	if errors.As(err, &wrong) {
		return nil, badRequest("%s", strings.ReplaceAll(err.Error(), "--", ""))
	}
	if err != nil {
		return nil, err
	}
	ix, err := b.search.index()
	if err != nil {
		return nil, err
	}
	res, groups, err := f.Search(ctx, ix, sel)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, badRequest("%s", err)
	case err != nil:
		return nil, err
	case f.Group:
		return asjson.Groups(res, groups, sel.Text), nil
	}
	return asjson.Hits(res, sel.Text), nil
}

func (b *backend) Planned(cut compact.Cut) any { return asjson.Plan(cut.DryRun()) }

func (b *backend) Compacted(rec session.Record, cut compact.Cut) any {
	return asjson.Compacted(rec.ID, rec.Body.(session.Compaction), cut)
}

// asked passes questions on to whoever is asked now.
type asked struct {
	mu       sync.Mutex
	ask      tool.Approver
	remember func(tool.Rule) error
}

func (x *asked) set(ask tool.Approver) {
	x.mu.Lock()
	x.ask = ask
	x.mu.Unlock()
}

func (x *asked) Approve(ctx context.Context, r tool.Request) (tool.Decision, error) {
	x.mu.Lock()
	ask := x.ask
	x.mu.Unlock()
	if ask == nil {
		return tool.No, tool.ErrNoOne
	}
	d, err := ask.Approve(ctx, r)
	if d == tool.Always && err == nil && !r.Private {
		err = x.remember(r.Rule)
	}
	return d, err
}

func (b *backend) Turns(ctx context.Context, in session.Info, ask tool.Approver) (serve.Turns, func(), error) {
	b.mu.Lock()
	s := b.open[in.ID]
	if s == nil {
		b.tidy()
		s = b.seat(ctx, in)
		b.open[in.ID] = s
	}
	s.users++
	b.mu.Unlock()
	leave := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		s.users--
		s.left = time.Now()
	}
	if err := s.ready(); err != nil {
		b.mu.Lock()
		if b.open[in.ID] == s {
			delete(b.open, in.ID)
		}
		b.mu.Unlock()
		return nil, nil, err
	}
	if ask != nil {
		s.asked.set(ask)
	}
	return seated{s, in.ID}, leave, nil
}

// seat returns a seat for a session. Others do not wait while it is made ready.
func (b *backend) seat(ctx context.Context, in session.Info) *seat {
	s := &seat{}
	s.ready = sync.OnceValue(func() (err error) {
		sub := b.at(b.folderOf(in))
		s.asked = &asked{remember: sub.remember}
		// The server's life, not the request's: MCP servers stay.
		s.turns, err = newTurns(context.WithoutCancel(ctx), sub, s.asked)
		return err
	})
	return s
}

// tidy closes seats that nobody has used for a while. mu is held.
func (b *backend) tidy() {
	var idle []session.ID
	for id, s := range b.open {
		if s.users == 0 {
			idle = append(idle, id)
		}
	}
	slices.SortFunc(idle, func(x, y session.ID) int { return b.open[x].left.Compare(b.open[y].left) })
	for i, id := range idle {
		if s := b.open[id]; i < len(idle)-maxSeats || time.Since(s.left) > seatLife {
			delete(b.open, id)
			go s.turns.close()
		}
	}
}

// seated runs turns of one session.
type seated struct {
	*seat
	id session.ID
}

func (s seated) Run(ctx context.Context, in llm.Message) iter.Seq2[agent.Event, error] {
	return s.turns.RunID(ctx, s.id, in)
}

func (s seated) Compact(ctx context.Context, focus string) (agent.Recorded, compact.Cut, error) {
	return s.turns.Runner.Compact(ctx, s.id, focus)
}

func (s seated) Plan(ctx context.Context, focus string) (compact.Cut, error) {
	return s.turns.Runner.Plan(ctx, s.id, focus)
}

func (s seated) Undo(ctx context.Context) (session.Record, session.Info, error) {
	return s.turns.UndoCompaction(ctx, s.id)
}
