package pick

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/naming"
	"goclaw/internal/query"
	"goclaw/internal/transcript"
	"goclaw/internal/tui/fuzzy"
	"goclaw/recall"
	"goclaw/session"
)

// SessionsOptions is what the picker of sessions works with.
type SessionsOptions struct {
	Store  session.Store
	Clock  session.Clock
	Search query.Searcher // nil: what was said is not searched
	Folder string         // this folder, for "only here"
	Open   session.ID     // the session that the chat is in; "": none
	Text   string         // the filter to begin with
	All    bool           // subagents' sessions, too
	Here   bool           // only those of Folder at first, if there are any among the latest
}

// Sessions is the picker of sessions.
type Sessions struct {
	message
	o      SessionsOptions
	ctx    context.Context
	stop   context.CancelFunc
	load   chan loaded
	ended  bool // all are loaded
	rows   rows
	list   list
	filter field
	look   look
	jobs   jobs

	search  int    // counts the searches: what an older one finds is dropped
	looking bool   // a search is running
	naming  *field // the new title, while one is typed
	undo    []session.ID
	help    bool
	leaving bool
	height  int // of the screen
	chosen  session.ID
}

// NewSessions returns a picker. What it loads it loads until ctx ends or it is
// done.
func NewSessions(ctx context.Context, o SessionsOptions) *Sessions {
	s := &Sessions{o: o, filter: newField(o.Text), load: make(chan loaded)}
	s.ctx, s.stop = context.WithCancel(ctx)
	s.look.store = o.Store
	s.rows.query = fuzzy.New(o.Text)
	if o.Here {
		s.rows.only(o.Folder)
	}
	return s
}

// Choice returns the session that was chosen, "" if none was.
func (s *Sessions) Choice() session.ID { return s.chosen }

// FullScreen is always true.
func (s *Sessions) FullScreen() bool { return true }

// loaded are some more sessions.
type loaded struct {
	of    *Sessions
	infos []session.Info
	err   error
	end   bool
}

// firstPage is how many sessions are asked for first: more than a screen has.
const firstPage = 100

// Init begins to load.
func (s *Sessions) Init() tea.Cmd {
	go func() {
		send := func(l loaded) bool {
			l.of = s
			select {
			case s.load <- l:
				return true
			case <-s.ctx.Done():
				return false
			}
		}
		var some []session.Info
		size := firstPage
		for in, err := range naming.List(s.ctx, s.o.Store, naming.Choice{All: s.o.All, Expect: firstPage}) {
			if err != nil {
				if !send(loaded{err: err}) {
					return
				}
				continue
			}
			if some = append(some, in); len(some) == size {
				if !send(loaded{infos: some}) {
					return
				}
				some, size = nil, 20*firstPage
			}
		}
		send(loaded{infos: some, end: true})
	}()
	return tea.Batch(s.more(), s.seek())
}

// more waits for the next sessions.
func (s *Sessions) more() tea.Cmd {
	return func() tea.Msg {
		select {
		case l := <-s.load:
			return l
		case <-s.ctx.Done():
			return nil
		}
	}
}

// due says that nothing was typed for a while.
type due struct {
	of     any
	search int
}

// found is what a search has found.
type found struct {
	of     any
	search int
	result recall.Result
	err    error
}

// seek searches what was said, soon. What was found for another text goes.
func (s *Sessions) seek() tea.Cmd {
	s.search++
	s.looking = false
	s.rows.take(nil)
	if s.o.Search == nil || len([]rune(strings.TrimSpace(s.filter.String()))) < 2 {
		return nil
	}
	return wait(s, s.search)
}

