package pick

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"goclaw/recall"
	"goclaw/session"
)

// SearchOptions is what a search works with.
type SearchOptions struct {
	Store session.Store
	Clock session.Clock
	// Find searches for a line with the flags of goclaw search in it. It returns
	// what was found, the text that was looked for, and what else there is to know.
	Find func(ctx context.Context, line string) (hits []recall.Hit, text string, remarks []string, err error)
	// File returns lines of a memory file from one on, and how many it has.
	File func(name string, from, lines int) (text string, total int, err error)
	Text string // what is looked for at first
}

// Search is the search: what is found is shown while it is typed, and opened in
// place.
type Search struct {
	message
	o       SearchOptions
	ctx     context.Context
	stop    context.CancelFunc
	filter  field
	search  int // counts the searches: what an older one finds is dropped
	asked   bool
	text    string       // that was looked for
	remarks []string     // on what was found
	hits    []recall.Hit // group by group
	group   []int        // how many hits the group has that begins at this one; 0: none begins
	list    list
	open    *around // the hit that is open; nil: none
	help    bool
	w, h    int
	chosen  Found
}

// Found is a record of a session to go to.
type Found struct {
	Session session.ID // "": none was chosen
	Seq     session.Seq
	Fork    bool // to a copy of the session up to it
}

// NewSearch returns a search.
func NewSearch(ctx context.Context, o SearchOptions) *Search {
	s := &Search{o: o, filter: newField(o.Text)}
	s.ctx, s.stop = context.WithCancel(ctx)
	return s
}

// Choice returns where to go.
func (s *Search) Choice() Found { return s.chosen }

// FullScreen is always true.
func (s *Search) FullScreen() bool { return true }

// Init searches for the text that was given.
func (s *Search) Init() tea.Cmd { return s.seek() }

// hits is what a search has found.
type hits struct {
	of      *Search
	search  int
	hits    []recall.Hit
	text    string
	remarks []string
	err     error
}

// seek searches, soon.
func (s *Search) seek() tea.Cmd {
	s.search++
	if s.asked = strings.TrimSpace(s.filter.String()) != ""; !s.asked {
		s.take(hits{})
		return nil
	}
	return wait(s, s.search)
}

// Update handles a message.
func (s *Search) Update(msg tea.Msg) (done bool, cmd tea.Cmd) {
	switch msg := msg.(type) {
	case due:
		if msg.of == any(s) && msg.search == s.search {
			line := s.filter.String()
			return false, func() tea.Msg {
				h := hits{of: s, search: msg.search}
				h.hits, h.text, h.remarks, h.err = s.o.Find(s.ctx, line)
				return h
			}
		}
	case hits:
		if msg.of == s && msg.search == s.search {
			s.asked = false
			s.take(msg)
		}
	case surroundings:
		if s.open != nil && msg.of == s.open {
			s.open.took(msg)
		}
	case tea.KeyPressMsg, tea.PasteMsg:
		cmd = s.typed(msg)
	}
	if s.chosen.Session != "" || s.ctx.Err() != nil {
		s.stop()
		return true, nil
	}
	return false, cmd
}

// take takes what was found. An error of a text that is not typed to its end is
// no news.
func (s *Search) take(h hits) {
	s.note = ""
	if h.err != nil {
		s.fail(h.err)
		return
	}
	s.remarks = h.remarks
	s.text, s.hits, s.group = h.text, nil, nil
	for _, g := range recall.Groups(h.hits) {
		for i, hit := range g.Hits {
			n := 0
			if i == 0 {
				n = len(g.Hits)
			}
			s.hits, s.group = append(s.hits, hit), append(s.group, n)
		}
	}
	s.list = list{n: len(s.hits)}
}

// typed handles a key.
func (s *Search) typed(msg tea.Msg) tea.Cmd {
	if s.help {
		s.help = false
		return nil
	}
	if s.open != nil {
		return s.typedOpen(msg)
	}
	key, _ := msg.(tea.KeyPressMsg)
	switch {
	case isKey(msg, "esc", "ctrl+c"):
		s.stop()
	case isKey(msg, "enter"):
		return s.openHit()
	case isKey(msg, "?") && s.filter.String() == "":
		s.help = true
	case key.Code != 0 && s.list.key(key):
	case s.filter.update(msg):
		return s.seek()
	}
	return nil
}

// openHit opens the hit at the cursor.
func (s *Search) openHit() tea.Cmd {
	if s.list.at >= len(s.hits) {
		return nil
	}
	s.open = &around{s: s, hit: s.hits[s.list.at], before: 20, after: 20}
	return s.open.read()
}

// typedOpen handles a key while a hit is open.
func (s *Search) typedOpen(msg tea.Msg) tea.Cmd {
	key, _ := msg.(tea.KeyPressMsg)
	h := s.open.hit
	switch key.String() {
	case "esc", "ctrl+c", "q":
		s.open = nil
	case "n", "p", "N":
		step := 1
		if key.String() != "n" {
			step = -1
		}
		if at := s.list.at; at+step >= 0 && at+step < len(s.hits) {
			s.list.move(step)
			return s.openHit()
		}
		s.say("there are no more hits")
	case "o", "f":
		if h.Session != "" {
			s.chosen = Found{Session: h.Session, Seq: h.Seq, Fork: key.String() == "f"}
			break
		}
		s.say("a memory file belongs to no session")
	case "?":
		s.help = true
	default:
		s.note = ""
		return s.open.key(key)
	}
	return nil
}
