//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/vt"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goclaw/internal/terminal"
	"goclaw/internal/tui/tuitest"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/jsonl"
	"goclaw/store/sqlite"
)

// evil is text that tries everything: colours, titles, cursor movements, 8-bit
// controls, direction.
const evil = "EVIL\x1b[35;7m\x1b]0;owned\x07\x1b[2J\r\b\x7f\u009b35m\u0090\u202e\u2066\u200f\u061c\u2028\x00"

// evilName is evil in what has one line.
const evilName = evil + "\nFORGED"

// ours are the sequences that goclaw writes itself. None of them is in evil.
var ours = regexp.MustCompile("\x1b\\[(0|1|2|3|4|9|31|32|33|36)(;[0-9]+)*m|\r?\x1b\\[[JK]|\x1b\\[[0-9]*[AC]|\x1b\\[\\?2004[hl]|\r\n|\r[\x1b⠀-⣿█░>]")

// checkText fails if out controls the terminal, or if a name has broken out of
// its line.
func checkText(t *testing.T, what, out string, tty bool) {
	t.Helper()
	if tty {
		out = ours.ReplaceAllStringFunc(out, func(s string) string {
			if s == "\r\n" {
				return "\n"
			}
			return strings.TrimLeft(s, "\r\x1b[0123456789;mJKAC?hl")
		})
	}
	bad := func(r rune) bool { return r != utf8.RuneError && terminal.Hidden(r) }
	if i := strings.IndexFunc(out, bad); i >= 0 || !utf8.ValidString(out) {
		t.Errorf("%s: a control character at %d: %q", what, i, out[max(i-100, 0):min(max(i, 0)+60, len(out))])
	}
	if i := strings.Index("\n"+out, "\nFORGED"); i >= 0 {
		t.Errorf("%s: a name has a line to itself: %q", what, out[max(i-100, 0):min(i+40, len(out))])
	}
}

// drawn are the sequences that the chat writes itself, on a terminal that it
// draws on.
var drawn = regexp.MustCompile("\x1b\\[([0-9;]*[ABCDGHJKLMPSTXdm]|[0-9]+ q|6n|\\?[0-9]+(\\$p|[hlW])|[<>?=]?[0-9;]*[um])|\x1b[M78=>]|\x1b\\]1?1[012]?(;\\?)?(\x07|\x1b\\\\)|[\r\n\b\t]")

// checkScreen is checkText for a chat that draws on a terminal. What evil wants
// to do is not done: no colour of its, no title, no text without a line's head.
func checkScreen(t *testing.T, what string, p *tuitest.Person) {
	t.Helper()
	for _, s := range []string{"\x1b[35", "\x1b]0;"} {
		if i := strings.Index(p.All(), s); i >= 0 {
			t.Errorf("%s: %q at %d: %q", what, s, i, p.All()[max(i-100, 0):min(i+60, len(p.All()))])
		}
	}
	checkText(t, what, drawn.ReplaceAllString(p.All(), ""), false)
	checkText(t, what+" on the screen", p.Text(), false)
}

