package inherit_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/inherit"
	"goclaw/session"
)

// TestArchivesOfADatabase: transcripts that a database keeps whole, as they
// are or packed, in a row or in a file beside it, larger than what is read at
// once.
func TestArchivesOfADatabase(t *testing.T) {
	state := t.TempDir()
	agent := filepath.Join(state, "agents/main/agent")
	cold := filepath.Join(state, "agents/main/sessions/cold")
	for _, d := range []string{agent, cold} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sqlite3.Open(filepath.Join(agent, "openclaw-agent.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Exec(`CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_json TEXT);
		CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT);
		CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB, PRIMARY KEY (session_id, seq));
		CREATE TABLE session_transcript_archives (session_id TEXT NOT NULL, generation TEXT NOT NULL, session_key TEXT NOT NULL, reason TEXT, encoding TEXT, archive_blob BLOB, PRIMARY KEY (session_id, generation));
		CREATE TABLE session_transcript_cold_archives (session_id TEXT PRIMARY KEY, archive_name TEXT, raw_bytes INTEGER, storage TEXT, archive_blob BLOB);
		INSERT INTO session_nodes VALUES ('agent:main:warm', 'coldrow', '{}'), ('agent:main:filed', 'coldfile', '{}'), ('agent:main:lost', 'coldlost', '{}')`); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	// Text that does not pack well, so that it is more than one piece.
	rnd := rand.New(rand.NewSource(1))
	const turns = 40
	text := func(id string) []byte {
		var b strings.Builder
		b.WriteString(header(id) + "\n")
		parent := ""
		for i := range turns {
			noise := make([]byte, 50_000)
			rnd.Read(noise)
			next := fmt.Sprint("m", i)
			b.WriteString(userLine(next, parent, fmt.Sprintf("%s %x", id, noise)) + "\n")
			parent = next
		}
		return []byte(b.String())
	}
	put := func(sql string, blob []byte) {
		s, _, err := db.Prepare(sql)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if blob != nil {
			if err := s.BindBlob(1, blob); err != nil {
				t.Fatal(err)
			}
		}
		if s.Step(); s.Err() != nil {
			t.Fatal(s.Err())
		}
	}
	put("INSERT INTO session_transcript_archives VALUES ('plain', 'g1', 'agent:main:gone', 'deleted', 'identity', $1)", text("plain"))
	put("INSERT INTO session_transcript_archives VALUES ('packed', 'g1', '', 'reset', 'zstd', $1)", z.EncodeAll(text("packed"), nil))
	put("INSERT INTO session_transcript_cold_archives VALUES ('coldrow', 'a.jsonl.zst', 1000, 'sqlite', $1)", z.EncodeAll(text("coldrow"), nil))
	put("INSERT INTO session_transcript_cold_archives VALUES ('coldfile', 'b.jsonl.zst', 1000, 'file', NULL)", nil)
	put("INSERT INTO session_transcript_cold_archives VALUES ('coldlost', 'c.jsonl.zst', 1000, 'file', NULL)", nil)
	if err := os.WriteFile(filepath.Join(cold, "b.jsonl.zst"), z.EncodeAll(text("coldfile"), nil), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before := tree(t, state)
	st := openStore(t, t.TempDir())
	rep, cat := take(t, st, nil, false, state)
	got := map[string]string{}
	for _, o := range rep.Outcomes {
		if o.Err != nil {
			got[string(o.ID)] = o.Err.Error()
			continue
		}
		in, err := session.Stat(context.Background(), st, o.Log)
		if err != nil {
			t.Fatal(err)
		}
		got[string(o.ID)] = fmt.Sprintf("%s %q, %d turns, crook %d", in.Key, o.Archive, in.Turns, in.LastBend)
	}
	want := map[string]string{
		"plain":    `agent:main:gone "deleted", 40 turns, crook 0`,
		"packed":   `agent:main:recovered:packed "reset", 40 turns, crook 0`,
		"coldrow":  `agent:main:warm "", 40 turns, crook 0`,
		"coldfile": `agent:main:filed "", 40 turns, crook 0`,
		"coldlost": filepath.Join(agent, "openclaw-agent.sqlite") + ": open " + filepath.Join(cold, "c.jsonl.zst") + ": no such file or directory",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(cat.Problems) > 0 || rep.Count(inherit.Failed) != 1 {
		t.Errorf("problems %v, %v (-want +got):\n%s", cat.Problems, states(rep), diff)
	}
	if diff := cmp.Diff(before, tree(t, state)); diff != "" {
		t.Errorf("the source has changed:\n%s", diff)
	}
}

// TestManyDamagedPlaces: all are counted, and not all are kept.
func TestManyDamagedPlaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.jsonl")
	write(t, file, header("s")+"\n"+strings.Repeat("{\n", 5000)+userLine("1", "", "behind")+"\n")
	st := openStore(t, t.TempDir())
	rep, _ := take(t, st, nil, false, file)
	if o := rep.Outcomes[0]; o.Damaged != 5000 || len(o.Damage) != 100 || o.Records != 2 {
		t.Errorf("%d damaged places, %d kept, %d records; want 5000, 100, 2", o.Damaged, len(o.Damage), o.Records)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
