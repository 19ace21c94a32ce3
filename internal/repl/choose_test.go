package repl

import (
	"context"
	"strings"
	"testing"

	"goclaw/llm/llmtest"
	"goclaw/recall"
	"goclaw/session"
)

// hand is a Display on which somebody chooses.
type hand struct {
	*screen
	session func(SessionChoice) session.ID
	point   func(*session.Session) *Point
	hit     func(HitChoice) Found
	row     func(title string, rows [][]string, at int) int
	texts   [][2]string
}

func (h *hand) ChooseSession(_ context.Context, c SessionChoice) (session.ID, error) {
	return h.session(c), nil
}

func (h *hand) ChoosePoint(ctx context.Context, _ session.Clock, load func(context.Context) (*session.Session, error)) (*Point, error) {
	s, err := load(ctx)
	if err != nil {
		return nil, err
	}
	return h.point(s), nil
}

func (h *hand) ChooseHit(_ context.Context, c HitChoice) (Found, error) { return h.hit(c), nil }

func (h *hand) ChooseRow(_ context.Context, title string, rows [][]string, at int, _ []string) (int, error) {
	return h.row(title, rows, at), nil
}

func (h *hand) ShowTexts(_ context.Context, texts [][2]string, _ int) error {
	h.texts = texts
	return nil
}

// chooses runs a chat in which lines are typed and h chooses.
func (b *bench) chooses(t *testing.T, h *hand, in string, opts ...func(*Options)) string {
	t.Helper()
	return b.person(t, in, append(opts, func(o *Options) {
		h.screen = &screen{out: o.Out, notes: o.Out, columns: func() int { return 100 }}
		o.Display = h
	})...)
}

