package jsonl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/storetest"
)

func header(id session.ID, key session.Key) session.Record {
	return session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{Version: session.Version, ID: id, Key: key}}
}

func logOf(id session.ID, key session.Key, bodies ...session.Body) []session.Record {
	return sessiontest.Log(append([]session.Body{session.Header{Version: session.Version, ID: id, Key: key}}, bodies...)...)
}

func list(t testing.TB, st session.Store, q session.Query) []session.Info {
	t.Helper()
	infos, err := sessiontest.Collect(st.List(t.Context(), q))
	must(t, err)
	return infos
}

// write puts text at the path below dir.
func write(t testing.TB, text, dir string, path ...string) string {
	t.Helper()
	name := filepath.Join(append([]string{dir}, path...)...)
	must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	must(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func addTo(t testing.TB, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, err)
	must(t, f.Close())
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		y    Layout
		key  session.Key
		id   session.ID
		want string
	}{
		{OpenClaw, "agent:ops:telegram:direct:42", "0198-a", "agents/ops/sessions/0198-a.jsonl"},
		{OpenClaw, "", "x", "agents/main/sessions/x.jsonl"},
		{OpenClaw, "agent:my_agent:main", "x", "agents/my_agent/sessions/x.jsonl"},
		{OpenClaw, "agent:../..:main", "../x", "agents/%2e.%2f.%2e/sessions/%2e.%2fx.jsonl"},
		{OpenClaw, "agent:OPS:main", "A", "agents/%4f%50%53/sessions/%41.jsonl"},
		{Claw0New, "claw0:cli:me", "bc17fa9d53c2", "agents/claw0/sessions/bc17fa9d53c2.jsonl"},
		{Claw0Old, "main:cli:user", "ab3aae252395", "transcripts/main_cli_user_ab3aae252395.jsonl"},
		{Claw0Old, "main:cli:a_b", "ab3a", "transcripts/main_cli_a%5fb_ab3a.jsonl"},
		{Claw0Old, "main:cli:a:b", "ab3a", "transcripts/main_cli_a_b_ab3a.jsonl"},
	} {
		if got := c.y.place(c.key, c.id); filepath.ToSlash(got) != c.want {
			t.Errorf("%v: %q of %q is %q, want %q", c.y, c.id, c.key, got, c.want)
		}
	}
	long := session.Key(strings.Repeat("🦀", 75))
	seen := map[string]bool{}
	for _, y := range layouts {
		clear(seen)
		for _, key := range []session.Key{"a:b", "a_b", "A:B", "../x", "", long, long + "x", long[:296]} {
			for _, id := range []session.ID{"x", "X", "b_x", session.ID(long), session.ID(long + "y")} {
				name := strings.ToLower(y.place(key, id))
				if y == Claw0Old && seen[name] || !filepath.IsLocal(name) || len(filepath.Base(name)) > 230 {
					t.Errorf("%v: %q of %q is %q", y, id, key, name)
				}
				seen[name] = true
			}
		}
	}
}

func TestTrashNames(t *testing.T) {
	at := time.Date(2026, 11, 15, 0, 15, 28, 552e6, time.UTC)
	rel := filepath.Join("agents", "main", "sessions", "x.jsonl")
	name := trashName(rel, at)
	if want := filepath.Join("agents", "main", "sessions", "trash", "x.jsonl.deleted.2026-11-15T00-15-28.552Z"); name != want {
		t.Errorf("the trash name is %q, want %q", name, want)
	}
	live, when, ok := fromTrash(name)
	if live != rel || !when.Equal(at) || !ok {
		t.Errorf("back from the trash: %q, %v, %v", live, when, ok)
	}
	for _, no := range []string{rel, rel + ".deleted.2026-11-15T00-15-28.552Z", filepath.Join("a", "trash", "x.jsonl.deleted.soon"), filepath.Join("a", "trash", "x.jsonl")} {
		if _, _, ok := fromTrash(no); ok {
			t.Errorf("%q is taken for a log in the trash", no)
		}
	}
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	st := reopen(t, dir, OpenClaw)
	must(t, st.Append(t.Context(), "s1", header("s1", "k")))
	must(t, st.Close())
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		must(t, err)
		fi, err := e.Info()
		must(t, err)
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[e.IsDir()]; fi.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, fi.Mode().Perm(), want)
		}
		return nil
	}))
}