// hostileHome makes a home, in a folder with a hostile name, whose store,
// configuration, memory and other programs' files say evil things.
func hostileHome(t *testing.T, store, server string) (home string) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "home EVIL\x1b[35m\u202e")
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	put("config.json", fmt.Sprintf(`{%s: 1, "models": {%s: {"contextWindow": 9000}}, "model": "openai/gpt-5", "session": {"store": %q},
	"providers": {"openai": {"baseUrl": %q, "apiKey": "k"}}}`, quoted(evilName), quoted("p/"+evilName), store, server))
	put("workspace/MEMORY.md", "# "+evil+"\n\nthe boat is "+evil+"\n")
	put("allowed", quoted(evil)+"\n")
	head := `{"type":"session","version":3,"id":"abc` + `","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}`
	msg := `{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":` + quoted("boat "+evil) + `,"timestamp":1}}`
	put("agents/main/sessions/abc\x1b[35m\u202e\n.jsonl", head+"\n"+msg+"\n{broken \x1b[35m \x9b\n")
	put("agents/main/sessions/sessions.json", `{`+quoted("agent:main:"+evilName)+`:{"sessionId":"abc","displayName":`+quoted(evilName)+`}}`)

	var st session.Store
	var err error
	if store == "jsonl" {
		st, err = jsonl.Open(filepath.Join(home, "sessions"), jsonl.Options{})
	} else {
		st, err = sqlite.Open(filepath.Join(home, "sessions.db"))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer st.(io.Closer).Close()
	call := sessiontest.Call("c1", evilName, `{"a":`+quoted(evil)+`}`)
	result := sessiontest.Result("c1", evil)
	failed := sessiontest.Answer(evil)
	failed.Error, failed.Stop = evilName, llm.StopError
	for _, id := range []session.ID{"first", "second"} {
		log := sessiontest.Log(
			session.Header{Version: session.Version, ID: id, Key: session.Key("main:cli:" + string(id) + evilName)},
			sessiontest.User("where is the boat? "+evil), sessiontest.By(evilName, evilName, call), result, failed,
			sessiontest.Title(evilName), session.ModelChange{Provider: evilName, Model: evilName}, session.Notice{Percent: 50, Text: evil},
			session.Custom{Type: evilName}, session.Label{Target: "e1", Label: evilName}, session.Shell{Command: evil, Output: evil},
			session.Checkpoint{Summary: evil, Covers: "e2", Model: evilName, Topics: []string{evil}}, session.Reset{Reason: evilName},
			sessiontest.User("the boat again "+evil), sessiontest.Answer("here "+evil), session.CustomMessage{Type: evilName, Blocks: []llm.Block{llm.Text{Text: evil}}, Display: true},
			session.BranchSummary{Summary: evil})
		if err := st.Append(t.Context(), id, log...); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// hostileServer refuses everything with an evil body.
func hostileServer(t *testing.T) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		b, _ := json.Marshal(map[string]any{"error": map[string]string{"type": evilName, "code": evilName, "message": evilName + "\x9b"}})
		w.Write(b)
		io.WriteString(w, evil+"\x9b35m")
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// hostileArgs are the arguments of the commands that need more than their Use
// says. nil: the command is not run here, but below or as part of another.
var hostileArgs = map[string][]string{
	"goclaw":                       nil, // TestChatShowsText
	"goclaw ask":                   {"hello " + evil[:len(evil)-1]},
	"goclaw search":                {"boat"},
	"goclaw sessions rename":       {"first", "EVIL\x1b[35m\u202e\nFORGED"},
	"goclaw sessions fork":         {"first"},
	"goclaw sessions copy":         {"copy \x1b[35m"},
	"goclaw sessions new":          {"main:cli:\x1b[35mnew"},
	"goclaw sessions restore":      {"first\x1b[35m\nFORGED"},
	"goclaw import":                {"agents", "none\x1b[35m\nFORGED"},
	"goclaw doctor":                {},
	"goclaw mcp":                   {},
	"goclaw serve":                 nil, // it does not end by itself
	"goclaw help":                  {"\x1b[35mnone\nFORGED"},
	"goclaw completion bash":       {},
	"goclaw completion zsh":        {},
	"goclaw completion fish":       {},
	"goclaw completion powershell": {},
}

// commandsBelow lists cmd and the commands below it, hidden ones too.
func commandsBelow(cmd *cobra.Command) (out []*cobra.Command) {
	for _, c := range cmd.Commands() {
		out = append(out, commandsBelow(c)...)
	}
	if cmd.Runnable() {
		out = append(out, cmd)
	}
	return out
}

// argsOf returns the arguments that cmd is run with, and whether it is run.
func argsOf(cmd *cobra.Command) ([]string, bool) {
	path := cmd.CommandPath()
	args, ok := hostileArgs[path]
	if ok && args == nil {
		return nil, false
	}
	if !ok && strings.Contains(cmd.Use, " KEY") {
		args = []string{"first"}
	}
	return append(strings.Fields(path)[1:], args...), true
}

// variants are the flags that cmd is run with: none, and each that takes no
// value.
func variants(cmd *cobra.Command) [][]string {
	out := [][]string{nil}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" && !slices.Contains([]string{"help", "follow", "continue", "version", "new"}, f.Name) {
			out = append(out, []string{"--" + f.Name})
		}
	})
	return out
}

