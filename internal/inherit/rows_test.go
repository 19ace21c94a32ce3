package inherit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/inherit"
	"goclaw/session"
)

// rows is a database of a program, which writes to it while it is read.
type rows struct {
	t    *testing.T
	path string
	c    *sqlite3.Conn
	at   int64 // its clock, in milliseconds
}

func newRows(t *testing.T, name, schema string) *rows {
	t.Helper()
	r := &rows{t: t, path: filepath.Join(t.TempDir(), name), at: time.Now().UnixMilli()}
	var err error
	if r.c, err = sqlite3.Open(r.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.c.Close() })
	r.do("PRAGMA journal_mode = WAL")
	r.do("%s", schema)
	return r
}

func (r *rows) do(sql string, args ...any) {
	r.t.Helper()
	if err := r.c.Exec(fmt.Sprintf(sql, args...)); err != nil {
		r.t.Fatalf("%v: %s", err, fmt.Sprintf(sql, args...))
	}
}

func (r *rows) now() int64 { r.at++; return r.at }

const opencodeSchema = `
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL, directory text NOT NULL, title text NOT NULL, version text NOT NULL,
	revert text, time_created integer NOT NULL, time_updated integer NOT NULL, time_compacting integer, time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);`

func (r *rows) message(id, data string) {
	n := r.now()
	r.do("INSERT INTO message VALUES ('%s', 'ses_1', %d, %d, '%s')", id, n, n, data)
}

func (r *rows) part(id, message, data string) {
	n := r.now()
	r.do("INSERT INTO part VALUES ('%s', '%s', 'ses_1', %d, %d, '%s') ON CONFLICT (id) DO UPDATE SET data = excluded.data, time_updated = excluded.time_updated", id, message, n, n, data)
}

// opencodeTurn returns the steps in which opencode writes a turn.
func (r *rows) opencodeTurn(k int, calls bool) []func() {
	u, a := fmt.Sprintf("msg_%03du", k), fmt.Sprintf("msg_%03dv", k)
	answer := func(more string) string {
		return fmt.Sprintf(`{"role":"assistant","parentID":"%s","providerID":"anthropic","modelID":"m","cost":0.5,"tokens":{"input":3,"output":8,"reasoning":0,"cache":{"read":1,"write":2}},"time":{"created":%d%s}`, u, r.at, more)
	}
	tool := func(state string) string {
		return fmt.Sprintf(`{"type":"tool","tool":"bash","callID":"c%d","state":{"input":{"command":"ls"},%s}}`, k, state)
	}
	steps := []func(){
		func() { r.message(u, fmt.Sprintf(`{"role":"user","time":{"created":%d}}`, r.at)) },
		func() { r.part("prt_"+u, u, fmt.Sprintf(`{"type":"text","text":"question %d"}`, k)) },
		func() { r.message(a, answer("}")) },
		func() { r.part("prt_"+a+"1", a, `{"type":"step-start"}`) },
		func() { r.part("prt_"+a+"2", a, `{"type":"text","text":"an"}`) },
		func() { r.part("prt_"+a+"2", a, fmt.Sprintf(`{"type":"text","text":"answer %d"}`, k)) },
	}
	if calls {
		steps = append(steps,
			func() { r.part("prt_"+a+"3", a, tool(`"status":"pending"`)) },
			func() { r.part("prt_"+a+"3", a, tool(`"status":"running"`)) },
			func() { r.part("prt_"+a+"3", a, tool(`"status":"completed","output":"a.txt"`)) })
	}
	return append(steps,
		func() {
			r.do(`UPDATE message SET time_updated = %d, data = '%s' WHERE id = '%s'`, r.now(), answer(fmt.Sprintf(`,"completed":%d},"finish":"stop"`, r.at)), a)
		},
		func() { // opencode sums up each turn later
			r.do(`UPDATE message SET time_updated = %d, data = json_set(data, '$.summary', json('{"diffs":[]}')) WHERE id = '%s'`, r.now(), u)
		})
}

const crushSchema = `
CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, message_count INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0,
	completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0, updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT, todos TEXT);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts BLOB NOT NULL default '[]', model TEXT, created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL, finished_at INTEGER, provider TEXT, is_summary_message INTEGER DEFAULT 0 NOT NULL);
CREATE TABLE files (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, path TEXT NOT NULL, content TEXT NOT NULL, version INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);`

func (r *rows) crushMessage(id, role, parts string, summary int) {
	n := r.now() / 1000
	r.do("INSERT INTO messages VALUES ('%s', 'ses_1', '%s', '%s', 'm', %d, %d, NULL, 'anthropic', %d) ON CONFLICT (id) DO UPDATE SET parts = excluded.parts, updated_at = excluded.updated_at", id, role, parts, n, n, summary)
}

