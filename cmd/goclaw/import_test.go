package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// unpackFixtures unpacks what real programs wrote.
func unpackFixtures(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open("../../inherit/testdata/fixtures.tar.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, b, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// typed runs a command as a user would, and returns its standard output.
func typed(t *testing.T, home string, args ...string) string {
	t.Helper()
	env := map[string]string{"HOME": home, "GOCLAW_HOME": filepath.Join(home, "goclaw"), "GOCLAW_NO_LOCAL": "1"}
	var out, errOut bytes.Buffer
	if code := run(args, strings.NewReader(""), &out, &errOut, func(k string) string { return env[k] }); code != 0 {
		t.Fatalf("goclaw %s: exit code %d\n%s", strings.Join(args, " "), code, errOut.String())
	}
	return out.String()
}

// wireLines shows the messages of context --json, a line a block, the ids of
// calls by their order.
func wireLines(t *testing.T, text string) []string {
	t.Helper()
	var c struct {
		Messages []struct {
			Role    string
			Content []struct {
				Type, Text, ID, Name string
				ToolUseID            string `json:"tool_use_id"`
				IsError              bool   `json:"is_error"`
				Input                json.RawMessage
				Content              []struct{ Type, Text string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	var out []string
	for _, m := range c.Messages {
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				out = append(out, m.Role+" "+b.Text)
			case "image":
				out = append(out, m.Role+" (image)")
			case "tool_use":
				ids[b.ID] = fmt.Sprint("#", len(ids)+1)
				var args bytes.Buffer
				if err := json.Compact(&args, b.Input); err != nil {
					t.Fatal(err)
				}
				out = append(out, fmt.Sprintf("call %s %s %s", ids[b.ID], b.Name, args.String()))
			case "tool_result":
				text := ""
				for _, in := range b.Content {
					if in.Type == "text" {
						text += in.Text
					} else {
						text += "(image)"
					}
				}
				out = append(out, fmt.Sprintf("result %s %v %s", ids[b.ToolUseID], b.IsError, text))
			}
		}
	}
	return out
}

// theirLines brings the answer of a real program into the same form. The model
// that is asked here is none of theirs: thinking is passed on as text.
func theirLines(lines []string) []string {
	ids := map[string]string{}
	var out []string
	if len(lines) > 0 && !strings.HasPrefix(lines[0], "user ") {
		out = append(out, "user (the beginning of this conversation is not shown)")
	}
	for _, l := range lines {
		w := strings.SplitN(l, " ", 3)
		switch w[0] {
		case "thinking":
			l = "assistant " + strings.TrimPrefix(l, "thinking ")
		case "call":
			ids[w[1]] = fmt.Sprint("#", len(ids)+1)
			l = "call " + ids[w[1]] + " " + w[2]
		case "result":
			l = "result " + ids[w[1]] + " " + w[2]
		}
		out = append(out, l)
	}
	return out
}

// TestImportedContexts imports every fixture by the command line and holds
// what `goclaw context` prints against what the real OpenClaw makes of it.
// Package inherit does the same with the thinking of every model, and strictly
// against pi.
func TestImportedContexts(t *testing.T) {
	if testing.Short() {
		t.Skip("a command for each of a hundred sessions")
	}
	dir, home := unpackFixtures(t), t.TempDir()
	var want map[string][]struct {
		Program, Error string
		Lines          []string
	}
	data, err := os.ReadFile("../../window/testdata/answers.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	var imported struct {
		Sessions []struct{ Path, ID, Key, State, Program string }
	}
	if err := json.Unmarshal([]byte(typed(t, home, "import", dir, "--json")), &imported); err != nil {
		t.Fatal(err)
	}
	refuses := map[string]bool{ // see package window: here the real program loses history or refuses the file
		"bad-timestamp-compaction": true, "malformed-line-in-middle": true, "malformed-parent-lost": true, "malformed-then-header": true,
		"nul-bytes-in-middle": true, "header-missing": true, "context-edit-system-usage": true, "context-edit-then-compaction": true,
	}
	compared := 0
	for _, s := range imported.Sessions {
		rel, err := filepath.Rel(dir, s.Path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.ToSlash(rel)
		switch name {
		case "openclaw-2026.9.6/openclaw-agent.sqlite":
			name = "openclaw-2026.9.6/transcripts/" + s.ID + ".jsonl"
		case "openclaw-2026.9.6-imported/openclaw-agent.sqlite":
			name = "openclaw-2026.2.1/dot-openclaw/agents/main/sessions/" + s.ID + ".jsonl"
		}
		for _, a := range want[name] {
			if a.Program != "openclaw 2026.9.6" || a.Error != "" || refuses[strings.TrimSuffix(filepath.Base(name), ".jsonl")] {
				continue
			}
			compared++
			got := wireLines(t, typed(t, home, "context", s.ID, "--json", "--model", "offline"))
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], "/sb/home96import", "") // it was run from another home
				got[i] = strings.ReplaceAll(got[i], "(image left out: this model reads text only)", "(image)")
			}
			if diff := cmp.Diff(theirLines(a.Lines), got); diff != "" {
				t.Errorf("%s (%s): the context differs (-theirs +ours):\n%s", rel, s.ID, diff)
			}
		}
	}
	t.Logf("%d contexts compared", compared)
	if compared < 90 {
		t.Errorf("%d contexts compared, want at least 90", compared)
	}
}