// If projections are lost, empty, old or damaged, the list is the same.
func TestIndexIsNotTheTruth(t *testing.T) {
	for _, y := range layouts {
		t.Run(y.String(), func(t *testing.T) {
			dir := t.TempDir()
			st := reopen(t, dir, y)
			for i := range 5 {
				id := session.ID(fmt.Sprintf("s%d", i))
				must(t, st.Append(t.Context(), id, logOf(id, session.Key(fmt.Sprintf("main:cli:%d", i/2)), sessiontest.User("a"), sessiontest.Title(string(id)))...))
			}
			must(t, st.Delete(t.Context(), "s4"))
			must(t, st.Close())
			indices := []string{st.proj.indexPath(), st.path(y.index(filepath.Dir(y.place("main:x:y", "s0"))))}
			var old [2][]byte
			for i, name := range indices {
				var err error
				old[i], err = os.ReadFile(name)
				must(t, err)
			}
			st = reopen(t, dir, y)
			must(t, st.Append(t.Context(), "s1", session.Record{Seq: 4, ID: "e3", Parent: "e2", Time: sessiontest.Start.Add(time.Hour), Body: sessiontest.Answer("b")}))
			want, gone := list(t, st, session.Query{}), list(t, st, session.Query{Trash: true})
			if len(want) != 4 || len(gone) != 1 || want[0].ID != "s1" || want[0].Records != 4 {
				t.Fatalf("the list is %+v and %+v", want, gone)
			}
			must(t, st.Close())
			for i, name := range indices {
				now, err := os.ReadFile(name)
				must(t, err)
				for what, b := range map[string][]byte{"lost": nil, "empty": {}, "stale": old[i], "garbage": []byte("{\x00"), "half": now[:len(now)/2],
					"an array": []byte("[]"), "flipped": flipped(now)} {
					must(t, os.WriteFile(name, b, 0o600))
					if what == "lost" {
						must(t, os.Remove(name))
					}
					for range 2 { // as it is, and as it was repaired
						st := reopen(t, dir, y)
						if d := cmp.Diff(want, list(t, st, session.Query{})); d != "" {
							t.Errorf("%s is %s (-want +got):\n%s", filepath.Base(name), what, d)
						}
						if d := cmp.Diff(gone, list(t, st, session.Query{Trash: true})); d != "" {
							t.Errorf("%s is %s, in the trash (-want +got):\n%s", filepath.Base(name), what, d)
						}
						must(t, st.Close())
					}
					if i == 1 {
						if got, err := os.ReadFile(name); err != nil || !json.Valid(got) || strings.Count(string(got), `"goclaw"`) != map[Layout]int{OpenClaw: 2, Claw0Old: 2, Claw0New: 4}[y] {
							t.Errorf("%s was %s and became %s, %v", name, what, got, err)
						}
					}
				}
			}
		})
	}
}

func flipped(b []byte) []byte {
	b = append([]byte(nil), b...)
	b[len(b)/2] ^= 0x41
	return b
}

// An append does not touch the projections.
func TestAppendWritesTheLogOnly(t *testing.T) {
	dir := t.TempDir()
	st := reopen(t, dir, OpenClaw)
	recs := logOf("s1", "k", sessiontest.User("a"), sessiontest.User("b"))
	must(t, st.Append(t.Context(), "s1", recs[0]))
	must(t, st.Close())
	d := &shaky{disk: osDisk{}}
	st, err := open(dir, Options{}, d)
	must(t, err)
	defer st.Close()
	must(t, st.Append(t.Context(), "s1", recs[1]))
	log := &logging{disk: osDisk{}}
	st.disk = log
	must(t, st.Append(t.Context(), "s1", recs[2]))
	if want := []string{"write s1.jsonl", "sync s1.jsonl"}; !reflect.DeepEqual(log.ops, want) {
		t.Errorf("an append does %v, want %v", log.ops, want)
	}
}

// logging is a disk that notes writes and counts the bytes read.
type logging struct {
	disk
	ops  []string
	read atomic.Int64
}

type loggingFile struct {
	file
	d    *logging
	name string
}

func (d *logging) open(name string, flag int) (file, error) {
	f, err := d.disk.open(name, flag)
	return &loggingFile{f, d, filepath.Base(name)}, err
}

func (f *loggingFile) Write(b []byte) (int, error) {
	f.d.ops = append(f.d.ops, "write "+f.name)
	return f.file.Write(b)
}

func (f *loggingFile) Sync() error {
	f.d.ops = append(f.d.ops, "sync "+f.name)
	return f.file.Sync()
}

func (f *loggingFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.file.ReadAt(b, off)
	f.d.read.Add(int64(n))
	return n, err
}