// crushTurn returns the steps in which crush writes a turn.
func (r *rows) crushTurn(k int, calls bool) []func() {
	u, a, tool := fmt.Sprintf("u%d", k), fmt.Sprintf("a%d", k), fmt.Sprintf("t%d", k)
	text := fmt.Sprintf(`{"type":"text","data":{"text":"answer %d"}}`, k)
	call := fmt.Sprintf(`{"type":"tool_call","data":{"id":"c%d","name":"ls","input":"{\"path\":\".\"}","finished":true}}`, k)
	steps := []func(){
		func() {
			r.crushMessage(u, "user", fmt.Sprintf(`[{"type":"text","data":{"text":"question %d"}},{"type":"finish","data":{"reason":"stop"}}]`, k), 0)
		},
		func() { r.crushMessage(a, "assistant", `[]`, 0) },
		func() { r.crushMessage(a, "assistant", `[{"type":"text","data":{"text":"an"}}]`, 0) },
	}
	if calls {
		return append(steps,
			func() { r.crushMessage(a, "assistant", "["+text+","+call+"]", 0) },
			func() {
				r.crushMessage(a, "assistant", "["+text+","+call+`,{"type":"finish","data":{"reason":"tool_use","time":1}}]`, 0)
			},
			func() {
				r.crushMessage(tool, "tool", fmt.Sprintf(`[{"type":"tool_result","data":{"tool_call_id":"c%d","name":"ls","content":"a.txt"}},{"type":"finish","data":{"reason":"stop"}}]`, k), 0)
			})
	}
	return append(steps, func() {
		r.crushMessage(a, "assistant", "["+text+`,{"type":"finish","data":{"reason":"end_turn","time":1}}]`, 0)
	})
}

// same imports the database once more, into a new store, and compares: the log
// that has grown holds the same records, each once, and reads the same.
func (r *rows) same(st session.Store, log session.ID) {
	r.t.Helper()
	ctx := context.Background()
	whole := openStore(r.t, r.t.TempDir())
	take(r.t, whole, nil, false, r.path)
	a, err := session.Open(ctx, whole, log)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := session.Open(ctx, st, log)
	if err != nil {
		r.t.Fatal(err)
	}
	if diff := cmp.Diff(lines(a, "anthropic/m"), lines(b, "anthropic/m")); diff != "" {
		r.t.Errorf("context (-at once +in steps):\n%s", diff)
	}
	seen := map[string]bool{}
	for rec, err := range st.Read(ctx, log, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		if rec.ID != "" && seen[rec.ID] {
			r.t.Errorf("%s is in the log twice", rec.ID)
		}
		seen[rec.ID] = true
	}
	if n := len(dump(r.t, st)); n != 1 {
		r.t.Errorf("%d logs, want 1", n)
	}
}

// TestRowsGrow: however often a database is imported while its program writes
// it, and changes rows that it wrote before, nothing is lost and nothing doubled.
func TestRowsGrow(t *testing.T) {
	for name, c := range map[string]struct {
		schema, begin string
		turn          func(*rows, int, bool) []func()
	}{
		"opencode.db": {opencodeSchema, "INSERT INTO session VALUES ('ses_1', 'global', NULL, 'slug', '/home/me/proj', 'A title', '1.18', NULL, 1, 1, NULL, NULL)", (*rows).opencodeTurn},
		"crush.db":    {crushSchema, "INSERT INTO sessions (id, title, updated_at, created_at) VALUES ('ses_1', 'A title', 1, 1)", (*rows).crushTurn},
	} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 2))
				r := newRows(t, name, c.schema)
				r.do("%s", c.begin)
				st, m := openStore(t, t.TempDir()), inherit.NewMemo("")
				for k := range 5 {
					for _, step := range c.turn(r, k, rnd.IntN(2) == 0) {
						step()
						if rnd.IntN(3) > 0 {
							continue
						}
						if rnd.IntN(3) == 0 {
							m = inherit.NewMemo("")
						}
						rep, cat := take(t, st, m, false, r.path)
						if len(rep.Outcomes) != 1 || len(cat.Problems) > 0 {
							t.Fatalf("%v %v", rep.Outcomes, cat.Problems)
						}
						if o := rep.Outcomes[0]; o.State != inherit.New && o.State != inherit.Grown && o.State != inherit.Unchanged || o.Damaged > 0 {
							t.Errorf("%s, %v, %v", o.State, o.Err, o.Damage)
						}
					}
				}
				take(t, st, m, false, r.path)
				table := strings.Fields(c.begin)[2]
				for k := range 8 { // others, which are read at the same time
					r.do("CREATE TEMP TABLE o AS SELECT * FROM %s; UPDATE o SET id = 'other_%d'; INSERT INTO %[1]s SELECT * FROM o LIMIT 1; DROP TABLE o", table, k)
				}
				if rep, _ := take(t, openStore(t, t.TempDir()), nil, false, r.path); rep.Count(inherit.New) != 9 {
					t.Errorf("with others: %v", states(rep))
				}
				r.do("DELETE FROM %s WHERE id <> 'ses_1'", table)
				rep, _ := take(t, st, m, false, r.path)
				if rep.Records() != 0 {
					t.Errorf("%d records when nothing has changed", rep.Records())
				}
				r.same(st, "ses_1")
				in, err := session.Stat(context.Background(), st, "ses_1")
				if err != nil || in.Title != "A title" || in.Turns != 5 {
					t.Errorf("%+v, %v", in, err)
				}
			})
		}
	}
}

