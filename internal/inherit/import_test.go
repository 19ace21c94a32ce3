package inherit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/inherit"
	"goclaw/session"
	"goclaw/store/sqlite"
)

// TestMain lets a test run itself as a process that it can kill.
func TestMain(m *testing.M) {
	if dir := os.Getenv("INHERIT_CHILD"); dir != "" {
		st, err := sqlite.Open(filepath.Join(dir, "sessions.db"))
		if err != nil {
			panic(err)
		}
		memo, err := inherit.OpenMemo(filepath.Join(dir, "memo.json"))
		if err != nil {
			panic(err)
		}
		cat, err := inherit.Find(context.Background(), []string{os.Getenv("INHERIT_SOURCE")}, inherit.FindOptions{Memo: memo})
		if err != nil {
			panic(err)
		}
		fmt.Println("begin")
		if _, err := inherit.Import(context.Background(), st, cat, inherit.ImportOptions{Memo: memo}); err != nil {
			panic(err)
		}
		st.Close()
		fmt.Println(peak())
		return
	}
	os.Exit(m.Run())
}

// peak is how much memory this process has had at most, in MB, where the system
// says.
func peak() (mb int) {
	data, _ := os.ReadFile("/proc/self/status")
	if _, rest, ok := strings.Cut(string(data), "VmHWM:"); ok {
		_, _ = fmt.Sscan(rest, &mb)
	}
	return mb >> 10
}

// tree is every byte, mode and time of a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		sum := ""
		if fi.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			h := sha256.Sum256(b)
			sum = hex.EncodeToString(h[:8])
		}
		rel, _ := filepath.Rel(dir, path)
		out[rel] = fmt.Sprintf("%v %d %s", fi.Mode(), fi.ModTime().UnixNano(), sum)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dump is everything in a store, by session.
func dump(t testing.TB, st session.Store) map[session.ID][]string {
	t.Helper()
	ctx := context.Background()
	out := map[session.ID][]string{}
	for in, err := range st.List(ctx, session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		l := []string{fmt.Sprintf("%+v", in)}
		for r, err := range st.Read(ctx, in.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			l = append(l, fmt.Sprintf("%d %s", r.Seq, r.Raw))
		}
		out[in.ID] = l
	}
	return out
}

