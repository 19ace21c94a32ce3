package window_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/codec"
	"goclaw/internal/fixtures"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	"goclaw/window"
)

var update = flag.Bool("update", false, "make testdata/answers.json anew from ../../shared/fixtures")

const shared = "../../shared/fixtures"

// TestContextsOfRealPrograms builds the context of every fixture and holds it
// against what the real programs make of the file: strictly read against pi,
// healed against OpenClaw.
func TestContextsOfRealPrograms(t *testing.T) {
	answers := readAnswers(t)
	if len(answers) < 80 {
		t.Fatalf("%d fixtures have answers, want more than 80", len(answers))
	}
	compared, skipped := 0, 0
	for _, name := range sortedKeys(answers) {
		path := fixture(name)
		if path == "" {
			if strings.Contains(name, "large") {
				continue // in ../shared only
			}
			t.Errorf("%s is not in testdata", name)
			continue
		}
		for _, a := range answers[name] {
			strict, held := a.Reading(name)
			if !held {
				continue
			}
			replay := session.Replay
			if strict {
				replay = session.ReplayStrict
			}
			if why, ok := a.Waived(name); ok {
				skipped++
				t.Logf("%s, %s: waived, %s", name, a.Program, why)
				continue
			}
			compared++
			t.Run(name+"/"+strings.Fields(a.Program)[0]+strings.Fields(a.Program)[1], func(t *testing.T) {
				s := replayFile(t, path, replay)
				prov, model, _ := strings.Cut(a.Model, "/")
				req := window.Build(s, window.Prompt{Provider: prov, Model: model}, window.Loose)
				if diff := cmp.Diff(fixtures.Acceptable(a.Lines), fixtures.Acceptable(fixtures.Lines(req))); diff != "" {
					t.Errorf("the context differs from %s's (-theirs +ours):\n%s", a.Program, diff)
				}
				accepted(t, s)
			})
		}
	}
	t.Logf("%d answers compared, %d waived", compared, skipped)
	if compared < 150 {
		t.Errorf("%d answers compared, want at least 150", compared)
	}
}

// accepted says what is wrong with the request of s once the user goes on.
func accepted(t *testing.T, s *session.Session) {
	t.Helper()
	req := window.Build(s, window.Prompt{Provider: "p", Model: "m"}, window.Loose)
	if n := len(req.Messages); n == 0 || req.Messages[n-1].Role == llm.Assistant {
		req.Messages = append(req.Messages, llm.UserText("go on"))
	}
	if err := llmtest.Validate(req); err != nil {
		t.Errorf("the strict validator says: %v", err)
	}
}

// replaying is a way to read a log.
type replaying func(session.ID, iter.Seq2[session.Record, error]) (*session.Session, error)

