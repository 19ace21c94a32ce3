package inherit

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"goclaw/session"
	"goclaw/store/memory"
)

// makeDatabase makes a database with what sql says.
func makeDatabase(t *testing.T, path, sql string) {
	t.Helper()
	c, err := sqlite3.Open("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Exec(sql); err != nil {
		t.Fatal(err)
	}
}

// firstDesign is the schema that the design of the first GoClaw has.
const firstDesign = `
CREATE TABLE sessions (key TEXT PRIMARY KEY, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, metadata JSON);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_key TEXT NOT NULL, parent_id TEXT, type TEXT NOT NULL, timestamp INTEGER NOT NULL, data JSON NOT NULL,
	FOREIGN KEY (session_key) REFERENCES sessions(key));
CREATE INDEX idx_messages_session ON messages(session_key, timestamp);
CREATE INDEX idx_messages_parent ON messages(parent_id);
INSERT INTO sessions VALUES ('goclaw:main:main', 1769962601713, 1769962605713, '{"title":"The move"}'), ('cron:daily', 1769962601713, 1769962601713, NULL);
INSERT INTO messages VALUES
 ('1769962602000_a1b2', 'goclaw:main:main', NULL, 'message', 1769962602000, '{"role":"user","content":"when do we move?"}'),
 ('1769962603000_a1b3', 'goclaw:main:main', '1769962602000_a1b2', 'message', 1769962603000, '{"message":{"role":"assistant","content":[{"type":"text","text":"on Friday"}]}}'),
 ('1769962604000_c1a2', 'goclaw:main:main', '1769962603000_a1b3', 'checkpoint', 1769962604000, '{"summary":"They move on Friday","tokensAtCheckpoint":50000,"messageCountAtCheckpoint":2,"topics":["the move"],"openQuestions":["who drives?"],"keyDecisions":["Friday"]}'),
 ('1769962605000_a1b4', 'goclaw:main:main', '1769962604000_c1a2', 'message', 1769962605000, '{"type":"message","id":"1769962605000_a1b4","parentId":"1769962604000_c1a2","timestamp":"2026-02-01T16:16:45.000Z","message":{"role":"user","content":"thanks"}}'),
 ('x', 'goclaw:main:main', '1769962605000_a1b4', 'message', 1769962606000, 'not json');
`

// firstPublished is the schema of the program that was published, as far as it
// matters.
const firstPublished = `
CREATE TABLE sessions (key TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, model TEXT);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_key TEXT NOT NULL, parent_id TEXT, timestamp INTEGER NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL DEFAULT '',
	tool_call_id TEXT, tool_name TEXT, tool_input TEXT, tool_result TEXT, tool_is_error INTEGER DEFAULT 0);
CREATE TABLE checkpoints (id TEXT PRIMARY KEY, session_key TEXT NOT NULL, parent_id TEXT, timestamp INTEGER NOT NULL, summary TEXT NOT NULL, tokens_at_checkpoint INTEGER NOT NULL,
	message_count_at_checkpoint INTEGER NOT NULL, topics TEXT DEFAULT '[]', key_decisions TEXT DEFAULT '[]', open_questions TEXT DEFAULT '[]');
CREATE TABLE compactions (id TEXT PRIMARY KEY, session_key TEXT NOT NULL, parent_id TEXT, timestamp INTEGER NOT NULL, summary TEXT NOT NULL, first_kept_entry_id TEXT, tokens_before INTEGER NOT NULL);
INSERT INTO sessions VALUES ('primary', 'sess_1', 1769962601, 1769962605, 'm');
INSERT INTO messages VALUES
 ('m1', 'primary', NULL, 1769962601, 'user', 'what time is it?', NULL, NULL, NULL, NULL, 0),
 ('m2', 'primary', NULL, 1769962602, 'tool_use', '', 'call_1', 'clock', '{"zone":"UTC"}', NULL, 0),
 ('m3', 'primary', NULL, 1769962602, 'tool_result', '', 'call_1', NULL, NULL, 'noon', 1),
 ('m4', 'primary', NULL, 1769962603, 'assistant', 'It is noon.', NULL, NULL, NULL, NULL, 0);
INSERT INTO checkpoints VALUES ('c1', 'primary', NULL, 1769962603, 'They asked for the time', 100, 4, '["time"]', '[]', '[]');
INSERT INTO compactions VALUES ('k1', 'primary', NULL, 1769962604, 'The time was asked', 'm4', 900);
`