// Every command shows only text, whatever the store, other programs' files, the
// configuration and the server say: in a terminal and in a pipe, for people and
// for programs.
func TestEveryCommandShowsText(t *testing.T) {
	server := hostileServer(t)
	cmds := commandsBelow(rootCmd(newApp(nil, nil, nil, os.Getenv)))
	if len(cmds) < 20 {
		t.Fatalf("there are only %d commands", len(cmds))
	}
	extra := map[string][][]string{
		"goclaw doctor":        {{"agents"}},
		"goclaw sessions show": {{"--around", "3"}},
		"goclaw search":        {{"--json"}},
		"goclaw ask":           {{"-a", "none\x1b[35m\nFORGED"}, {"--session", "none\x1b[35m"}},
		"goclaw context":       {{"--file", "agents/main/sessions/abc\x1b[35m\u202e\n.jsonl"}},
	}
	for _, store := range []string{"sqlite", "jsonl"} {
		home := hostileHome(t, store, server)
		for _, cmd := range cmds {
			args, ok := argsOf(cmd)
			if !ok {
				continue
			}
			runs := variants(cmd)
			if store == "sqlite" {
				runs = append(runs, extra[cmd.CommandPath()]...)
			} else {
				runs = runs[:1]
			}
			t.Run(store+" "+strings.Join(args[:min(2, len(args))], " "), func(t *testing.T) {
				t.Parallel()
				for i, flags := range runs {
					args := append(slices.Clone(args), flags...)
					if len(flags) > 0 && flags[0] == "agents" {
						args = append(strings.Fields(cmd.CommandPath())[1:], flags...)
					}
					if len(flags) > 0 && flags[0] == "--file" {
						args = append([]string{"context"}, flags...)
					}
					showsText(t, home, args, i == 0 || store == "sqlite", store == "jsonl" || i == 0)
				}
			})
		}
	}
}

// seenEvil are the commands that must have shown something of the evil text:
// else the test would prove nothing.
var seenEvil = []string{"show", "tail", "context", "search", "import", "doctor agents", "rename", "fork", "delete", "ask", "sessions --json", "export"}