func memo(t testing.TB, dir string) *inherit.Memo {
	t.Helper()
	m, err := inherit.OpenMemo(filepath.Join(dir, "memo.json"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func states(rep inherit.Report) map[inherit.State]int {
	out := map[inherit.State]int{}
	for _, o := range rep.Outcomes {
		out[o.State]++
	}
	return out
}

func TestSourceIsUntouched(t *testing.T) {
	dir := unpacked(t)
	if err := os.Chmod(filepath.Join(dir, "openclaw-2026.9.6", "openclaw-agent.sqlite"), 0o400); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	st := openStore(t, t.TempDir())
	rep, _ := take(t, st, nil, false, dir)
	if rep.Count(inherit.Failed) > 0 || rep.Records() < 1000 {
		t.Errorf("%v, %d records", states(rep), rep.Records())
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("the source has changed (-before +after):\n%s", diff)
	}
}

func TestAgainTakesOnlyWhatIsNew(t *testing.T) {
	dir, home := filepath.Join(unpacked(t), "openclaw-2026.2.1"), t.TempDir()
	st := openStore(t, home)
	m := memo(t, home)
	take(t, st, m, false, dir)
	first := dump(t, st)
	for _, m := range []*inherit.Memo{m, memo(t, home), inherit.NewMemo("")} {
		rep, _ := take(t, st, m, false, dir)
		if got := states(rep); got[inherit.New]+got[inherit.Grown]+got[inherit.Rewritten]+got[inherit.Failed] > 0 || rep.Records() != 0 {
			t.Errorf("again: %v, %d records", got, rep.Records())
		}
	}
	if diff := cmp.Diff(first, dump(t, st)); diff != "" {
		t.Errorf("taking again has changed the store:\n%s", diff)
	}
	file := filepath.Join(dir, "dot-openclaw/agents/main/sessions/8121e07b-dbb8-40ef-ad65-d8a8d5db63a5.jsonl")
	last := lastID(t, st, "8121e07b-dbb8-40ef-ad65-d8a8d5db63a5")
	appendTo(t, file, userLine("new1", last, "a new question"))
	rep, _ := take(t, st, memo(t, home), false, dir)
	if got := states(rep); got[inherit.Grown] != 1 || rep.Records() != 1 {
		t.Errorf("after one line: %v, %d records", got, rep.Records())
	}
	appendTo(t, file, userLine("new2", "new1", "and another"))
	rep, _ = take(t, st, nil, false, dir)
	if got := states(rep); got[inherit.Grown] != 1 || rep.Records() != 1 {
		t.Errorf("after one more line, nothing remembered: %v, %d records", got, rep.Records())
	}
}

func lastID(t *testing.T, st session.Store, id session.ID) string {
	t.Helper()
	in, err := session.Stat(context.Background(), st, id)
	if err != nil {
		t.Fatal(err)
	}
	return in.Leaf
}

func appendTo(t *testing.T, path, line string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func header(id string) string {
	return fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-11-15T00:00:00.000Z","cwd":"/home/me/work"}`, id)
}

func userLine(id, parent, text string) string {
	p := "null"
	if parent != "" {
		p = fmt.Sprintf("%q", parent)
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":%q,"timestamp":1794700801000}}`, id, p, text)
}

// TestKilledInTheMiddle: whenever a taking is killed, the next one ends with
// the store that an undisturbed one makes.
func TestKilledInTheMiddle(t *testing.T) {
	src := t.TempDir()
	for i := range 20 {
		var b strings.Builder
		b.WriteString(header(fmt.Sprintf("s%02d", i)) + "\n")
		parent := ""
		for k := range 1200 {
			id := fmt.Sprintf("r%d", k)
			b.WriteString(userLine(id, parent, strings.Repeat("word ", 100)) + "\n")
			parent = id
		}
		if err := os.WriteFile(filepath.Join(src, fmt.Sprintf("s%02d.jsonl", i)), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, src)
	whole := openStore(t, t.TempDir())
	take(t, whole, nil, false, src)
	want := dump(t, whole)
	killed := 0
	// More often where a busy machine lets each of them finish before it is killed.
	for i := 0; i < 3 || killed == 0 && i < 30; i++ {
		after := []time.Duration{20, 100, 200}[i%3]
		home := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "INHERIT_CHILD="+home, "INHERIT_SOURCE="+src)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			killed++
		}
		if diff := cmp.Diff(before, tree(t, src)); diff != "" {
			t.Errorf("killed after %d ms, the source has changed:\n%s", after, diff)
		}
		st := openStore(t, home)
		rep, _ := take(t, st, memo(t, home), false, src)
		t.Logf("killed after %d ms: then %v", after, states(rep))
		if diff := cmp.Diff(want, dump(t, st)); diff != "" {
			t.Errorf("killed after %d ms, the store differs:\n%.2000s", after, diff)
		}
	}
	if killed == 0 {
		t.Error("no process was killed in the middle")
	}
}

// TestRewritten: the program has changed the past of a file.
func TestRewritten(t *testing.T) {
	a := []string{header("s"), userLine("1", "", "one"), userLine("2", "1", "two"), userLine("3", "2", "three")}
	tests := map[string]struct {
		lines []string
		want  []string
		logs  int
	}{
		"cut":                            {a[:3], []string{"one", "two"}, 1},
		"another end":                    {append(a[:2:2], userLine("4", "1", "four")), []string{"one", "four"}, 1},
		"migrated, new ids":              {[]string{a[0], userLine("x1", "", "one"), userLine("x2", "x1", "two"), userLine("x3", "x2", "three"), userLine("x4", "x3", "four")}, []string{"one", "two", "three", "four"}, 1},
		"edited in place":                {[]string{a[0], userLine("1", "", "ONE"), a[2], a[3]}, []string{"ONE", "two", "three"}, 2},
		"a row without an id":            {append(a[:3:3], `{"type":"some_future_row","payload":"KEEPME"}`, `{"type":"some_future_row","payload":"KEEPME"}`, userLine("4", "2", "four")), []string{"one", "two", "four"}, 1},
		"a row edited beside the branch": {append(a[:3:3], userLine("3", "2", "THREE"), userLine("4", "2", "four")), []string{"one", "two", "four"}, 2},
		"its header gone":                {[]string{a[2], a[3]}, []string{"two", "three"}, 2},
	}
	for name, test := range tests {
		for _, remember := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%v", name, remember), func(t *testing.T) {
				src, home := t.TempDir(), t.TempDir()
				file := filepath.Join(src, "s.jsonl")
				write := func(lines []string) {
					if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				st := openStore(t, home)
				m := inherit.NewMemo("")
				write(a)
				take(t, st, m, false, src)
				if !remember {
					m = inherit.NewMemo("")
				}
				time.Sleep(2 * time.Millisecond)
				write(test.lines)
				rep, _ := take(t, st, m, false, src)
				if rep.Count(inherit.Rewritten) != 1 {
					t.Errorf("states %v, want one rewritten", states(rep))
				}
				check := func() {
					t.Helper()
					in, err := session.Current(context.Background(), st, rep.Outcomes[0].Key)
					if err != nil {
						t.Fatal(err)
					}
					s, err := session.Open(context.Background(), st, in.ID)
					if err != nil {
						t.Fatal(err)
					}
					var got []string
					for _, r := range s.Branch {
						if m, ok := r.Body.(session.Message); ok {
							got = append(got, m.Text())
						}
					}
					if diff := cmp.Diff(test.want, got); diff != "" {
						t.Errorf("the branch (-want +got):\n%s", diff)
					}
					if n := len(dump(t, st)); n != test.logs {
						t.Errorf("%d logs, want %d", n, test.logs)
					}
				}
				kept := func() {
					t.Helper()
					in, err := session.Current(context.Background(), st, rep.Outcomes[0].Key)
					if err != nil {
						t.Fatal(err)
					}
					have := map[string]int{}
					for _, l := range sourceLines(t, st, in.ID) {
						have[l]++
					}
					for _, l := range test.lines {
						if have[l]--; have[l] < 0 && l != a[0] {
							t.Errorf("a line is not kept: %s", l)
						}
					}
				}
				check()
				kept()
				appendTo(t, file, "")
				for range 2 {
					rep2, _ := take(t, st, m, false, src)
					if rep2.Records() != 0 {
						t.Errorf("again: %v, %d records", states(rep2), rep2.Records())
					}
				}
				check()
				m = inherit.NewMemo("")
				if rep2, _ := take(t, st, m, false, src); rep2.Records() != 0 || rep2.Count(inherit.Unchanged) != 1 {
					t.Errorf("again, nothing remembered: %v, %d records", states(rep2), rep2.Records())
				}
				kept()
			})
		}
	}
}

// TestHostile: each bad file has a line of its own, and everything else is
// taken. What may not be read is tried by another user: see cmd/goclaw.
func TestHostile(t *testing.T) {
	src := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("good.jsonl", header("good")+"\n"+userLine("1", "", "hi")+"\n")
	put("long.jsonl", header("long")+"\n"+userLine("1", "", strings.Repeat("x", 10<<20))+"\n"+userLine("2", "1", "behind")+"\n")
	put("longer.jsonl", header("longer")+"\n"+userLine("1", "", strings.Repeat("x", 33<<20))+"\n"+userLine("2", "", "behind")+"\n")
	put("blank.jsonl", strings.Repeat("\n", 1_000_000)+header("blank")+"\n"+userLine("1", "", "hi")+"\n")
	put("cycle.jsonl", header("cycle")+"\n"+userLine("1", "2", "a")+"\n"+userLine("2", "1", "b")+"\n"+userLine("3", "3", "c")+"\n")
	put("binary.jsonl", "\x00\x01\x02\xff\xfe\n\x80\n")
	put("nulid.jsonl", header("nulid")+"\n"+strings.Replace(userLine("1", "", "hi"), `"id":"1"`, `"id":"a\u0000b"`, 1)+"\n")
	put("index-only.sqlite", "SQLite format 3\x00 and then nothing of the kind")
	put("empty.sqlite", "")
	put("sessions.json.tmp", "{")
	for link, to := range map[string]string{"loop": ".", "self.jsonl": "self.jsonl", "gone.jsonl": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(src, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := mkfifo(filepath.Join(src, "fifo.jsonl")); err != nil {
		t.Fatal(err)
	}
	want := []string{"fifo.jsonl: a FIFO, not a file", "self.jsonl: broken symbolic link", "gone.jsonl: broken symbolic link", "index-only.sqlite: ", "binary.jsonl: not a known kind of transcript: binary data"}
	st := openStore(t, t.TempDir())
	rep, cat := take(t, st, nil, false, src)
	var said []string
	for _, p := range cat.Problems {
		said = append(said, p.String())
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(said, "\n"), w) {
			t.Errorf("nothing says %q: %q", w, said)
		}
	}
	if len(said) != len(want) || cat.Unread() != len(want) {
		t.Errorf("%d of %d unread, want a line for each of %q: %q", cat.Unread(), len(said), want, said)
	}
	got := map[session.ID]string{}
	for _, o := range rep.Outcomes {
		in, err := session.Stat(context.Background(), st, o.Log)
		if err != nil {
			t.Errorf("%s: %v", o.Path, err)
			continue
		}
		got[o.Log] = fmt.Sprintf("%s, %d records, %d turns, %d damaged", o.State, in.Records, in.Turns, len(o.Damage))
	}
	if diff := cmp.Diff(map[session.ID]string{
		"good":   "new, 2 records, 1 turns, 0 damaged",
		"long":   "new, 3 records, 2 turns, 0 damaged",
		"longer": "new, 2 records, 1 turns, 1 damaged",
		"blank":  "new, 2 records, 1 turns, 0 damaged",
		"cycle":  "new, 4 records, 3 turns, 0 damaged",
		"nulid":  "new, 1 records, 0 turns, 1 damaged",
	}, got); diff != "" {
		t.Errorf("what was taken (-want +got):\n%s", diff)
	}
}

// TestLiveDatabase takes from a database that its owner is writing to, its
// write-ahead log full: everything that was committed before is there, the
// owner is never held up, and nothing appears beside the database.
func TestLiveDatabase(t *testing.T) {
	src := t.TempDir()
	path := filepath.Join(src, "openclaw-agent.sqlite")
	owner, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if err := owner.Exec(`PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 0;
		CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_json TEXT);
		CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT);
		CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER, event_zstd BLOB, PRIMARY KEY (session_id, seq));
		INSERT INTO session_nodes VALUES ('agent:main:main', 's', '{}'); INSERT INTO session_windows VALUES ('s', 'agent:main:main')`); err != nil {
		t.Fatal(err)
	}
	insert := func(seq int, line string) error {
		return owner.Exec(fmt.Sprintf("INSERT INTO transcript_events VALUES ('s', %d, '%s', 0, NULL)", seq, line))
	}
	if err := insert(0, header("s")); err != nil {
		t.Fatal(err)
	}
	var written atomic.Int64
	// What the owner has left behind, which nobody else may change.
	var mu sync.Mutex
	left := func() (out []string) {
		for _, p := range []string{path, path + "-wal"} {
			fi, err := os.Stat(p)
			if err != nil {
				t.Error(err)
				return nil
			}
			out = append(out, fmt.Sprintln(fi.Name(), fi.Size(), fi.Mode(), fi.ModTime().UnixNano()))
		}
		return out
	}
	noted := left()
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		parent := ""
		for i := 1; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			id := fmt.Sprint("r", i)
			mu.Lock()
			err := insert(i, userLine(id, parent, strings.Repeat("word ", 50)))
			parent = id
			written.Store(int64(i))
			if i%200 == 0 && err == nil {
				err = owner.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
			}
			noted = left()
			mu.Unlock()
			if err != nil {
				done <- err
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	st := openStore(t, t.TempDir())
	for i := range 20 {
		time.Sleep(20 * time.Millisecond)
		before := written.Load()
		var whole map[string]string
		if i%5 == 0 { // the owner pauses, so that every byte can be compared
			mu.Lock()
			whole = tree(t, src)
		}
		rep, _ := take(t, st, nil, false, src)
		if i%5 == 0 {
			if diff := cmp.Diff(whole, tree(t, src)); diff != "" {
				t.Errorf("the source has changed:\n%s", diff)
			}
			mu.Unlock()
		}
		mu.Lock()
		if diff := cmp.Diff(noted, left()); diff != "" {
			t.Errorf("another than the owner has changed its files:\n%s", diff)
		}
		mu.Unlock()
		if rep.Count(inherit.Failed) > 0 {
			t.Fatalf("failed: %v", rep.Outcomes[0].Err)
		}
		in, err := session.Stat(context.Background(), st, "s")
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(in.Records - 1); got < before || got > written.Load()+1 || in.Key != "agent:main:main" || int64(in.Turns) != got {
			t.Errorf("%d records and %d turns of %s, %d were written before", got, in.Turns, in.Key, before)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Errorf("the owner was held up: %v", err)
	}
	names := []string{}
	list, _ := os.ReadDir(src)
	for _, e := range list {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"openclaw-agent.sqlite", "openclaw-agent.sqlite-shm", "openclaw-agent.sqlite-wal"}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestLeftoverLog: a database whose owner was killed has a write-ahead log and
// nobody to copy it. It is read, and stays.
func TestLeftoverLog(t *testing.T) {
	live := t.TempDir()
	path := filepath.Join(live, "openclaw-agent.sqlite")
	owner, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if err := owner.Exec(`PRAGMA journal_mode = WAL; CREATE TABLE session_entries (session_key TEXT, session_id TEXT, entry_json TEXT);
		CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT);
		INSERT INTO session_entries VALUES ('agent:main:dm:1', 's', '{"label":"One"}')`); err != nil {
		t.Fatal(err)
	}
	for i, l := range []string{header("s"), userLine("1", "", "one"), userLine("2", "1", "two")} {
		if err := owner.Exec(fmt.Sprintf("INSERT INTO transcript_events VALUES ('s', %d, '%s')", i, l)); err != nil {
			t.Fatal(err)
		}
	}
	src := t.TempDir()
	for _, name := range []string{"openclaw-agent.sqlite", "openclaw-agent.sqlite-wal"} {
		b, err := os.ReadFile(filepath.Join(live, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "-wal") {
			b = append(b, bytes.Repeat([]byte("torn"), 700)...)
		}
		if err := os.WriteFile(filepath.Join(src, name), b, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, src)
	st := openStore(t, t.TempDir())
	take(t, st, nil, false, src)
	in, err := session.Stat(context.Background(), st, "s")
	if err != nil {
		t.Fatal(err)
	}
	if in.Key != "agent:main:dm:1" || in.Title != "One" || in.Turns != 2 {
		t.Errorf("key %q, title %q, %d turns", in.Key, in.Title, in.Turns)
	}
	if diff := cmp.Diff(before, tree(t, src)); diff != "" {
		t.Errorf("the source has changed:\n%s", diff)
	}
}

// TestWriterAppends takes from a file that its program is writing, a line in
// several pieces: what was whole is there, what was torn comes later, and
// nothing comes twice.
func TestWriterAppends(t *testing.T) {
	src, home := t.TempDir(), t.TempDir()
	file := filepath.Join(src, "s.jsonl")
	st := openStore(t, home)
	m := memo(t, home)
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const n = 300
	done := make(chan error, 1)
	// All that the writer has written, and when it did so last.
	var mu sync.Mutex
	var wrote bytes.Buffer
	var at time.Time
	put := func(s string) error {
		mu.Lock()
		defer mu.Unlock()
		wrote.WriteString(s)
		_, err := f.WriteString(s)
		if fi, e := f.Stat(); err == nil {
			if err = e; e == nil {
				at = fi.ModTime()
			}
		}
		return err
	}
	untouched := func() {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		data, err := os.ReadFile(file)
		fi, e := os.Stat(file)
		if err != nil || e != nil {
			t.Fatal(err, e)
		}
		if !bytes.Equal(data, wrote.Bytes()) || !at.IsZero() && !fi.ModTime().Equal(at) || fi.Mode() != 0o600 {
			t.Fatalf("the file has %d bytes, mode %v and time %v; its writer wrote %d, last at %v", len(data), fi.Mode(), fi.ModTime(), wrote.Len(), at)
		}
	}
	go func() {
		err := put(header("s") + "\n")
		parent := ""
		for i := 0; i < n && err == nil; i++ {
			id := fmt.Sprint("r", i)
			line := userLine(id, parent, "text") + "\n"
			half := len(line) * (i % 10) / 10
			if err = put(line[:half]); err == nil {
				time.Sleep(time.Duration(i%5) * 300 * time.Microsecond)
				err = put(line[half:])
			}
			parent = id
		}
		done <- err
	}()
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
		}
		take(t, st, m, false, src)
		untouched()
	}
	take(t, st, m, false, src)
	untouched()
	in, err := session.Stat(context.Background(), st, "s")
	if err != nil || in.Records != n+1 || in.Turns != n || in.LastBend != 0 {
		t.Errorf("%d records, %d turns, crook %d, %v; want %d turns in a straight line", in.Records, in.Turns, in.LastBend, err, n)
	}
	if got := len(dump(t, st)); got != 1 {
		t.Errorf("%d logs, want 1", got)
	}
}

// TestKeysAndOrigins: what each program calls a session is kept.
func TestKeysAndOrigins(t *testing.T) {
	dir := unpacked(t)
	want := map[string]string{ // by id: key, program, title, model
		"d0d7f0bc-5c9c-4418-b017-52a9bc82e88f": "agent:main:main|openclaw||fakeant/fake-claude",
		"cb790e13-069f-40e9-aa30-c07ef85d32ef": "agent:main:whatsapp:work:dm:+15551230000|openclaw||fakeant/fake-claude",
		"7deb7dc9-67b2-4877-b32f-9a11ea5e468c": "agent:main:telegram:group:-1001234567:topic:42|openclaw||fakeant/fake-claude",
		"8b911d7f-7678-4205-9b97-08ffe13e952b": "agent:main:slack:channel:c0123|openclaw|slack ch|fakeai/fake-1",
		"a357e3ec-6e8a-4bf8-8db9-960f33721d79": "agent:main:recovered:a357e3ec-6e8a-4bf8-8db9-960f33721d79|openclaw||fakeant/fake-claude",
		"e24410db-11bf-4cde-87c0-4ba8438743b9": "agent:ops:main|openclaw||fakeant/fake-claude",
		"27769641-bff2-4b85-831b-d66d3e7d79da": "agent:main:webchat:direct:rewind|openclaw||fakeant/fake-claude",
		"0141a325-689f-4c38-bd65-6e61e0210102": "agent:main:recovered:0141a325-689f-4c38-bd65-6e61e0210102|openclaw||fakeant/fake-claude",
		"a8342d60-c3a1-4989-98e5-c50405ba184c": "agent:main:cron:2ba54312-dfb0-4177-9a05-94fba036ba66|openclaw|Automation: nightly|fakeant/fake-claude",
		"98e0c71c-12da-43d6-a57d-96c3b2bbbd58": "agent:main:telegram:direct:12345|openclaw||fakeant/fake-claude",
		"ab3aae252395":                         "main:cli:user|claw0||",
		"bc17fa9d53c2":                         "claw0:cli:bc17fa9d53c2|claw0|my-project|",
	}
	st := openStore(t, t.TempDir())
	for _, sub := range []string{"openclaw-2026.2.1/dot-openclaw", "openclaw-2026.9.6/openclaw-agent.sqlite", "claw0"} {
		take(t, st, nil, false, filepath.Join(dir, sub))
	}
	got := map[string]string{}
	for in, err := range st.List(context.Background(), session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := want[string(in.ID)]; ok {
			got[string(in.ID)] = fmt.Sprintf("%s|%s|%s|%s", in.Key, in.Origin.Program, in.Title, in.ModelName())
		}
		if in.Origin.Path == "" || in.Created.IsZero() || in.Updated.IsZero() || !in.Mirror() {
			t.Errorf("%s: origin %+v, from %v to %v", in.ID, in.Origin, in.Created, in.Updated)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestVersionsOfPi: a version that is not known yet does not make a file
// OpenClaw's, which writes 4 where it writes files at all.
func TestVersionsOfPi(t *testing.T) {
	dir := t.TempDir()
	want := map[string]string{}
	for name, c := range map[string]struct{ version, program string }{
		"pi/base.jsonl":                             {"3", inherit.Pi},
		"pi/future-version.jsonl":                   {"99", inherit.Pi},
		"pi/2026-11-15T00-00-00-000Z_next.jsonl":    {"4", inherit.Pi},
		"pi/native.jsonl":                           {"4", inherit.OpenClaw},
		"pi/old.jsonl.deleted.2026-11-15T00-15-28Z": {"3", inherit.OpenClaw},
		"state/agents/main/sessions/future.jsonl":   {"99", inherit.OpenClaw},
	} {
		write(t, filepath.Join(dir, name), strings.Replace(header("s"), `"version":3`, `"version":`+c.version, 1)+"\n")
		want[name] = c.program
	}
	cat, err := inherit.Find(context.Background(), []string{dir}, inherit.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cat.Close()
	got := map[string]string{}
	for _, tr := range cat.Transcripts {
		rel, _ := filepath.Rel(dir, tr.Path)
		got[rel] = tr.Program
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("whose each file is (-want +got):\n%s", diff)
	}
}

// TestTitlesAndTrash: a title that the index changes is taken, and does not
// move the branch; a log in the trash stays there.
func TestTitlesAndTrash(t *testing.T) {
	ctx := context.Background()
	src, home := t.TempDir(), t.TempDir()
	index := func(label string) {
		text := fmt.Sprintf(`{"agent:main:main": {"sessionId": "s", "label": %q}}`, label)
		if err := os.WriteFile(filepath.Join(src, "sessions.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	appendTo(t, filepath.Join(src, "s.jsonl"), header("s"))
	appendTo(t, filepath.Join(src, "s.jsonl"), userLine("1", "", "one"))
	st := openStore(t, home)
	for _, label := range []string{"First", "Second, and longer"} {
		index(label)
		take(t, st, memo(t, home), false, src)
		in, err := session.Stat(ctx, st, "s")
		if err != nil || in.Title != label || in.Leaf != "1" || in.Key != "agent:main:main" {
			t.Errorf("title %q, leaf %q, key %q, %v", in.Title, in.Leaf, in.Key, err)
		}
	}
	appendTo(t, filepath.Join(src, "s.jsonl"), userLine("2", "1", "two"))
	for _, m := range []*inherit.Memo{nil, memo(t, home)} {
		take(t, st, m, false, src)
		s, err := session.Open(ctx, st, "s")
		if err != nil || s.Turns != 2 || s.Leaf != "2" || s.Title != "Second, and longer" {
			t.Errorf("%d turns, leaf %q, title %q, %v", s.Turns, s.Leaf, s.Title, err)
		}
	}
	if err := st.Delete(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	appendTo(t, filepath.Join(src, "s.jsonl"), userLine("3", "2", "three"))
	rep, _ := take(t, st, memo(t, home), false, src)
	if rep.Count(inherit.Trashed) != 1 || len(dump(t, st)) != 0 {
		t.Errorf("%v, %d logs outside of the trash", states(rep), len(dump(t, st)))
	}
}