// straight returns a log with ids of our own and a compaction near the end that
// keeps little.
func straight(n int) []session.Record {
	c := &sessiontest.Clock{}
	s := []session.Record{header("s1", "k")}
	parent := ""
	for i := 2; i <= n; i++ {
		c.Move(time.Millisecond)
		r := session.Record{Seq: session.Seq(i), ID: fmt.Sprintf("%d_%08x", c.Now().UnixMilli(), uint32(c.Rand())), Parent: parent, Time: sessiontest.Start, Body: sessiontest.User(strings.Repeat("words ", 50))}
		if i == n-20 {
			r.Body = session.Compaction{Summary: "before", FirstKept: s[i-10].ID}
		}
		parent = r.ID
		s = append(s, r)
	}
	return s
}

// A new process reads only the end of a long log, to continue it or to append to
// it.
func TestLongLogsLoadShort(t *testing.T) {
	dir := t.TempDir()
	st := reopen(t, dir, OpenClaw)
	recs := straight(3000)
	must(t, st.Append(t.Context(), "s1", recs[:2000]...))
	for _, r := range recs[2000:] {
		must(t, st.Append(t.Context(), "s1", r))
	}
	must(t, st.Close())
	d := &logging{disk: osDisk{}}
	cold, err := open(dir, Options{}, d)
	must(t, err)
	defer cold.Close()
	s, err := session.Open(t.Context(), cold, "s1")
	must(t, err)
	if s.KeepFrom != 2972-1 || s.Last != 3000 || len(s.Branch) != 30 || s.Branch[0].Seq != s.KeepFrom {
		t.Fatalf("the session has %d records from %d on, keeps from %d", len(s.Branch), s.Branch[0].Seq, s.KeepFrom)
	}
	r := s.Next(sessiontest.User("on"), session.System{})
	must(t, cold.Append(t.Context(), "s1", r))
	fi, err := os.Stat(logFile(t, cold, "s1"))
	must(t, err)
	if got := d.read.Load(); got > 80_000 || fi.Size() < 1_000_000 {
		t.Errorf("going on with a log of %d bytes reads %d", fi.Size(), got)
	}
	checkInfo(t, cold, "s1")
	d.read.Store(0)
	if got, err := sessiontest.Collect(cold.Read(t.Context(), "s1", 3000)); err != nil || len(got) != 1 || d.read.Load() > 5000 {
		t.Errorf("the last record: %d records, %v, %d bytes read", len(got), err, d.read.Load())
	}
}

// A false place of the context in the index is noticed.
func TestFalseOffset(t *testing.T) {
	var logText []byte
	for what, lie := range map[string]func(*view){
		"in a line":     func(v *view) { v.keep.off += 7 },
		"at no line":    func(v *view) { v.keep.off++; v.keepSum = 1 },
		"at another":    func(v *view) { v.keep.off = int64(strings.Index(string(logText), "\n")) + 1 },
		"behind all":    func(v *view) { v.keep.off = v.next + 1000 },
		"wrong end":     func(v *view) { v.stat.size -= 500; v.next -= 500 },
		"wrong inode":   func(v *view) { v.stat.ino++ },
		"wrong content": func(v *view) { v.stat.size -= 500; v.next -= 500; v.stat.mtime-- },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			st := reopen(t, dir, OpenClaw)
			recs := straight(100)
			must(t, st.Append(t.Context(), "s1", recs...))
			must(t, st.Close())
			var err error
			logText, err = os.ReadFile(logFile(t, st, "s1"))
			must(t, err)
			b, err := os.ReadFile(st.proj.indexPath())
			must(t, err)
			lies := []byte(indexMagic)
			if !parseIndex(string(b), func(e *entry) {
				if e.id == "s1" {
					lie(&e.view)
				}
				lies = appendEntry(lies, *e)
			}) {
				t.Fatal("the index is not clean")
			}
			must(t, os.WriteFile(st.proj.indexPath(), lies, 0o600))
			st = reopen(t, dir, OpenClaw)
			s, err := session.Open(t.Context(), st, "s1")
			must(t, err)
			if len(s.Branch) != 30 || s.Branch[0].ID != recs[s.KeepFrom-1].ID {
				t.Errorf("the branch has %d records, the first is %s", len(s.Branch), s.Branch[0].ID)
			}
			checkInfo(t, st, "s1")
		})
	}
}