// showsText runs the program on a terminal, in a pipe, or both, each time in a
// copy of home.
func showsText(t *testing.T, home string, args []string, tty, pipe bool) {
	t.Helper()
	said := ""
	run := func(do func(cmd *exec.Cmd) string) {
		copied := filepath.Join(t.TempDir(), filepath.Base(home))
		if err := os.CopyFS(copied, os.DirFS(home)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("goclaw", args...)
		cmd.Dir = copied
		cmd.Env = []string{"HOME=" + copied, "GOCLAW_HOME=" + copied, "GOCLAW_NO_LOCAL=1", "TERM=xterm", "PATH=" + os.Getenv("PATH")}
		said += do(cmd)
	}
	what := fmt.Sprintf("goclaw %q", args)
	if pipe {
		run(func(cmd *exec.Cmd) string {
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			cmd.Run()
			if !slices.Contains(args, "export") { // it is data
				checkText(t, what+" in a pipe", out.String(), false)
			}
			checkText(t, what+" in a pipe, standard error", errs.String(), false)
			return out.String() + errs.String()
		})
	}
	if tty {
		run(func(cmd *exec.Cmd) string {
			p := tuitest.New(t, 1000, 40) // wide enough that no line is wrapped
			cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
			if slices.Contains(args, "mcp") {
				cmd.Stdin = nil
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			over := make(chan struct{})
			go func() { cmd.Wait(); close(over) }()
			for open, deadline := true, time.After(testPatience); open; {
				select {
				case <-over:
					open = false
				case <-time.After(100 * time.Millisecond):
					p.Press("\x04") // whatever it asks
				case <-deadline:
					cmd.Process.Kill()
					t.Fatalf("%s does not end: %q", what, p.All())
				}
			}
			fmt.Fprint(p.TTY, "THE END")
			p.Await("the end", func(string, int, int) bool { return strings.HasSuffix(p.All(), "THE END") })
			checkText(t, what+" on a terminal", strings.ReplaceAll(p.All(), "^D\b\b", ""), true)
			return p.All()
		})
	}
	line := strings.Join(args, " ")
	for _, s := range seenEvil {
		if (strings.HasSuffix(line, s) || strings.Contains(line, s+" ")) && !strings.Contains(said, "EVIL") && !strings.Contains(said, "35m") && !strings.Contains(line, "--notices") && !strings.Contains(line, "--index") {
			t.Errorf("%s shows nothing of the evil text: %q", what, said)
		}
	}
}

// hostileModel calls tools with evil names and arguments, bash last, and then
// says evil things.
func hostileModel(t *testing.T) string {
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	calls := fmt.Sprintf(`[{"index":0,"id":"c1","type":"function","function":{"name":%s,"arguments":%s}},
		{"index":1,"id":"c2","type":"function","function":{"name":"bash","arguments":%s}}]`,
		quoted(evilName), quoted(`{"a":`+quoted(evil)+`}`), quoted(`{"command":`+quoted("echo "+strings.ReplaceAll(evilName, "\x00", ""))+`}`))
	steps := []string{
		`{"choices":[{"delta":{"role":"assistant","content":` + quoted(evil) + `,"tool_calls":` + strings.ReplaceAll(calls, "\n", "") + `}}]}`,
		`{"choices":[{"delta":{"role":"assistant","content":` + quoted("**bold** "+evil+" `code` done") + `}}]}`,
	}
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || !bytes.Contains(body, []byte(`"stream":true`)) {
			http.Error(w, evil, http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		reason := "stop"
		if len(steps) > 1 {
			reason = "tool_calls"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", steps[0], reason)
		if len(steps) > 1 {
			steps = steps[1:]
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// The chat shows only text: answers, tool names right before the permission
// question, commands to allow, and what every slash command shows.
func TestChatShowsText(t *testing.T) {
	home := hostileHome(t, "sqlite", hostileModel(t))
	p := tuitest.New(t, 1000, 60)
	cmd := exec.Command("goclaw", "--session", "first")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home, "GOCLAW_NO_LOCAL=1", "TERM=xterm", "PATH=" + os.Getenv("PATH")}
	cmd.Dir = home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	p.Rests()
	p.Press("hello\r")
	p.See("bash wants to run")
	p.See(`"echo EVIL\x1b[35;7m`)
	p.See("n  no")
	p.Press("n")
	p.See("done\n")
	p.Rests()
	for i, line := range []string{"/sessions", "/history all", "/search boat", "/search 1", "/context", "/checkpoints", "/compact --dry-run", "/model", "/model " + "a\u202eb/c",
		"/title", "/pin", "/unpin", "/undo", "/merge", "/help", "/thinking on", "/export native", "/bogus\u202e", "/delete second", "/switch second", "/fork", "/new", "/switch \t\t"} {
		p.Press(line + "\r")
		view := func(open bool) func(string, int, int) bool {
			return func(string, int, int) (yes bool) {
				p.Look(func(v *vt.Emulator) { yes = v.IsAltScreen() })
				return yes == open
			}
		}
		switch line {
		case "/sessions", "/checkpoints", "/model", "/switch \t\t":
			p.Await(line+" to open", view(true))
			checkText(t, line, p.Screen(), false)
			p.Press("\x1b")
			p.Await(line+" to close", view(false))
		case "/compact --dry-run":
			p.See("❯ n no")
			checkText(t, line, p.Screen(), false)
			p.Press("n")
		}
		mark := fmt.Sprintf("/mark%c", 'a'+i)
		p.Press("\x15" + mark + "\r")
		p.See("there is no " + mark)
	}
	p.Press("/quit\r")
	exits(t, cmd)
	checkScreen(t, "the chat", p)
	if all := p.All(); !strings.Contains(all, "\x1b[1mbold\x1b[") || !strings.Contains(all, "EVIL") {
		t.Errorf("the chat has no colours, or shows nothing evil: %q", all)
	}
}