func replayFile(t *testing.T, path string, replay replaying) *session.Session {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := replay("f", codec.Read(path, f, codec.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fixture returns where a fixture is: in codec's testdata, which is flatter
// than the original, else in ../shared.
func fixture(name string) string {
	dir, base, _ := strings.Cut(name, "/")
	for _, p := range []string{
		filepath.Join("../internal/codec/testdata", dir, filepath.Base(base)),
		filepath.Join(shared, filepath.FromSlash(name)),
	} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

const answersFile = "testdata/answers.json"

// readAnswers returns the programs' answers by fixture. Where the originals
// are at hand, our digest of them must be true.
func readAnswers(t *testing.T) map[string][]fixtures.Answer {
	t.Helper()
	if _, err := os.Stat(shared); err == nil {
		fresh := digest(t)
		text := encode(t, fresh)
		if *update {
			if err := os.WriteFile(answersFile, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(answersFile); err != nil || !bytes.Equal(have, text) {
			t.Errorf("%s is not what the originals say: go test ./window -run Contexts -update", answersFile)
		}
		return fresh
	}
	return fixtures.Answers(t, answersFile)
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// digest reads the expected.json files of the fixtures.
func digest(t *testing.T) map[string][]fixtures.Answer {
	out := map[string][]fixtures.Answer{}
	files, _ := filepath.Glob(shared + "/*/*.expected.json")
	more, _ := filepath.Glob(shared + "/openclaw-*/expected/*.expected.json")
	for _, f := range append(files, more...) {
		name := fixtureOf(f)
		if name == "" {
			t.Errorf("%s belongs to no fixture", f)
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if data[0] != '[' {
			data = append(append([]byte("["), data...), ']')
		}
		var elems []struct {
			Program string
			Error   string
			Context struct {
				Model *struct{ Provider, ModelID string }
			}
			LLM []piMessage `json:"llm"`
		}
		if err := json.Unmarshal(data, &elems); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for _, e := range elems {
			a := fixtures.Answer{Program: strings.Join(strings.Fields(e.Program)[:2], " "), Error: e.Error}
			if e.Context.Model != nil {
				a.Model = e.Context.Model.Provider + "/" + e.Context.Model.ModelID
			}
			if e.LLM == nil && e.Error == "" {
				continue
			}
			a.Lines = piLines(e.LLM, a.Model)
			out[name] = append(out[name], a)
		}
	}
	return out
}

func fixtureOf(expected string) string {
	rel, _ := filepath.Rel(shared, expected)
	rel = strings.TrimSuffix(filepath.ToSlash(rel), ".expected.json")
	dir, base := filepath.ToSlash(filepath.Dir(rel)), filepath.Base(rel)
	for _, c := range []string{
		rel + ".jsonl",
		filepath.Dir(dir) + "/transcripts/" + base + ".jsonl",
		filepath.Dir(dir) + "/dot-openclaw/agents/main/sessions/" + base,
		filepath.Dir(dir) + "/dot-openclaw/agents/ops/sessions/" + base,
	} {
		if _, err := os.Stat(filepath.Join(shared, filepath.FromSlash(c))); err == nil {
			return c
		}
	}
	return ""
}

type piMessage struct {
	Role            string
	Content         json.RawMessage
	Provider, Model string
	StopReason      string
	ToolCallID      string
	IsError         bool
}

type piBlock struct {
	Type, Text, Thinking, ThinkingSignature string
	Redacted                                bool
	ID, Name                                string
	Arguments                               json.RawMessage
}

func (m piMessage) blocks() []piBlock {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return []piBlock{{Type: "text", Text: text}}
	}
	var bs []piBlock
	_ = json.Unmarshal(m.Content, &bs)
	return bs
}

// piLines does to a program's messages what its provider does before it sends
// them: failed answers are dropped, thinking of another model becomes text.
// A call without a result gets one; a result without a call is dropped.
func piLines(ms []piMessage, model string) []string {
	out := []string{}
	calls, results := map[string]bool{}, map[string]bool{}
	for _, m := range ms {
		if m.Role == "toolResult" {
			results[m.ToolCallID] = true
		}
	}
	for _, m := range ms {
		if m.Provider == "openclaw" && (m.Model == "gateway-injected" || m.Model == "delivery-mirror") || m.StopReason == "error" {
			continue
		}
		if m.Role == "toolResult" {
			if calls[m.ToolCallID] {
				delete(calls, m.ToolCallID)
				text := ""
				for _, b := range m.blocks() {
					if b.Type == "text" && strings.TrimSpace(b.Text) != "" {
						text += b.Text
					} else if b.Type == "image" {
						text += "(image)"
					}
				}
				out = append(out, fmt.Sprintf("result %s %v %s", m.ToolCallID, m.IsError, text))
			}
			continue
		}
		var lines, missing []string
		for _, b := range m.blocks() {
			switch b.Type {
			case "text":
				if strings.TrimSpace(b.Text) != "" {
					lines = append(lines, m.Role+" "+b.Text)
				}
			case "image":
				lines = append(lines, m.Role+" (image)")
			case "thinking":
				same := m.Provider+"/"+m.Model == model
				switch {
				case m.StopReason == "aborted" || b.Redacted && !same:
				case !same && strings.TrimSpace(b.Thinking) != "":
					lines = append(lines, m.Role+" "+b.Thinking)
				case same && b.ThinkingSignature != "":
					lines = append(lines, "thinking "+b.Thinking)
				}
			case "toolCall":
				if m.StopReason == "aborted" {
					continue
				}
				calls[b.ID] = true
				lines = append(lines, fmt.Sprintf("call %s %s %s", b.ID, b.Name, fixtures.Args(b.Arguments)))
				if !results[b.ID] {
					missing = append(missing, fmt.Sprintf("result %s true %s", b.ID, window.Interrupted))
				}
			}
		}
		if m.Role == "system" || len(lines) > 0 && strings.HasPrefix(lines[len(lines)-1], "thinking ") {
			continue
		}
		out = append(append(out, lines...), missing...)
	}
	return out
}