// Other programs append to logs, replace them and cut them.
func TestOtherPrograms(t *testing.T) {
	dir := t.TempDir()
	st := reopen(t, dir, OpenClaw)
	recs := logOf("s1", "agent:main:main", sessiontest.User("one"), sessiontest.Answer("two"))
	must(t, st.Append(t.Context(), "s1", recs...))
	path := logFile(t, st, "s1")
	line := func(id, parent string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":"by another"}}`+"\n", id, parent)
	}
	want := func(what, ids string, broken int) {
		t.Helper()
		got, damage := readAll(t, st, "s1")
		if idsOf(got) != ids || len(damage) != broken {
			t.Fatalf("%s: records %s, damage %v, want %s and %d", what, idsOf(got), damage, ids, broken)
		}
		checkInfo(t, st, "s1")
	}
	must(t, st.Append(t.Context(), "s1"))
	addTo(t, path, line("f1", "e2"))
	want("appended to", ",e1,e2,f1", 0)
	next := session.Record{Seq: 4, ID: "e3", Parent: "e2", Time: sessiontest.Start, Body: sessiontest.User("late")}
	if err := st.Append(t.Context(), "s1", next); !errors.Is(err, session.ErrConflict) {
		t.Fatalf("an append that does not know of the other's line: %v", err)
	}
	next.Seq, next.Parent = 5, "f1"
	must(t, st.Append(t.Context(), "s1", next))
	want("appended by both", ",e1,e2,f1,e3", 0)
	addTo(t, path, "\n\n"+line("f2", "e3")+"\x00\x00\n"+line("f3", "f2"))
	want("blank lines and zeros", ",e1,e2,f1,e3,f2,f3", 1)
	text, err := os.ReadFile(path)
	must(t, err)
	addTo(t, path, line("f4", "f3")[:30])
	want("a torn line", ",e1,e2,f1,e3,f2,f3", 2)
	addTo(t, path, line("f4", "f3")[30:])
	want("the line goes on", ",e1,e2,f1,e3,f2,f3,f4", 1)
	must(t, os.WriteFile(path, text, 0o600)) // in place
	want("cut", ",e1,e2,f1,e3,f2,f3", 1)
	other := strings.Replace(string(text), `"type":"message"`, `"type":"massage"`, 1)
	must(t, os.WriteFile(path, []byte(other+line("f5", "f3")), 0o600))
	want("written anew and longer", ",e1,e2,f1,e3,f2,f3,f5", 1)
	must(t, os.WriteFile(path+".tmp", text, 0o600))
	must(t, os.Rename(path+".tmp", path))
	want("replaced", ",e1,e2,f1,e3,f2,f3", 1)
	must(t, os.Rename(path, filepath.Join(filepath.Dir(path), "moved.jsonl")))
	want("renamed", ",e1,e2,f1,e3,f2,f3", 1)
	must(t, os.Remove(filepath.Join(filepath.Dir(path), "moved.jsonl")))
	if got := list(t, st, session.Query{}); len(got) != 0 {
		t.Errorf("after the file was removed, the list is %+v", got)
	}
}