func has(t *testing.T, got string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestChoosingASession(t *testing.T) {
	b := newBench()
	b.seed(t, "s1", "main:cli:user", talk...)
	b.seed(t, "s2", "main:cli:trip", talk...)
	for _, command := range []string{"/sessions\n", "/switch\n"} {
		got := b.chooses(t, &hand{session: func(c SessionChoice) session.ID {
			if c.Open != "s1" || c.Store == nil || c.Clock == nil {
				t.Errorf("it chooses from %+v", c)
			}
			return "s2"
		}}, "/switch main:cli:user\n"+command+"/title\n")
		has(t, got, "Restored: 2 previous turns of main:cli:trip")
	}
	// Nothing is chosen, and the session that the chat is in has another title now.
	got := b.chooses(t, &hand{session: func(SessionChoice) session.ID {
		s, err := session.Open(context.Background(), b.store, "s1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.Keep(context.Background(), b.store, s, s.Next(session.Title{Title: "Renamed"}, b.clock), b.clock); err != nil {
			t.Fatal(err)
		}
		return ""
	}}, "/switch main:cli:user\n/sessions\n/title\n")
	has(t, got, "Renamed")
	if strings.Contains(got, "another program") {
		t.Errorf("a title is news from another program:\n%s", got)
	}
	// The session that the chat is in was deleted.
	got = b.chooses(t, &hand{session: func(SessionChoice) session.ID {
		if err := b.store.Delete(context.Background(), "s1"); err != nil {
			t.Fatal(err)
		}
		return ""
	}}, "/switch main:cli:user\n/sessions\n")
	has(t, got, "New session main:cli:2026")
}

func TestPickedAtTheStart(t *testing.T) {
	b := newBench(llmtest.Say("hello again"))
	b.seed(t, "s1", "main:cli:user", talk...)
	b.seed(t, "s2", "main:cli:trip", talk...)
	pick := func(o *Options) { o.Pick = &Pick{Text: "trip"} }
	got := b.chooses(t, &hand{session: func(c SessionChoice) session.ID {
		if c.Text != "trip" || !c.Here {
			t.Errorf("it chooses from %+v", c)
		}
		return "s2"
	}}, "hi\n", pick)
	has(t, got, "Restored: 2 previous turns of main:cli:trip", "hello again")
	got = b.chooses(t, &hand{session: func(SessionChoice) session.ID { return "" }}, "hi\n", pick)
	if got != "" {
		t.Errorf("after nothing was picked:\n%s", got)
	}
}

// TestChoosingAPoint goes back to a message of a branch that was left, and to the
// end of one. An imported session is not written to.
func TestChoosingAPoint(t *testing.T) {
	b := newBench(llmtest.Say("other answer"), llmtest.Say("last answer"))
	b.seed(t, "s1", "main:cli:user", talk...)
	record := func(s *session.Session, text string) session.Record {
		for r := range s.Links() {
			if m, ok := r.Body.(session.Message); ok && m.Text() == text {
				return r
			}
		}
		t.Fatalf("nobody said %q", text)
		return session.Record{}
	}
	points := []func(*session.Session) *Point{
		func(s *session.Session) *Point { return &Point{Record: record(s, "second question")} }, // left by the rewind
		func(s *session.Session) *Point { return &Point{Record: record(s, "other answer"), End: true} },
		func(*session.Session) *Point { return nil },
	}
	h := &hand{}
	h.point = func(s *session.Session) *Point {
		p := points[0]
		points = points[1:]
		return p(s)
	}
	got := b.chooses(t, h, "/rewind\nother question\n/tree\n/tree\n/history\n/tree\nmore\n")
	has(t, got, "back to before record 5;", "The message was: second question", "switched to the other branch; the other is kept", "other question\n\nassistant", "last answer")

	b = newBench()
	head := session.Header{Version: session.Version, ID: "s1", Key: "pi:x:1", Origin: session.Origin{Program: "pi", Path: "/x", Key: "pi:x:1", ID: "s1"}}
	log := Log(append([]session.Body{head}, talk...)...)
	log = append(log, session.Record{Seq: 7, ID: "e6", Parent: "e1", Body: User("another branch")})
	if err := b.store.Append(context.Background(), "s1", log...); err != nil {
		t.Fatal(err)
	}
	for _, end := range []bool{false, true} {
		h = &hand{point: func(s *session.Session) *Point { return &Point{Record: record(s, "second question"), End: end} }}
		has(t, b.chooses(t, h, "/switch pi:x:1\n/tree\n"), "only read: goclaw sessions fork s1 --at 5 copies that branch")
	}
	if in, err := session.Stat(context.Background(), b.store, "s1"); err != nil || in.Records != len(log) {
		t.Errorf("the imported session has %d records now: %v", in.Records, err)
	}
}

func TestChoosingAHit(t *testing.T) {
	b := newBench()
	b.seed(t, "s1", "main:cli:user", talk...)
	b.seed(t, "s2", "main:cli:trip", talk...)
	ix, err := recall.Open(recall.Options{Store: b.store, Now: b.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	search := func(o *Options) { o.Search = ix }
	h := &hand{hit: func(c HitChoice) Found {
		for line, found := range map[string]bool{"second question": true, "--role assistant answer": true, "--until 2020-01-01 second": false, "zebra": false, "": false, "--role user": false} {
			hits, _, _, err := c.Find(context.Background(), line)
			if err != nil || len(hits) > 0 != found {
				t.Errorf("%q finds %d: %v", line, len(hits), err)
			}
		}
		if _, _, _, err := c.Find(context.Background(), "--rol user x"); err == nil {
			t.Error("there is a flag --rol")
		}
		return Found{Session: "s2", Seq: 3}
	}}
	has(t, b.chooses(t, h, "/switch main:cli:user\n/search\n", search), "Restored: 2 previous turns of main:cli:trip")
	h.hit = func(HitChoice) Found { return Found{Session: "s2", Seq: 3, Fork: true} }
	has(t, b.chooses(t, h, "/switch main:cli:user\n/search\n", search), "forked main:cli:trip as main:cli:trip-2, up to record 3", "Restored: 1 previous turn")
	h.hit = func(HitChoice) Found { return Found{} }
	if got := b.chooses(t, h, "/switch main:cli:user\n/search\n", search); strings.Contains(got, "Restored: 2 previous turns of main:cli:trip (") {
		t.Error(got)
	}
}

func TestChoosingAModel(t *testing.T) {
	b := newBench()
	b.seed(t, "s1", "main:cli:user", talk...)
	models := func(o *Options) {
		o.Choices = func(context.Context, bool) Choices {
			return Choices{Rows: [][]string{{" ", "#", "MODEL"}, {"*", "1", "test/one"}, {"", "2", "test/two"}}, Names: []string{"test/one", "test/two"}}
		}
		o.Think = func(*session.Session) Thinking { return Thinking{Offers: []string{"low", "high"}} }
		o.SetThink = func(string) (string, error) { return "", nil }
	}
	chosen := 2
	h := &hand{row: func(_ string, rows [][]string, at int) int { return chosen }}
	has(t, b.chooses(t, h, "/model\n/think\n", models), "now using test/two", "thinking: ")
	chosen = 0
	if got := b.chooses(t, h, "/model\n/think\n", models); strings.Contains(got, "now using") || strings.Contains(got, "thinking: ") {
		t.Errorf("nothing was chosen:\n%s", got)
	}
}

func TestCheckpointsInFull(t *testing.T) {
	b := newBench()
	cp := session.Checkpoint{Summary: "Two\nlines", Decisions: []string{"to go"}, Covers: "e2", Messages: 2, Model: "one"}
	b.seed(t, "s1", "main:cli:user", append(talk[:2:2], cp)...)
	h := &hand{}
	b.chooses(t, h, "/checkpoints\n")
	if len(h.texts) != 1 || h.texts[0][1] != "Two\nlines\n\nDecisions:\n- to go" {
		t.Errorf("shown: %q", h.texts)
	}
}

var _ chooser = (*hand)(nil)