// Update handles a message.
func (s *Sessions) Update(msg tea.Msg) (done bool, cmd tea.Cmd) {
	switch msg := msg.(type) {
	case loaded:
		if msg.of != s {
			return false, nil
		}
		cmd = s.loaded(msg)
	case due:
		if msg.of != any(s) || msg.search != s.search {
			return false, nil
		}
		s.looking = true
		cmd = find(s.ctx, s, s.search, s.o.Search, recall.Query{Text: s.filter.String(), Limit: 50, Sessions: true})
	case found:
		if msg.of != any(s) || msg.search != s.search {
			return false, nil
		}
		s.looking = false
		if msg.err != nil {
			s.fail(msg.err)
		}
		s.rows.take(msg.result.Hits)
		s.refilter(true)
	case looked:
		s.look.took(msg)
	case changed:
		if msg.of != s {
			return false, nil
		}
		s.changed(msg)
		cmd = s.jobs.done()
	case tea.WindowSizeMsg:
		s.look.width = msg.Width
	case tea.KeyPressMsg, tea.PasteMsg:
		cmd = s.typed(msg)
	}
	if s.leaving && s.jobs.idle() {
		s.stop()
		return true, nil
	}
	return false, tea.Batch(cmd, s.look.at(s.ctx, s.current(), s.rows.hits))
}

// loaded takes more sessions.
func (s *Sessions) loaded(l loaded) tea.Cmd {
	if l.err != nil {
		s.fail(l.err)
	}
	s.rows.add(false, l.infos...)
	if s.ended = l.end; s.o.Here { // the latest decide: nobody waits for the others
		s.o.Here = false
		if !s.rows.any() {
			s.rows.only("")
		}
	}
	s.refilter(s.list.at > 0)
	if s.ended {
		return nil
	}
	return s.more()
}

// current returns the session at the cursor, nil if there is none.
func (s *Sessions) current() *row {
	if s.list.at < len(s.rows.shown) {
		return s.rows.shown[s.list.at]
	}
	return nil
}

// refilter shows what fits now. If stay, the cursor stays on its session.
func (s *Sessions) refilter(stay bool) {
	was := s.current()
	s.rows.filter()
	s.list.n = len(s.rows.shown)
	s.list.move(0)
	if !stay || was == nil {
		return
	}
	s.moveTo(was.ID)
}

// moveTo puts the cursor on a session, if it is shown.
func (s *Sessions) moveTo(id session.ID) {
	for i, r := range s.rows.shown {
		if r.ID == id {
			s.list.at = i
			return
		}
	}
}

// typed handles a key.
func (s *Sessions) typed(msg tea.Msg) tea.Cmd {
	if s.leaving {
		return nil
	}
	if s.help {
		s.help = false
		return nil
	}
	if s.naming != nil {
		return s.typedTitle(msg)
	}
	s.note = ""
	key, _ := msg.(tea.KeyPressMsg)
	switch {
	case isKey(msg, "esc", "ctrl+c"):
		s.leaving = true
	case isKey(msg, "enter"):
		if r := s.current(); r != nil {
			s.chosen, s.leaving = r.ID, true
		}
	case isKey(msg, "tab"):
		s.look.toggle()
	case isKey(msg, "?") && s.filter.String() == "":
		s.help = true
	case isKey(msg, "ctrl+l"):
		s.here()
	case isKey(msg, "ctrl+r"):
		if r := s.current(); r != nil {
			f := newField(r.Title)
			s.naming = &f
		}
	case isKey(msg, "ctrl+f"):
		return s.fork()
	case isKey(msg, "ctrl+x"):
		return s.remove()
	case isKey(msg, "ctrl+z"):
		return s.restore()
	case key.Code != 0 && s.list.key(key):
	case s.filter.update(msg):
		s.rows.query = fuzzy.New(s.filter.String())
		s.list.at, s.list.top = 0, 0
		cmd := s.seek()
		s.refilter(false)
		return cmd
	}
	return nil
}

// here shows the sessions of this folder only, or all again.
func (s *Sessions) here() {
	if s.rows.here == "" {
		s.rows.only(s.o.Folder)
	} else {
		s.rows.only("")
	}
	s.refilter(true)
	if s.rows.here != "" {
		s.say("only %s; Ctrl-L shows all", name(transcript.Tilde(s.o.Folder)))
	}
}

// typedTitle handles a key while a title is typed.
func (s *Sessions) typedTitle(msg tea.Msg) tea.Cmd {
	r := s.current()
	switch {
	case isKey(msg, "esc", "ctrl+c") || r == nil:
		s.naming = nil
	case isKey(msg, "enter"):
		title := strings.Join(strings.Fields(s.naming.String()), " ")
		s.naming = nil
		if title == "" || title == r.Title {
			return nil
		}
		return s.rename(r.ID, title)
	default:
		s.naming.update(msg)
	}
	return nil
}