// In a folder of OpenClaw's, only sessions.json has the keys of logs. It may have
// comments, and the entries of OpenClaw stay.
func TestOpenClawFolder(t *testing.T) {
	dir := t.TempDir()
	const id, orphan = "1de9ce9c-e3ee-43bc-b16e-78f3d1d0fe49", "a357e3ec-6e8a-4bf8-8db9-960f33721d79"
	log := func(id string) string {
		return `{"type":"session","version":3,"id":"` + id + `","timestamp":"2026-11-15T00:11:36.537Z","cwd":"/home/openclaw/ws"}
{"type":"model_change","id":"1dddd25f","parentId":null,"timestamp":"2026-11-15T00:11:36.537Z","provider":"fakeant","modelId":"fake-claude"}
{"type":"message","id":"149f36d1","parentId":"1dddd25f","timestamp":"2026-11-15T00:11:36.538Z","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1794701496880}}
`
	}
	folder := filepath.Join(dir, "agents", "main", "sessions")
	write(t, log(id), folder, id+".jsonl")
	write(t, log(orphan), folder, orphan+".jsonl")
	write(t, log(id), folder, id+".checkpoint.77.jsonl")
	index := write(t, `{
  // the main one
  "agent:main:main": {"sessionId": "`+id+`", "updatedAt": 1794701496880, "skillsSnapshot": {"prompt": "p\u0041"}, "x": 1.0,},
  "agent:main:gone": {"sessionId": "9", "updatedAt": 5},
}`, folder, "sessions.json")
	st := reopen(t, dir, OpenClaw)
	got := list(t, st, session.Query{})
	if len(got) != 2 || got[0].Key != "agent:main:main" || got[0].ID != id || got[1].Key != "" || got[1].ID != orphan {
		t.Fatalf("the list is %+v", got)
	}
	checkInfo(t, st, id)
	s, err := session.Load(t.Context(), st, "agent:main:main", session.System{})
	must(t, err)
	if s.ID != id || len(s.Branch) != 2 {
		t.Fatalf("the key loads session %s with %d records", s.ID, len(s.Branch))
	}
	must(t, st.Append(t.Context(), id, s.Next(sessiontest.Title("hello"), session.System{})))
	s2, err := session.Begin(t.Context(), st, session.Header{Key: "agent:main:cli:direct:me"}, session.System{})
	must(t, err)
	must(t, st.Close())
	b, err := os.ReadFile(index)
	must(t, err)
	var table map[string]map[string]any
	if err := json.Unmarshal(b, &table); err != nil {
		t.Fatalf("%v in\n%s", err, b)
	}
	main := table["agent:main:main"]
	if main["sessionId"] != id || main["updatedAt"].(float64) <= 1794701496880-1 && main["updatedAt"].(float64) < 1e12 || !strings.Contains(string(b), `"skillsSnapshot": {"prompt": "p\u0041"}, "x": 1.0`) ||
		main["goclaw"].(map[string]any)["title"] != "hello" {
		t.Errorf("the row of the main session is %v", main)
	}
	if mine := table["agent:main:cli:direct:me"]; mine["sessionId"] != string(s2.ID) || mine["updatedAt"] != float64(s2.Updated.UnixMilli()) || mine["sessionFile"] != nil {
		t.Errorf("the row of the new session is %v", mine)
	}
	if table["agent:main:gone"]["updatedAt"] != 5.0 || len(table) != 3 {
		t.Errorf("the table is %v", table)
	}
	st = reopen(t, dir, OpenClaw)
	must(t, st.Delete(t.Context(), s2.ID))
	must(t, st.Close())
	if b, err := os.ReadFile(index); err != nil || strings.Contains(string(b), string(s2.ID)) || !strings.Contains(string(b), id) {
		t.Errorf("after a delete the table is %s, %v", b, err)
	}
	if _, err := os.Stat(index + ".lock"); err == nil {
		t.Error("the lock of sessions.json was left behind")
	}
}

// OpenClaw shows a label: the title, unless OpenClaw has given it another.
func TestLabels(t *testing.T) {
	dir := t.TempDir()
	const key = "agent:main:cli:direct:me"
	index := filepath.Join(dir, "agents", "main", "sessions", "sessions.json")
	long := strings.Repeat("ä", 40)
	for _, step := range []struct{ title, edit, want string }{
		{"", "", ""},
		{"hello", "", "hello"},
		{long, "", strings.Repeat("ä", 32)},
		{"hello again", "", "hello again"},
		{"mine", `"label": "theirs"`, "theirs"},
		{"mine too", "", "theirs"},
	} {
		if step.edit != "" {
			b, err := os.ReadFile(index)
			must(t, err)
			must(t, os.WriteFile(index, regexp.MustCompile(`"label": ?"[^"]*"`).ReplaceAll(b, []byte(step.edit)), 0o600))
		}
		st := reopen(t, dir, OpenClaw)
		s, err := session.Load(t.Context(), st, key, session.System{})
		must(t, err)
		if step.title != "" {
			must(t, st.Append(t.Context(), s.ID, s.Next(sessiontest.Title(step.title), session.System{})))
		}
		must(t, st.Close())
		b, err := os.ReadFile(index)
		must(t, err)
		var table map[string]struct{ Label *string }
		must(t, json.Unmarshal(b, &table))
		if got := table[key].Label; (got != nil) != (step.want != "") || got != nil && *got != step.want {
			t.Errorf("after the title %q the label is %v in\n%s", step.title, got, b)
		}
	}
}

// While OpenClaw works on a session, nobody else gets its lock.
func TestOpenClawHolds(t *testing.T) {
	dir := t.TempDir()
	st := reopen(t, dir, OpenClaw)
	must(t, st.Append(t.Context(), "s1", header("s1", "k")))
	lock := logFile(t, st, "s1") + ".lock"
	note := func(pid int, at time.Time) {
		must(t, os.WriteFile(lock, fmt.Appendf(nil, "{\n  \"pid\": %d,\n  \"createdAt\": %q\n}", pid, at.UTC().Format(time.RFC3339)), 0o600))
	}
	note(os.Getpid(), time.Now())
	var held *session.HeldError
	if _, err := st.Lock(t.Context(), "s1", "me"); !errors.As(err, &held) || held.Who != "openclaw" || held.PID != os.Getpid() || held.Name != "s1" {
		t.Fatalf("a lock beside OpenClaw's: %v", err)
	}
	for what, set := range map[string]func(){
		"an old lock":       func() { note(os.Getpid(), time.Now().Add(-time.Hour)) },
		"a dead process":    func() { note(1<<22-1, time.Now()) },
		"something garbled": func() { must(t, os.WriteFile(lock, []byte("{"), 0o600)) },
	} {
		set()
		release, err := st.Lock(t.Context(), "s1", "me")
		if err != nil {
			t.Fatalf("a lock beside %s: %v", what, err)
		}
		release()
	}
}

