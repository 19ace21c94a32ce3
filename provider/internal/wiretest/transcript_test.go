package wiretest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"goclaw/internal/codec"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/provider/anthropic"
	"goclaw/provider/internal/wiretest"
	"goclaw/provider/openai"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/window"
)

// transcripts returns files that real programs wrote, by path.
var transcripts = sync.OnceValues(func() (paths []string, err error) {
	err = filepath.WalkDir("../../../internal/codec/testdata", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		if st, err := d.Info(); err == nil && st.Size() < 16<<10 {
			paths = append(paths, path)
		}
		return nil
	})
	if err == nil && len(paths) < 50 {
		err = fmt.Errorf("%d transcripts were found, want at least 50", len(paths))
	}
	return paths, err
})

// odd are values that an API may refuse where others are taken.
var odd = func() []any {
	wide := wiretest.Wide()
	values := []any{nil, true, 0, -1.5, "", " \n", "\x00", "\ufeff", "functions.read_file", "bad name!", "读文件", strings.Repeat("n", 200),
		"c1", "toolu_01", "data:,x", "data:image/png;base64,AAAA", "AAAA", "AB==", "no base64!", "image/heic", "image/jpeg", wide.Data, wide.Data[:40],
		[]any{}, map[string]any{}, []any{map[string]any{"type": "text", "text": ""}}, map[string]any{"a": []any{map[string]any{"b": nil}}},
		[]any{map[string]any{"type": "image", "data": wide.Data, "mimeType": "image/png"}},
		[]any{map[string]any{"type": "toolCall", "id": "c1", "name": "functions.read", "arguments": "{"}, map[string]any{"type": "toolCall", "id": "c1", "name": "", "arguments": nil}},
		"user", "assistant", "toolResult", "error", "aborted", "toolUse"}
	for _, img := range llmtest.Images {
		values = append(values, img.Data)
	}
	return values
}()

// targets are the fields whose values are changed most.
var targets = []string{"name", "id", "toolCallId", "toolName", "data", "mimeType", "text", "arguments", "content", "role", "stopReason", "isError", "thinking", "thinkingSignature", "summary", "input", "output"}

// mutate draws a change of a value, somewhere inside.
func mutate(t *rapid.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) == 0 {
			break
		}
		var hot []string
		for _, k := range keys {
			if slices.Contains(targets, k) {
				hot = append(hot, k)
			}
		}
		if len(hot) > 0 && rapid.IntRange(0, 3).Draw(t, "hot") > 0 {
			keys = hot
		}
		k := rapid.SampledFrom(keys).Draw(t, "key")
		if rapid.IntRange(0, 9).Draw(t, "delete") == 0 {
			delete(v, k)
			return v
		}
		v[k] = mutate(t, v[k])
		return v
	case []any:
		if len(v) == 0 || rapid.IntRange(0, 5).Draw(t, "replace") == 0 {
			break
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
		if rapid.IntRange(0, 5).Draw(t, "again") == 0 {
			return append(v, v[i])
		}
		v[i] = mutate(t, v[i])
		return v
	}
	return rapid.SampledFrom(odd).Draw(t, "odd")
}

// transcript draws a real program's file and changes some of its lines.
func transcript(t *rapid.T) []byte {
	paths, err := transcripts()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(rapid.SampledFrom(paths).Draw(t, "file"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	for range rapid.IntRange(0, 12).Draw(t, "changes") {
		i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
		switch rapid.IntRange(0, 9).Draw(t, "how") {
		case 0: // a line is missing
			lines = slices.Delete(lines, i, i+1)
		case 1: // a line is there twice
			lines = slices.Insert(lines, i, lines[i])
		case 2: // two lines change places
			j := rapid.IntRange(0, len(lines)-1).Draw(t, "other")
			lines[i], lines[j] = lines[j], lines[i]
		default:
			var v any
			if json.Unmarshal(lines[i], &v) != nil {
				continue
			}
			if out, err := json.Marshal(mutate(t, v)); err == nil {
				lines[i] = out
			}
		}
		if len(lines) == 0 {
			break
		}
	}
	return bytes.Join(lines, []byte("\n"))
}

// asks are the requests that were held against an API.
var asks struct {
	sync.Mutex
	n int
}

// accepted draws a log, a changed transcript of a real program or one out of
// nothing, asks on, and holds what is sent against each API.
func accepted(t *rapid.T) {
	var recs []session.Record
	if rapid.IntRange(0, 3).Draw(t, "real") > 0 {
		for r, err := range codec.Read("t.jsonl", bytes.NewReader(transcript(t)), codec.Options{}) {
			if err == nil {
				recs = append(recs, r)
			}
		}
	} else {
		recs = sessiontest.Log(sessiontest.AnyBodies(t, "anthropic", "claude-sonnet-4-5")...)
	}
	s, err := session.Replay("s", sessiontest.Yield(recs...))
	if err != nil {
		t.Skip("not a log") // a second header, a record that does not follow
	}
	if err := s.Apply(s.Next(sessiontest.User("and now?"), &sessiontest.Clock{})); err != nil {
		t.Fatal(err)
	}
	var tools []llm.ToolSpec
	for range rapid.IntRange(0, 4).Draw(t, "tools") {
		tools = append(tools, llm.ToolSpec{Name: rapid.SampledFrom([]string{"read", "functions.read_file", "bad name!", "读文件", "", strings.Repeat("n", 200)}).Draw(t, "tool")})
	}
	for _, to := range []struct {
		provider, model string
		encoder         interface {
			Body(llm.Request) ([]byte, error)
		}
		judge func([]byte) error
	}{
		{"anthropic", "claude-sonnet-4-5", anthropic.New(anthropic.Config{}), wiretest.Anthropic},
		{"openai", "gpt-5", openai.New(openai.Config{}), wiretest.OpenAI},
		{"openai", "gpt-5", openai.NewResponses(openai.Config{}), wiretest.Responses},
		{"openrouter", "anthropic/claude-sonnet-4-5", openai.New(openai.Config{BaseURL: "https://openrouter.ai/api/v1"}), wiretest.OpenAI},
		{"local", "qwen3", openai.New(openai.Config{BaseURL: "http://localhost:8080"}), wiretest.OpenAI},
	} {
		for _, q := range []window.Squeeze{window.Loose, window.Results, window.Tight} {
			_, anywhere := to.encoder.(*openai.Responses)
			req := window.Build(s, window.Prompt{Provider: to.provider, Model: to.model, ThinksAnywhere: anywhere, System: "Be brief.", Tail: "[Context: 1%]", Tools: tools, MaxTokens: 1000}, q)
			body, err := to.encoder.Body(req)
			if err != nil {
				t.Fatal(err)
			}
			if err := to.judge(body); err != nil {
				t.Fatalf("%s refuses: %v in %.4000s", to.provider, err, body)
			}
			asks.Lock()
			asks.n++
			asks.Unlock()
		}
	}
}

// TestTranscriptsAreAccepted asks on in more than 1,000 changed transcripts:
// no API refuses one. FuzzTranscripts goes on from there.
func TestTranscriptsAreAccepted(t *testing.T) {
	rapid.Check(t, accepted)
	if t.Logf("%d asks, none refused", asks.n); asks.n < 1000 && !t.Failed() {
		t.Errorf("%d asks, want at least 1,000", asks.n)
	}
}

func FuzzTranscripts(f *testing.F) {
	sessiontest.Seeds(f)
	f.Fuzz(rapid.MakeFuzz(accepted))
}
