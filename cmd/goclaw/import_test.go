package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/fixtures"
)

// unpackFixtures unpacks what real programs wrote.
func unpackFixtures(t *testing.T) string {
	return fixtures.Unpack(t, "../../internal/inherit/testdata/fixtures.tar.zst")
}

// typed runs a command as a user would, and returns its standard output.
func typed(t *testing.T, home string, args ...string) string {
	t.Helper()
	// Not in the current folder, whose instructions are this repository's.
	env := map[string]string{"HOME": home, "GOCLAW_HOME": filepath.Join(home, "goclaw"), "GOCLAW_NO_LOCAL": "1", "GOCLAW_WORKSPACE": home}
	var out, errOut bytes.Buffer
	if code := run(args, strings.NewReader(""), &out, &errOut, func(k string) string { return env[k] }); code != 0 {
		t.Fatalf("goclaw %s: exit code %d\n%s", strings.Join(args, " "), code, errOut.String())
	}
	return out.String()
}

// wireLines shows the messages of context --json, a line a block.
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
	var out []string
	for _, m := range c.Messages {
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				out = append(out, m.Role+" "+b.Text)
			case "image":
				out = append(out, m.Role+" (image)")
			case "tool_use":
				out = append(out, fmt.Sprintf("call %s %s %s", b.ID, b.Name, fixtures.Args(b.Input)))
			case "tool_result":
				text := ""
				for _, in := range b.Content {
					if in.Type == "text" {
						text += in.Text
					} else {
						text += "(image)"
					}
				}
				out = append(out, fmt.Sprintf("result %s %v %s", b.ToolUseID, b.IsError, text))
			}
		}
	}
	return out
}

// spoken returns the answer of a real program as lines without thinking: the
// model that is asked here is none of theirs, and is told it as text.
func spoken(lines []string) []string {
	var out []string
	for _, l := range lines {
		if thought, ok := strings.CutPrefix(l, "thinking "); ok {
			l = "assistant " + thought
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
	t.Parallel()
	if testing.Short() {
		t.Skip("a command for each of a hundred sessions")
	}
	dir, home := unpackFixtures(t), t.TempDir()
	want := fixtures.Answers(t, "../../window/testdata/answers.json")
	var imported struct {
		Sessions []struct{ Path, ID, Key, State, Program string }
	}
	var out bytes.Buffer
	env := map[string]string{"HOME": home, "GOCLAW_HOME": filepath.Join(home, "goclaw"), "GOCLAW_NO_LOCAL": "1"}
	if code := run([]string{"import", dir, "--json"}, strings.NewReader(""), &out, io.Discard, func(k string) string { return env[k] }); code != 1 {
		t.Fatalf("exit code %d, want 1: some fixtures are damaged", code)
	}
	if err := json.Unmarshal(out.Bytes(), &imported); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, s := range imported.Sessions {
		name := fixtures.Name(t, dir, s.Path, s.ID)
		for _, a := range want[name] {
			if _, waived := a.Waived(name); a.Program != fixtures.Healed || a.Error != "" || waived {
				continue
			}
			compared++
			got := wireLines(t, typed(t, home, "context", s.ID, "--json", "--model", "offline"))
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], "/sb/home96import", "") // it was run from another home
				got[i] = strings.ReplaceAll(got[i], "(image left out: this model reads text only)", "(image)")
			}
			if diff := cmp.Diff(fixtures.Acceptable(spoken(a.Lines)), fixtures.Acceptable(got)); diff != "" {
				t.Errorf("%s (%s): the context differs (-theirs +ours):\n%s", name, s.ID, diff)
			}
		}
	}
	t.Logf("%d contexts compared", compared)
	if compared < 90 {
		t.Errorf("%d contexts compared, want at least 90", compared)
	}
}
