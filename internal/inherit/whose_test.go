package inherit_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/inherit"
	"goclaw/internal/inherit/doctor"
	"goclaw/internal/inherit/source"
	"goclaw/session"
)

// TestWhose: every file of every program is offered to every source alone. Only
// the program's own takes it, and those that share its format.
func TestWhose(t *testing.T) {
	real, made := realPrograms(t), unpacked(t)
	rows := newRows(t, "crush.db", crushSchema)
	rows.do("INSERT INTO sessions (id, title, updated_at, created_at) VALUES ('ses_1', 'A title', 1, 1)")
	old := filepath.Join(t.TempDir(), "session-2025-10-01T00-00-25307b51.json")
	write(t, old, oldGemini)
	for _, c := range []struct {
		dir, program string
		native       bool // pi's lines are OpenClaw's as well: alone, pi takes them
	}{
		{filepath.Join(real, "claude-code"), inherit.ClaudeCode, false},
		{filepath.Join(real, "codex"), inherit.Codex, false},
		{filepath.Join(real, "opencode"), inherit.OpenCode, false},
		{filepath.Join(real, "gemini-cli"), inherit.GeminiCLI, false},
		{old, inherit.GeminiCLI, false},
		{rows.path, inherit.Crush, false},
		{filepath.Join(made, "claw0"), inherit.Claw0, false},
		{filepath.Join(made, "pi-0.73.1"), inherit.Pi, true},
		{filepath.Join(made, "pi-v1"), inherit.Pi, true},
		{filepath.Join(made, "openclaw-2026.2.1"), inherit.OpenClaw, true},
		{filepath.Join(made, "openclaw-2026.9.6/openclaw-agent.sqlite"), inherit.OpenClaw, false},
	} {
		taken := map[string]bool{}
		files := 0
		err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
			name := filepath.Base(path)
			if err != nil || d.IsDir() || name == "wire.jsonl" || strings.HasPrefix(name, "sessions.json") || name == "session_index.jsonl" {
				return err
			}
			files++
			for _, newSource := range inherit.Sources {
				cat, err := inherit.Find(t.Context(), []string{path}, inherit.FindOptions{Sources: []func() source.Source{newSource}})
				if err != nil {
					return err
				}
				by := newSource().Program()
				for _, tr := range cat.Transcripts {
					taken[by] = true
					if by != c.program && !(c.native && by == inherit.Pi) {
						t.Errorf("%s takes %s for its own (%s)", by, path, tr.ID)
					}
				}
				cat.Close()
			}
			cat, err := inherit.Find(t.Context(), []string{path}, inherit.FindOptions{})
			if err != nil {
				return err
			}
			defer cat.Close()
			for _, tr := range cat.Transcripts {
				if tr.Program != c.program {
					t.Errorf("%s is taken for %s's", path, tr.Program)
				}
			}
			return nil
		})
		if err != nil || files == 0 || !taken[c.program] && !c.native {
			t.Errorf("%s: %d files, taken by %v, %v", c.dir, files, taken, err)
		}
	}
}