// TestFirstGoclaw: the databases of the first GoClaw are read in both forms,
// and stay as they are.
func TestFirstGoclaw(t *testing.T) {
	for name, test := range map[string]struct {
		sql, key, title string
		id              session.ID
		said            []string
		check           session.Checkpoint
		damaged         int
	}{
		"design": {firstDesign, "goclaw:main:main", "The move", "goclaw-7a3790d565892c8e", []string{"user: when do we move?", "assistant: on Friday", "user: thanks"},
			session.Checkpoint{Summary: "They move on Friday", Topics: []string{"the move"}, Decisions: []string{"Friday"}, Questions: []string{"who drives?"}, Covers: "1769962603000_a1b3", Tokens: 50000, Messages: 2}, 1},
		"published": {firstPublished, "primary", "", "sess_1", []string{"user: what time is it?", `call clock {"zone":"UTC"}`, "failed result of call_1: noon", "assistant: It is noon."},
			session.Checkpoint{Summary: "They asked for the time", Topics: []string{"time"}, Tokens: 100, Messages: 4}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			path := filepath.Join(t.TempDir(), "sessions.db")
			makeDatabase(t, path, test.sql)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			cat, err := Find(ctx, []string{filepath.Dir(path)}, FindOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer cat.Close()
			if len(cat.Problems) > 0 || len(cat.Transcripts) == 0 {
				t.Fatalf("%d transcripts, %v", len(cat.Transcripts), cat.Problems)
			}
			st := memory.New()
			rep, err := Import(ctx, st, cat, ImportOptions{})
			if err != nil || rep.Count(New) != len(cat.Transcripts) {
				t.Fatalf("%+v, %v", rep, err)
			}
			in, err := session.Current(ctx, st, session.Key(test.key))
			if err != nil {
				t.Fatal(err)
			}
			if in.ID != test.id || in.Title != test.title || !in.Mirror() || in.Origin.Program != FirstGoclaw || in.Created.Year() != 2026 {
				t.Errorf("%+v", in)
			}
			s, err := session.Replay(in.ID, st.Read(ctx, in.ID, 0))
			if err != nil {
				t.Fatal(err)
			}
			said, check := spoken(s)
			if diff := cmp.Diff(test.said, said); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.check, check); diff != "" {
				t.Errorf("checkpoint (-want +got):\n%s", diff)
			}
			damaged := 0
			for _, o := range rep.Outcomes {
				damaged += o.Damaged
			}
			if damaged != test.damaged {
				t.Errorf("%d damaged rows, want %d", damaged, test.damaged)
			}
			again, err := Import(ctx, st, cat, ImportOptions{})
			if err != nil || again.Records() != 0 {
				t.Errorf("again: %d records, %v", again.Records(), err)
			}
			after, err := os.ReadFile(path)
			if err != nil || string(after) != string(before) {
				t.Errorf("the source has changed: %v", err)
			}
			if names, _ := filepath.Glob(path + "*"); len(names) != 1 {
				t.Errorf("beside it: %v", names)
			}
		})
	}
}

// spoken returns what is said on the branch, and the last checkpoint.
func spoken(s *session.Session) (said []string, check session.Checkpoint) {
	for _, r := range s.Branch {
		switch b := r.Body.(type) {
		case session.Checkpoint:
			check = b
		case session.Message:
			switch {
			case len(b.Calls()) > 0:
				c := b.Calls()[0]
				said = append(said, "call "+c.Name+" "+string(c.Args))
			case len(b.Results()) > 0:
				how := "result"
				if b.Results()[0].IsError {
					how = "failed result"
				}
				said = append(said, how+" of "+b.Results()[0].CallID+": "+b.Results()[0].Text())
			default:
				said = append(said, strings.ToLower(string(b.Role))+": "+b.Text())
			}
		}
	}
	return said, check
}