// The lock of a sessions.json is taken over when OpenClaw would do so, or a second
// after its process was last here: the process may be written late, or be one of
// another container. One that a store of this kind has left is taken over at once.
func TestLockOfTheTable(t *testing.T) {
	dir := t.TempDir()
	st := reopen(t, dir, OpenClaw)
	must(t, st.Append(t.Context(), "s1", header("s1", "k")))
	lock := filepath.Join(filepath.Dir(logFile(t, st, "s1")), "sessions.json.lock")
	now, old := time.Now(), time.Now().Add(-31*time.Second)
	for name, c := range map[string]struct {
		note      string
		at        time.Time
		abandoned bool
	}{
		"not written yet":             {"", now.Add(-time.Second), false},
		"written in part":             {`{"pid":`, now.Add(-time.Second), false},
		"of a process elsewhere":      {`{"pid":4194303,"startedAt":1}`, now.Add(time.Minute), false},
		"of a process that has ended": {`{"pid":4194303,"startedAt":1}`, now.Add(-2 * time.Second), true},
		"of a process here":           {fmt.Sprintf(`{"pid":%d,"startedAt":1}`, os.Getppid()), now, false},
		"never written, and old":      {"", old, true},
		"old":                         {`{"pid":4194303,"startedAt":1}`, old, true},
		"of a goclaw that was killed": {`{"pid":4194303,"startedAt":1,"by":"goclaw"}`, now, true},
	} {
		must(t, os.WriteFile(lock, []byte(c.note), 0o600))
		must(t, os.Chtimes(lock, c.at, c.at))
		if got := st.root.abandoned(lock); got != c.abandoned {
			t.Errorf("a lock %s is abandoned: %v", name, got)
		}
	}
	must(t, os.WriteFile(lock, []byte(`{"pid":4194303,"startedAt":1,"by":"goclaw"}`), 0o600))
	must(t, st.Close())
	if _, err := os.Stat(lock); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock: %v", err)
	}
}

func TestCheckAndRebuild(t *testing.T) {
	for _, y := range layouts {
		t.Run(y.String(), func(t *testing.T) {
			dir := t.TempDir()
			st := reopen(t, dir, y)
			for i := range 3 {
				id := session.ID(fmt.Sprintf("s%d", i))
				must(t, st.Append(t.Context(), id, logOf(id, "main:cli:me", sessiontest.User("a"), sessiontest.Answer("b"))...))
			}
			must(t, st.Delete(t.Context(), "s2"))
			must(t, st.Close())
			check := func(want ...string) {
				t.Helper()
				st := reopen(t, dir, y)
				defer st.Close()
				var said []string
				must(t, st.Check(t.Context(), func(id session.ID, err error) { said = append(said, fmt.Sprintf("%s: %v", id, err)) }))
				if len(said) != len(want) {
					t.Fatalf("check says %q, want %q", said, want)
				}
				for i := range want {
					if !strings.Contains(said[i], want[i]) {
						t.Errorf("check says %q, want %q", said[i], want[i])
					}
				}
			}
			rebuild := func(want int) {
				t.Helper()
				st := reopen(t, dir, y)
				defer st.Close()
				if n, err := st.Rebuild(t.Context()); n != want || err != nil {
					t.Errorf("rebuild changed %d, %v, want %d", n, err, want)
				}
			}
			check()
			rebuild(0)

			// A log that is changed in place and looks unchanged.
			path := logFile(t, st, "s0")
			text, err := os.ReadFile(path)
			must(t, err)
			fi, err := os.Stat(path)
			must(t, err)
			broken := strings.Replace(string(text), `"type":"message"`, `"type":"massage"`, 1)
			must(t, os.WriteFile(path, []byte(broken), 0o600))
			must(t, os.Chtimes(path, time.Time{}, fi.ModTime()))
			changed := "s0: " + path + ":2: record 2 has changed since it was written: "
			check(changed, "s0: the index and "+path+" differ: turns: 1 in the index, 0 in the log")
			rebuild(2) // s1 and sessions.json, which has its turns
			check(changed)

			addTo(t, path, "\x00garbage\n")
			check("s0: "+path+":"+fmt.Sprint(strings.Count(broken, "\n")+1)+": ", changed)
			before, err := os.ReadFile(path)
			must(t, err)
			rebuild(0)
			if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
				t.Errorf("rebuild changed a log: %v", err)
			}

			table := st.path(y.index(filepath.Dir(y.place("main:cli:me", "s0"))))
			must(t, os.WriteFile(table, []byte("{oops"), 0o600))
			must(t, os.WriteFile(st.proj.indexPath(), []byte("oops"), 0o600))
			check(st.proj.indexPath()+" is damaged", table+" cannot be read", "s0: "+path, changed)
			backups, err := filepath.Glob(table + ".bak.*")
			must(t, err)
			if len(backups) != 1 {
				t.Errorf("the table that could not be read is kept as %q", backups)
			}
			must(t, os.Remove(st.proj.indexPath()))
			must(t, os.Remove(table))
			rebuild(4)
			rebuild(0)
		})
	}
}