// TestRefusedByName: what no program writes, or one that goclaw does not read, is
// refused, and the line says what it looks like.
func TestRefusedByName(t *testing.T) {
	dir := t.TempDir()
	db := func(name, schema string) string { return newRows(t, name, schema).path }
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, text)
		return path
	}
	home := t.TempDir()
	write(t, filepath.Join(home, "opencode/storage/session/global/ses_1.json"), "{}")
	for _, c := range []struct{ path, want string }{
		{file("qwen.jsonl", `{"uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","type":"user","cwd":"/p","version":"0.5","message":{"role":"user","parts":[{"text":"hi"}]}}`+"\n"),
			"not a known kind of transcript: it looks like Qwen Code's, which goclaw does not read"},
		{file("droid.jsonl", `{"type":"session_start","id":"s","title":"t","owner":"o","version":2,"cwd":"/p"}`+"\n"+`{"type":"message","id":"m1","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}`+"\n"),
			"not a known kind of transcript: JSON lines with the fields type, id, title, owner, version"},
		{file("logins.jsonl", `{"type":"session","user":"bob"}`+"\n"), "not a known kind of transcript: JSON lines with the fields type, user"},
		{file("events.jsonl", `{"timestamp":"2026","type":"response_item","payload":"x"}`+"\n"), "not a known kind of transcript: JSON lines with the fields timestamp, type, payload"},
		{file("pretty.json", "{\n  \"a\": 1\n}\n"), "not a known kind of transcript: JSON, but not an object on each line"},
		{file("begun.jsonl", `{"type":"session","version":3,"id":"s`), "its first line is not complete: it is being written, or was cut off"},
		{file("chat.jsonl", `{"type":"user","content":"hi","when":1}`+"\n"), "not a known kind of transcript: JSON lines with the fields type, content, when"},
		{file("list.jsonl", "[1,2]\n"), "not a known kind of transcript: JSON, but not an object on each line"},
		{file("notes.jsonl", "dear diary\n"), "not a known kind of transcript: text"},
		{file("session-1.json", `{"sessionId":"s","other":1}`), "not a known kind of transcript: JSON lines with the fields sessionId, other"},
		{file("session-2.json", `{"sessionId":"s",`), "a session of Gemini CLI that is not JSON: it is being written, or was cut off"},
		{db("some.db", "CREATE TABLE a (b); CREATE TABLE c (d)"), "not a known kind of session database: it has the tables a, c"},
		{db("openclaw-agent.sqlite", "CREATE TABLE transcript_events (session_id, event)"), "it looks like a database of OpenClaw, but its tables are not those of any version that goclaw knows"},
		{db("opencode.db", "CREATE TABLE session (id); CREATE TABLE message (id); CREATE TABLE part (id)"), "it looks like a database of opencode, but its tables are not those of any version that goclaw knows (1.2 to 1.18)"},
		{db("opencode-dev.db", strings.ReplaceAll(crushSchema, "provider TEXT, ", "")), "the database of the first program named opencode, which became crush: goclaw does not read it"},
		{db("crush.db", strings.ReplaceAll(crushSchema, "provider TEXT, ", "")), "it looks like a database of crush, but its tables are not those of any version that goclaw knows"},
		{filepath.Join(home, "opencode"), "the files of an older opencode, which goclaw does not read: a newer opencode moves them into its database when it starts"},
	} {
		cat, err := inherit.Find(t.Context(), []string{c.path}, inherit.FindOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range cat.Problems {
			got = append(got, p.What)
		}
		if diff := cmp.Diff([]string{c.want}, got); diff != "" || len(cat.Transcripts) > 0 || cat.Unread() != 1 {
			t.Errorf("%s: %d sessions, %s", c.path, len(cat.Transcripts), diff)
		}
		cat.Close()
	}
}