// TestRevert: what opencode has taken back is kept and not sent, until it is
// taken back for good by the next prompt, or not any more.
func TestRevert(t *testing.T) {
	r := newRows(t, "opencode.db", opencodeSchema)
	r.do("INSERT INTO session VALUES ('ses_1', 'global', NULL, 'slug', '/home/me/proj', 'New session - 2026-11-15T00:00:00.000Z', '1.18', NULL, 1, 1, NULL, NULL)")
	turn := func(k int) {
		for _, step := range r.opencodeTurn(k, true) {
			step()
		}
	}
	st, m := openStore(t, t.TempDir()), inherit.NewMemo("")
	revert := func(to string) { r.do("UPDATE session SET time_updated = %d, revert = %s", r.now(), to) }
	check := func(messages int) {
		t.Helper()
		for range 2 {
			rep, _ := take(t, st, m, false, r.path)
			if o := rep.Outcomes[0]; o.Err != nil || o.Title != "" || o.Damaged > 0 {
				t.Fatalf("%v, title %q", o.Err, o.Title)
			}
		}
		r.same(st, "ses_1")
		s, err := session.Open(t.Context(), st, "ses_1")
		if err != nil {
			t.Fatal(err)
		}
		if n := len(lines(s, "anthropic/m")); n != messages {
			t.Errorf("%d items are sent, want %d: %q", n, messages, lines(s, "anthropic/m"))
		}
		m = inherit.NewMemo("")
	}
	for k := range 3 {
		turn(k)
	}
	check(12)
	revert(`'{"messageID":"msg_001u"}'`)
	check(4)
	revert("NULL")
	check(12)
	revert(`'{"messageID":"msg_002u"}'`)
	check(8)
	r.do("DELETE FROM part WHERE message_id >= 'msg_002'; DELETE FROM message WHERE id >= 'msg_002'")
	revert("NULL")
	turn(3)
	check(12)
	revert(`'{"messageID":"msg_000v","partID":"prt_msg_000v3"}'`)
	check(1)
}

// TestNeverFinished: an answer that was cut off when the program died is imported
// once it is old, and replaced should it be continued.
func TestNeverFinished(t *testing.T) {
	for name, c := range map[string]struct {
		schema, begin string
		turn          func(*rows, int, bool) []func()
		cut           int // steps up to where it dies
	}{
		"opencode.db": {opencodeSchema, "INSERT INTO session VALUES ('ses_1', 'global', NULL, 'slug', '/home/me/proj', 'A title', '1.18', NULL, 1, 1, NULL, NULL)", (*rows).opencodeTurn, 8},
		"crush.db":    {crushSchema, "INSERT INTO sessions (id, title, updated_at, created_at) VALUES ('ses_1', 'A title', 1, 1)", (*rows).crushTurn, 4},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRows(t, name, c.schema)
			r.at -= time.Hour.Milliseconds()
			r.do("%s", c.begin)
			steps := c.turn(r, 0, true)
			for _, step := range steps[:c.cut] {
				step()
			}
			st := openStore(t, t.TempDir())
			take(t, st, nil, false, r.path)
			s, err := session.Open(t.Context(), st, "ses_1")
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(s, "anthropic/m"); len(got) != 4 {
				t.Errorf("%q", got)
			}
			for _, step := range steps[c.cut:] {
				step()
			}
			take(t, st, nil, false, r.path)
			r.same(st, "ses_1")
		})
	}
}

// TestLongRow: a message that no store takes costs that message.
func TestLongRow(t *testing.T) {
	r := newRows(t, "opencode.db", opencodeSchema)
	r.do("INSERT INTO session VALUES ('ses_1', 'global', NULL, 'slug', '/home/me/proj', 'A title', '1.18', NULL, 1, 1, NULL, NULL)")
	for k := range 3 {
		for _, step := range r.opencodeTurn(k, false) {
			step()
		}
	}
	r.do(`UPDATE part SET data = '{"type":"text","text":"' || printf('%%.*c', 34000000, 'x') || '"}' WHERE id = 'prt_msg_001v2'`)
	st := openStore(t, t.TempDir())
	rep, _ := take(t, st, nil, false, r.path)
	if o := rep.Outcomes[0]; o.State != inherit.New || o.Damaged != 1 || !strings.Contains(o.Damage[0].Reason, "the limit is") {
		t.Fatalf("%s, %v, %v", o.State, o.Damage, o.Err)
	}
	s, err := session.Open(t.Context(), st, "ses_1")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"user question 0", "assistant answer 0", "user question 1", "user question 2", "assistant answer 2"}
	if diff := cmp.Diff(want, lines(s, "anthropic/m")); diff != "" {
		t.Error(diff)
	}
}