// Every field of an Info is in the index.
func TestIndexKeepsEverything(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch {
		case v.Type() == reflect.TypeFor[time.Time]():
			v.Set(reflect.ValueOf(time.Unix(rng.Int64N(1<<33), rng.Int64N(1e9)).UTC()))
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		case v.Kind() == reflect.String:
			v.SetString(fmt.Sprint("text ", rng.Int()))
		case v.CanInt():
			v.SetInt(rng.Int64() - 1<<62)
		case v.CanFloat(), v.Kind() == reflect.Bool: // of llm.Usage: an Info counts only tokens
		default:
			t.Fatalf("there is no filling %v", v.Type())
		}
	}
	var in session.Info
	fill(reflect.ValueOf(&in).Elem())
	want := entry{rel: "a/b.jsonl", id: "x", key: "k", view: view{known: true, stat: stat{ino: 1 << 63, size: 2, mtime: 3}, next: 4, lines: 5, open: true, sums: sums{6, 1 << 31},
		version: 3, keyless: true, info: in, keep: mark{7, -1, 9}, keepSum: 1<<32 - 1, newest: newest{ms: 10, ids: []string{"p", "q"}}}}
	b := appendEntry([]byte(indexMagic), want)
	var got entry
	n := 0
	clean := parseIndex(string(b), func(e *entry) { got, n = *e, n+1 })
	if d := cmp.Diff(want, got, cmp.AllowUnexported(entry{}, view{}, stat{}, sums{}, mark{}, newest{}, place{})); d != "" || n != 1 || !clean {
		t.Errorf("an entry comes back changed, %d entries, clean is %v (-want +got):\n%s", n, clean, d)
	}
	for cut := range b {
		clean := parseIndex(string(b[:cut]), func(*entry) { t.Fatalf("an index that ends at byte %d has an entry", cut) })
		if clean && cut != len(indexMagic) {
			t.Fatalf("an index that ends at byte %d is clean", cut)
		}
	}
}

// Most new ids are known to be new without remembering the old ones.
func TestNewestIDs(t *testing.T) {
	var s newest
	for _, c := range []struct {
		id  string
		new bool
	}{
		{"1794701496880_0a", true},
		{"1794701496880_0a", false},
		{"1794701496880_0b", true},
		{"1794701496879_0c", false}, // the clock ran back
		{"1794701496881_0a", true},
		{"1794701496880_0d", false},
		{"1dddd25f", false},
		{"1794701496882_0G", false},
		{"1794701496882_", false},
		{"0794701496882_0a", false},
		{"99999999999999999999_0a", false},
		{"1794701496882_0a", true},
	} {
		if got := s.exclude(c.id); got != c.new {
			t.Errorf("%s is new: %v, want %v", c.id, got, c.new)
		}
		s.add(c.id)
	}
	for i := range 100 {
		s.add(fmt.Sprintf("1794701496882_%02x", i))
	}
	if s.exclude("1794701496882_ff") || !s.exclude("1794701496883_00") {
		t.Error("ids are forgotten, or not sure for longer than they need to be")
	}
}