// TestBegun: a file whose first line is still being written is none of the
// problems of the folder that it is in.
func TestBegun(t *testing.T) {
	home := t.TempDir()
	for name, line := range map[string]string{
		".pi/agent/sessions/--p--/2026-11-15T00-57-27-101Z_s.jsonl":                                         `{"type":"session","version":3,"id":"s","timestamp":"2026-11-15T00:57:27.101Z","cwd":"/p"}`,
		".codex/sessions/2026/11/15/rollout-2026-11-15T12-50-36-01a1df42-736a-7ca2-906d-2fb785904f79.jsonl": `{"timestamp":"2026-11-15T12:50:36.000Z","type":"session_meta","payload":{"id":"01a1df42-736a-7ca2-906d-2fb785904f79","cwd":"/p"}}`,
		".claude/projects/-p/24a981e4-d956-4153-9874-da243d633af1.jsonl":                                    `{"parentUuid":null,"sessionId":"24a981e4-d956-4153-9874-da243d633af1","type":"user","uuid":"u1","message":{"role":"user","content":"hi"}}`,
		".openclaw/agents/main/sessions/1de9ce9c-e3ee-43bc-b16e-78f3d1d0fe49.jsonl":                         `{"type":"session","version":3,"id":"1de9ce9c-e3ee-43bc-b16e-78f3d1d0fe49"}`,
		".gemini/tmp/p/chats/session-2026-11-15T13-36-25307b51.jsonl":                                       `{"sessionId":"25307b51-c6f1-42c2-a35d-b8140f2f6b5d","projectHash":"h","startTime":"2026-11-15T13:36:00.000Z","lastUpdated":"2026-11-15T13:36:00.000Z","kind":"main"}`,
	} {
		for cut := 1; cut < len(line)-1; cut++ {
			write(t, filepath.Join(home, name), line[:cut])
			cat, err := inherit.Find(t.Context(), []string{home}, inherit.FindOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(cat.Transcripts) > 0 || len(cat.Problems) > 0 {
				t.Fatalf("%s: %d sessions, %v", line[:cut], len(cat.Transcripts), cat.Problems)
			}
			cat.Close()
		}
		if err := os.Remove(filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
}

const oldGemini = `{
  "sessionId": "25307b51-c6f1-42c2-a35d-b8140f2f6b5d",
  "projectHash": "c731c44f1786d7435f600ce1991bf5d5163016b3ad39f65a1b1b5c2cf963afc4",
  "startTime": "2025-10-01T00:00:00.000Z",
  "lastUpdated": "2025-10-01T00:00:05.000Z",
  "summary": "List the files",
  "messages": [
    {"id": "m1", "timestamp": "2025-10-01T00:00:01.000Z", "type": "user", "content": "list them"},
    {"id": "m2", "timestamp": "2025-10-01T00:00:02.000Z", "type": "gemini", "content": "I look.", "model": "gemini-2.5-pro",
     "toolCalls": [{"id": "ls-1", "name": "ls", "args": {"path": "."}, "status": "success", "timestamp": "2025-10-01T00:00:03.000Z",
       "result": [{"functionResponse": {"id": "ls-1", "name": "ls", "response": {"output": "a.txt"}}}]}]},
    {"id": "m3", "timestamp": "2025-10-01T00:00:04.000Z", "type": "info", "content": "Update available"},
    {"id": "m4", "timestamp": "2025-10-01T00:00:05.000Z", "type": "gemini", "content": "One file.", "model": "gemini-2.5-pro"}
  ]
}`

// TestOldGemini: a session that an older Gemini CLI keeps in one object, until it
// is continued as a file of lines.
func TestOldGemini(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tmp/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/chats/session-2025-10-01T00-00-25307b51.json")
	write(t, path, oldGemini)
	write(t, filepath.Join(dir, "tmp/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/logs.json"), "[]")
	st := openStore(t, t.TempDir())
	for _, n := range []int{1, 0} {
		rep, cat := take(t, st, nil, false, dir)
		if rep.Count(inherit.New) != n || len(cat.Problems) > 0 || len(rep.Outcomes) != 1 {
			t.Errorf("%v %v", states(rep), cat.Problems)
		}
	}
	const id = "25307b51-c6f1-42c2-a35d-b8140f2f6b5d"
	s, err := session.Open(t.Context(), st, id)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"user list them", "assistant I look.", `call ls-1 ls {"path":"."}`, "result ls-1 false a.txt", "assistant One file."}
	if diff := cmp.Diff(want, lines(s, "google/gemini-2.5-pro")); diff != "" || s.Title != "List the files" || s.Key != "gemini:project-01234567:"+id {
		t.Errorf("%s, title %q, key %s", diff, s.Title, s.Key)
	}
	longer := strings.TrimSuffix(oldGemini, "\n  ]\n}") + `,
    {"id": "m5", "timestamp": "2025-10-01T00:00:06.000Z", "type": "user", "content": "thanks"}]}`
	if err := os.WriteFile(path, []byte(longer), 0o600); err != nil {
		t.Fatal(err)
	}
	if rep, _ := take(t, st, nil, false, dir); rep.Count(inherit.Grown) != 1 || rep.Records() != 1 {
		t.Errorf("%v, %d records", states(rep), rep.Records())
	}
}

// TestCrush: a session of crush is sent as crush sends it.
func TestCrush(t *testing.T) {
	r := newRows(t, "crush.db", crushSchema)
	r.do("INSERT INTO sessions (id, title, updated_at, created_at, summary_message_id) VALUES ('ses_1', 'Look around', 1, 1, 's1')")
	r.do("INSERT INTO sessions (id, parent_session_id, title, updated_at, created_at) VALUES ('a1$$c1', 'ses_1', 'New Session', 1, 1)")
	r.crushMessage("u0", "user", `[{"type":"text","data":{"text":"before"}}]`, 0)
	r.crushMessage("s1", "assistant", `[{"type":"text","data":{"text":"a summary"}},{"type":"finish","data":{"reason":"end_turn","time":1}}]`, 1)
	r.crushMessage("u1", "user", `[{"type":"text","data":{"text":" look "}},{"type":"binary","data":{"Path":"a.txt","MIMEType":"text/plain","Data":"YWxwaGE="}},{"type":"binary","data":{"Path":"r.png","MIMEType":"image/png","Data":"iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAF0lEQVR4nGP4z8BAEiJN9aiGUQ1DSgMAkPn/Afnh+ngAAAAASUVORK5CYII="}},{"type":"finish","data":{"reason":"stop","time":0}}]`, 0)
	r.crushMessage("a1", "assistant", `[{"type":"reasoning","data":{"thinking":"hm","signature":"sig"}},{"type":"text","data":{"text":"I look."}},{"type":"tool_call","data":{"id":"c1","name":"view","input":"{\"file_path\":\"a.txt\"}","finished":true}},{"type":"tool_call","data":{"id":"c2","name":"bash","input":"","finished":true}},{"type":"finish","data":{"reason":"tool_use","time":1}}]`, 0)
	r.crushMessage("t1", "tool", `[{"type":"tool_result","data":{"tool_call_id":"c1","name":"view","content":"alpha"}},{"type":"tool_result","data":{"tool_call_id":"c2","name":"bash","content":"no","is_error":true}},{"type":"finish","data":{"reason":"stop"}}]`, 0)
	r.crushMessage("a2", "assistant", `[{"type":"text","data":{"text":"half"}},{"type":"finish","data":{"reason":"error","time":1,"message":"overloaded"}}]`, 0)
	st := openStore(t, t.TempDir())
	rep, cat := take(t, st, nil, false, r.path)
	if rep.Count(inherit.New) != 2 || len(cat.Problems) > 0 {
		t.Fatalf("%v %v", states(rep), cat.Problems)
	}
	s, err := session.Open(t.Context(), st, "ses_1")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"user The conversation history before this point was compacted into the following summary:\n\n<summary>\na summary\n</summary>",
		"user look\n<system_info>The files below have been attached by the user, consider them in your response</system_info>\n<file path='a.txt'>\n\nalpha\n</file>\n",
		"user (image)", "thinking hm", "assistant I look.", `call c1 view {"file_path":"a.txt"}`, "call c2 bash {}", "result c1 false alpha", "result c2 true no",
	}
	got := lines(s, "anthropic/m")
	if diff := cmp.Diff(want, got); diff != "" || s.Title != "Look around" || s.Key != session.Key("crush:"+filepath.Base(filepath.Dir(filepath.Dir(r.path)))+":ses_1") {
		t.Errorf("%s, title %q, key %s", diff, s.Title, s.Key)
	}
	if in, err := session.Stat(t.Context(), st, "a1$$c1"); err != nil || !in.Subagent() {
		t.Errorf("%+v, %v", in, err)
	}
	if inherit.Unverified(inherit.Crush) == "" || inherit.Unverified(inherit.OpenCode) != "" {
		t.Error("which programs are verified")
	}
}

// TestRealProgramsAreWell: nothing of what the programs wrote is touched, the
// doctor finds nothing wrong in it, and a repaired copy of a database holds the
// same conversations.
func TestRealProgramsAreWell(t *testing.T) {
	dir := realPrograms(t)
	for _, program := range []string{"opencode/1.18.33", "gemini-cli/0.61.0"} {
		src := filepath.Join(dir, program)
		if err := os.Remove(filepath.Join(src, "wire.jsonl")); err != nil {
			t.Fatal(err)
		}
		before := tree(t, src)
		st := openStore(t, t.TempDir())
		rep, cat := take(t, st, nil, false, src)
		to := filepath.Join(t.TempDir(), "copy")
		c := doctor.Copy{Root: src, To: to, Folder: true}
		defer c.Close()
		for _, o := range rep.Outcomes {
			x, err := doctor.Examine(t.Context(), o.Transcript)
			if err != nil || len(x.Findings) > 0 {
				t.Errorf("%s: %v, %v", o.Ref(), x.Findings, err)
			}
			path, err := c.Add(t.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			again := openStore(t, t.TempDir())
			if copied, _ := take(t, again, nil, false, path); copied.Count(inherit.New) != 1 {
				t.Fatalf("%s: %v", path, states(copied))
			} else if want, got := sentOf(t, st, o.Log, "contents"), sentOf(t, again, copied.Outcomes[0].Log, "contents"); !cmp.Equal(want, got) {
				t.Errorf("%s (-was +copied):\n%s", o.Ref(), cmp.Diff(want, got))
			}
		}
		if diff := cmp.Diff(before, tree(t, src)); diff != "" || len(cat.Problems) > 0 {
			t.Errorf("%s has changed: %s, %v", program, diff, cat.Problems)
		}
	}
}
