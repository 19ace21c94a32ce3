//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// npmModule returns the path of a file of an npm package that scripts/test
// fetches.
func npmModule(t *testing.T, path string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("../../.cache/npm/node_modules", path))
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil {
		t.Skip("make test fetches it: ", err)
	}
	return file
}

// editing returns a command with what goclaw needs to ask the model there.
func editing(home, model, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + filepath.Join(home, ".goclaw"), "GOCLAW_NO_LOCAL=1", "PATH=" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=sk-test-0123456789"}
	cmd.Stderr = os.Stderr
	return cmd
}

// TestEditor is an editor with the protocol's own TypeScript SDK: it asks, sees
// diffs, answers questions, stops a turn, is killed, and finds everything again.
func TestEditor(t *testing.T) {
	t.Parallel()
	sdk := npmModule(t, "@agentclientprotocol/sdk/dist/v1/unstable/acp.js")
	model, goOn := slowly(t)
	home, folder := t.TempDir(), t.TempDir()
	program, err := exec.LookPath("goclaw")
	if err != nil {
		t.Fatal(err)
	}
	go func() { goOn <- "half an answer" }()
	raw, err := editing(home, model, "node", "testdata/acp/client.mjs", sdk, folder, program).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	type update struct {
		SessionUpdate, Status, ToolCallID, Title string
		Content                                  json.RawMessage
		Size, Used                               int
	}
	type reason struct {
		StopReason string
		Usage      struct{ TotalTokens int }
	}
	var saw struct {
		Initialized struct {
			ProtocolVersion   int
			AgentCapabilities struct{ LoadSession bool }
		}
		Session, FirstText, Wrong                            string
		Modes                                                struct{ CurrentModeID string }
		First, Write, Edit, Refused, Closed, Stopped, GoesOn reason
		AskedInEdits                                         int
		Kinds                                                []string
		Questions                                            []struct {
			ToolCall struct {
				ToolCallID, Title string
				Content           []struct{ Type, Path, OldText, NewText string }
			}
			Options []struct{ Kind, OptionID string }
		}
		Calls, History []update
		List           struct {
			Sessions []struct{ SessionID, Cwd, Title string }
		}
	}
	if err := json.Unmarshal(raw, &saw); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if !saw.Initialized.AgentCapabilities.LoadSession || saw.Modes.CurrentModeID != "ask" {
		t.Errorf("the beginning was %+v, %+v", saw.Initialized, saw.Modes)
	}
	if saw.FirstText != "echo: hello" || saw.First.StopReason != "end_turn" || saw.First.Usage.TotalTokens == 0 {
		t.Errorf("the first answer was %q, %+v", saw.FirstText, saw.First)
	}
	if len(saw.Questions) != 4 {
		t.Fatalf("%d questions, want 4: %s", len(saw.Questions), raw)
	}
	edit := saw.Questions[1].ToolCall
	if len(edit.Content) != 1 || edit.Content[0].Type != "diff" || !strings.Contains(edit.Content[0].OldText, "two") || !strings.Contains(edit.Content[0].NewText, "three") || edit.Content[0].Path != filepath.Join(folder, "a.txt") {
		t.Errorf("the edit is asked about with %+v", edit)
	}
	var kinds []string
	for _, o := range saw.Questions[0].Options {
		kinds = append(kinds, o.Kind)
	}
	if want := []string{"allow_once", "allow_always", "allow_always", "reject_once"}; !slices.Equal(kinds, want) {
		t.Errorf("the answers are %v, want %v", kinds, want)
	}
	if data, _ := os.ReadFile(filepath.Join(folder, "a.txt")); string(data) != "one\nthree\n" {
		t.Errorf("the file is %q", data)
	}
	for _, name := range []string{"b.txt", "c.txt"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			t.Errorf("%s was written without a yes", name)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "d.txt")); err != nil || saw.AskedInEdits != 0 {
		t.Errorf("in the mode edits: %v, %d questions", err, saw.AskedInEdits)
	}
	if saw.Stopped.StopReason != "cancelled" || saw.GoesOn.StopReason != "end_turn" {
		t.Errorf("the ends were %+v and %+v", saw.Stopped, saw.GoesOn)
	}
	if !strings.Contains(saw.Wrong, "none") && !strings.Contains(saw.Wrong, "Invalid params") {
		t.Errorf("a session that there is not: %q", saw.Wrong)
	}
	for _, kind := range []string{"agent_message_chunk", "tool_call", "tool_call_update", "usage_update", "session_info_update"} {
		if !slices.Contains(saw.Kinds, kind) {
			t.Errorf("the editor was never told %s: %v", kind, saw.Kinds)
		}
	}
	if len(saw.List.Sessions) != 1 || saw.List.Sessions[0].SessionID != saw.Session || saw.List.Sessions[0].Cwd != folder || saw.List.Sessions[0].Title == "" {
		t.Errorf("the list is %+v", saw.List)
	}
	var said []string
	for _, u := range saw.History {
		said = append(said, u.SessionUpdate)
	}
	if all := strings.Join(said, " "); !strings.HasPrefix(all, "user_message_chunk agent_message_chunk user_message_chunk tool_call tool_call_update") {
		t.Errorf("the past was told as %s", all)
	}
}

// TestEditorClient is a client of another maker: acpx.
func TestEditorClient(t *testing.T) {
	t.Parallel()
	acpx := npmModule(t, "acpx/dist/cli.js")
	model, _ := slowly(t)
	home, folder := t.TempDir(), t.TempDir()
	program, err := exec.LookPath("goclaw")
	if err != nil {
		t.Fatal(err)
	}
	cmd := editing(home, model, "node", acpx, "--agent", program+" acp", "--approve-all", "exec", `call write_file {"path":"a.txt","content":"from acpx"}`)
	cmd.Dir = folder
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "[done] end_turn") || !strings.Contains(string(out), "echo: call write_file") {
		t.Errorf("%v: %s", err, out)
	}
	if data, _ := os.ReadFile(filepath.Join(folder, "a.txt")); string(data) != "from acpx" {
		t.Errorf("the file is %q", data)
	}
}