// Logs of old versions are read as the real program upgrades them. They are not
// appended to: the ids of their records are line numbers.
func TestVersion1(t *testing.T) {
	dir := t.TempDir()
	path := write(t, `{"type":"session","id":"v1","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}
{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"q1"}}
{"type":"message","timestamp":"2025-01-01T00:00:02.000Z","message":{"role":"user","content":"q2"}}
`, dir, "agents", "main", "sessions", "v1.jsonl")
	st := reopen(t, dir, OpenClaw)
	in, err := session.Stat(t.Context(), st, "v1")
	must(t, err)
	if in.Turns != 2 || in.Last != 3 {
		t.Errorf("the log adds up to %+v", in)
	}
	got, err := sessiontest.Collect(st.Read(t.Context(), "v1", 2))
	must(t, err)
	if len(got) != 1 || got[0].Parent == "" || got[0].Seq != 3 {
		t.Errorf("the last record is %+v", got)
	}
	before, err := os.ReadFile(path)
	must(t, err)
	if err := st.Append(t.Context(), "v1", session.Record{Seq: 4, ID: "x", Parent: in.Leaf, Time: sessiontest.Start, Body: sessiontest.User("q3")}); err == nil || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("an append to version 1: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed: %v", err)
	}
}

// Close writes a row that an earlier flush has left old.
func TestCloseWritesOldRows(t *testing.T) {
	dir := t.TempDir()
	st := reopen(t, dir, OpenClaw)
	st.proj.pause = time.Hour // nothing happens by itself
	recs := logOf("s1", "k", sessiontest.User("a"), sessiontest.Answer("b"))
	must(t, st.Append(t.Context(), "s1", recs[:2]...))
	must(t, st.proj.flush(false))
	must(t, st.Append(t.Context(), "s1", recs[2]))
	must(t, st.proj.flush(false))
	records := func() int64 {
		b, err := os.ReadFile(filepath.Join(dir, "agents", "main", "sessions", "sessions.json"))
		must(t, err)
		var rows map[string]struct{ Goclaw struct{ Records int64 } }
		must(t, json.Unmarshal(b, &rows))
		return rows["k"].Goclaw.Records
	}
	if n := records(); n != 2 {
		t.Errorf("before Close the row has %d records, want 2: only the last flush writes what has grown", n)
	}
	must(t, st.Close())
	if n := records(); n != 3 {
		t.Errorf("after Close the row has %d records, want 3", n)
	}
}

// A folder that cannot be written to can be read.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	st := reopen(t, dir, OpenClaw)
	recs := logOf("s1", "k", sessiontest.User("a"))
	must(t, st.Append(t.Context(), "s1", recs...))
	must(t, st.Close())
	must(t, os.RemoveAll(filepath.Join(dir, own)))
	d := &shut{disk: osDisk{}}
	bare, err := open(dir, Options{}, d)
	must(t, err)
	got, _ := readAll(t, bare, "s1")
	if idsOf(got) != idsOf(recs) {
		t.Errorf("records %s", idsOf(got))
	}
	if err := bare.Append(t.Context(), "s1", session.Record{Seq: 3, ID: "e2", Parent: "e1", Time: sessiontest.Start, Body: sessiontest.User("b")}); err == nil {
		t.Error("an append to a folder that cannot be written to succeeded")
	}
	must(t, bare.Close())
}

// shut is a disk that cannot be written.
type shut struct{ disk }

func (d *shut) mkdir(string) error          { return os.ErrPermission }
func (d *shut) remove(string) error         { return os.ErrPermission }
func (d *shut) rename(string, string) error { return os.ErrPermission }
func (d *shut) open(name string, flag int) (file, error) {
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0 {
		return nil, os.ErrPermission
	}
	return d.disk.open(name, flag)
}

// After a long conversation, the index agrees with the log.
func TestConversation(t *testing.T) {
	dir := t.TempDir()
	st := reopen(t, dir, OpenClaw)
	id := storetest.ConversationID(7)
	var batch []session.Record
	for r := range storetest.Conversation(7, 12_000) {
		if batch = append(batch, r); len(batch) == 400 {
			must(t, st.Append(t.Context(), id, batch...))
			batch = batch[:0]
		}
	}
	checkInfo(t, st, id)
	must(t, st.Close())
	checkInfo(t, reopen(t, dir, OpenClaw), id)
	st = reopen(t, dir, OpenClaw)
	a, err := session.Open(t.Context(), st, id)
	must(t, err)
	b, err := session.Replay(id, st.Read(t.Context(), id, 0))
	must(t, err)
	if a.KeepFrom <= 1 || len(a.Branch) == len(b.Branch) {
		t.Fatalf("the session keeps from %d, and loads %d of %d records", a.KeepFrom, len(a.Branch), len(b.Branch))
	}
	if d := sessiontest.Diff(b.Branch[len(b.Branch)-len(a.Branch):], a.Branch); d != "" {
		t.Errorf("the end of the branch differs:\n%s", d)
	}
}
