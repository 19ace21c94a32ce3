package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"goclaw/llm"
)

// TestMain makes the test binary another process, too: one that writes notes,
// or one that runs a command.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TOOL_BASH"); dir != "" {
		s, err := New(Options{Workspace: dir, Now: time.Now, Allowed: []string{os.Getenv("TOOL_COMMAND")}, Env: os.Environ()})
		if err != nil {
			panic(err)
		}
		fmt.Println(s.Run(context.Background(), call("bash", o{"command": os.Getenv("TOOL_COMMAND")})))
		return
	}
	if dir := os.Getenv("TOOL_NOTES"); dir != "" {
		if err := takeNotes(dir, os.Getenv("TOOL_NAME")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

var noon = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

// open returns a Set over a fresh workspace that holds the given files.
func open(t testing.TB, o Options, files map[string]string) *Set {
	t.Helper()
	if o.Workspace == "" {
		o.Workspace = t.TempDir()
	}
	o.Now = noonClock
	for name, text := range files {
		put(t, filepath.Join(o.Workspace, name), text)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type o = map[string]any

func call(name string, args any) llm.ToolCall {
	raw, ok := args.(string)
	if !ok {
		b, err := json.Marshal(args)
		if err != nil {
			panic(err)
		}
		raw = string(b)
	}
	return llm.ToolCall{ID: "c1", Name: name, Args: json.RawMessage(raw)}
}

// run runs a call and holds every result against what all results promise.
func run(t testing.TB, s *Set, name string, args any) llm.ToolResult {
	t.Helper()
	r, err := s.Run(t.Context(), call(name, args))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	promise(t, r, name)
	return r
}

func promise(t testing.TB, r llm.ToolResult, name string) {
	t.Helper()
	if r.CallID != "c1" || r.Name != name {
		t.Errorf("result answers call %q of %q, want c1 of %q", r.CallID, r.Name, name)
	}
	text := r.Text()
	if strings.TrimSpace(text) == "" || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		t.Errorf("text of the result is empty, or not valid: %q", text)
	}
}

// ok runs a call that must succeed and returns its text.
func ok(t testing.TB, s *Set, name string, args any) string {
	t.Helper()
	r := run(t, s, name, args)
	if r.IsError {
		t.Fatalf("%s failed: %s", name, r.Text())
	}
	return r.Text()
}

// fails runs a call that must fail, with words in its text.
func fails(t testing.TB, s *Set, name string, args any, words ...string) {
	t.Helper()
	r := run(t, s, name, args)
	if !r.IsError {
		t.Errorf("%s %v succeeded: %s", name, args, r.Text())
	}
	contains(t, r.Text(), words...)
}

func contains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in:\n%s", w, text)
		}
	}
}

func names(s *Set) []string {
	var out []string
	for _, spec := range s.Specs() {
		out = append(out, spec.Name)
	}
	return out
}

// fake is a tool from elsewhere.
type fake struct {
	name, schema string
	run          func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error)
}

func (f fake) Spec() llm.ToolSpec {
	return llm.ToolSpec{Name: f.name, Description: "d", Schema: json.RawMessage(f.schema)}
}

func (f fake) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	return f.run(ctx, call)
}

type readOnlyFake struct{ fake }

func (readOnlyFake) Mutates(llm.ToolCall) bool { return false }

func says(text string) func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
	return func(_ context.Context, call llm.ToolCall) (llm.ToolResult, error) { return llm.Result(call, text), nil }
}

func TestSpecs(t *testing.T) {
	s := open(t, Options{}, nil)
	want := []string{"read_file", "list_directory", "grep", "glob", "write_file", "edit_file", "get_current_time", "bash"}
	if diff := cmp.Diff(want, names(s)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[:7], names(open(t, Options{DisableBash: true}, nil))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(s.Specs(), open(t, Options{}, nil).Specs()); diff != "" {
		t.Error("specs of two sets differ:", diff)
	}
	for _, spec := range s.Specs() {
		if spec.Description == "" || !json.Valid(spec.Schema) {
			t.Errorf("%s: no description, or schema %s is not JSON", spec.Name, spec.Schema)
		}
	}
	if got := len(s.Tools()); got != len(want) {
		t.Errorf("%d tools, want %d", got, len(want))
	}
}

func TestNewRefuses(t *testing.T) {
	now := func() time.Time { return noon }
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, "x")
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"no workspace", Options{Now: now}, "no workspace"},
		{"no clock", Options{Workspace: t.TempDir()}, "no clock"},
		{"workspace is a file", Options{Workspace: file, Now: now}, "not a directory"},
		{"timeout", Options{Workspace: t.TempDir(), Now: now, BashTimeout: time.Hour}, "timeout 1h0m0s"},
		{"output", Options{Workspace: t.TempDir(), Now: now, MaxOutput: 3}, "limit 3"},
	}
	for _, tt := range tests {
		_, err := New(tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestNewMakesTheWorkspace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, Options{Workspace: dir}, nil)
	ok(t, s, "write_file", o{"path": "x", "content": "y"})
	if got := get(t, filepath.Join(dir, "x")); got != "y" {
		t.Errorf("got %q", got)
	}
}

func TestAdd(t *testing.T) {
	s := open(t, Options{}, nil)
	object := `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`
	if err := s.Add(readOnlyFake{fake{"memory_search", object, says("found")}}); err != nil {
		t.Fatal(err)
	}
	if got := names(s); got[len(got)-1] != "memory_search" {
		t.Errorf("added tool is not last: %v", got)
	}
	if got := ok(t, s, "memory_search", o{"query": "x"}); got != "found" {
		t.Errorf("got %q", got)
	}
	fails(t, s, "memory_search", o{}, "query: missing, want string", "Required: query.")

	for _, tt := range []struct{ name, schema, want string }{
		{"bash", object, "registered already"},
		{"no spaces", object, `"no spaces"`},
		{"", object, `""`},
		{"x", `{`, "schema of x"},
		{"x", `{"type":"string"}`, `"string"`},
		{"x", `{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`, "schema of x"},
	} {
		err := s.Add(fake{tt.name, tt.schema, says("")})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Add(%q, %s): got %v, want %q", tt.name, tt.schema, err, tt.want)
		}
	}
}

func TestUnknownTool(t *testing.T) {
	s := open(t, Options{}, nil)
	fails(t, s, "read_flie", o{}, `"read_flie"`, "did you mean read_file?", "list_directory, grep, glob, write_file")
	fails(t, s, "readfile", o{}, "did you mean read_file?")
	fails(t, s, "list", o{}, "did you mean list_directory?")
	fails(t, s, "Bash", o{}, "did you mean bash?")
	r := run(t, s, "teleport", o{})
	if strings.Contains(r.Text(), "did you mean") {
		t.Errorf("a far-fetched guess: %s", r.Text())
	}
	fails(t, open(t, Options{DisableBash: true}, nil), "bash", o{"command": "ls"}, "bash is switched off")
}

func TestMutates(t *testing.T) {
	s := open(t, Options{}, nil)
	object := `{"type":"object"}`
	if err := errors.Join(s.Add(fake{"unsaid", object, says("")}), s.Add(readOnlyFake{fake{"search", object, says("")}})); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		"read_file": false, "list_directory": false, "get_current_time": false, "search": false, "unknown": false,
		"write_file": true, "edit_file": true, "bash": true, "unsaid": true,
	}
	got := map[string]bool{}
	for name := range want {
		got[name] = s.Mutates(call(name, o{}))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, tool := range s.Tools() {
		name := tool.Spec().Name
		if m := tool.(Mutator).Mutates(call(name, o{})); m != want[name] {
			t.Errorf("Tools: %s mutates: %v", name, m)
		}
	}
}

func TestArguments(t *testing.T) {
	s := open(t, Options{}, map[string]string{"f": "text"})
	tests := []struct {
		name, tool, args string
		want             []string
	}{
		{"missing", "read_file", `{}`, []string{"wrong arguments for read_file", "path: missing, want non-empty string", "Required: path."}},
		{"null for required", "read_file", `{"path":null}`, []string{"path: want non-empty string, got null"}},
		{"wrong type", "read_file", `{"path":"f","limit":"ten"}`, []string{`limit: want integer from 1, got "ten"`, "Required: path."}},
		{"fraction", "read_file", `{"path":"f","offset":1.5}`, []string{"offset: want integer from 1, got 1.5"}},
		{"below", "read_file", `{"path":"f","offset":0}`, []string{"offset: want integer from 1, got 0"}},
		{"above", "list_directory", `{"depth":99}`, []string{"depth: want integer from 1 to 20, got 99"}},
		{"empty", "edit_file", `{"path":"f","old_string":"","new_string":"x"}`, []string{"old_string: want non-empty string"}},
		{"unknown", "write_file", `{"path":"f","contents":"x"}`, []string{"content: missing", "contents: no such property, did you mean content?", "Required: path, content."}},
		{"letter case", "read_file", `{"path":"f","Path":"g"}`, []string{"Path: no such property, did you mean path?"}},
		{"two wrongs", "edit_file", `{"path":1,"old_string":2}`, []string{"path: want", "old_string: want", "new_string: missing"}},
		{"cut", "read_file", `{"path":"f`, []string{"arguments were not valid JSON:", `{"path":"f`, "Required: path."}},
		{"array", "read_file", `["f"]`, []string{"arguments were not valid JSON:"}},
		{"null", "read_file", `null`, []string{"arguments were not valid JSON: not an object"}},
		{"number too large", "read_file", `{"path":"f","limit":1e999}`, []string{"arguments were not valid JSON:"}},
		{"marker", "read_file", `{"_raw":"{\"path\": oops}"}`, []string{"arguments were not valid JSON: invalid character 'o'", `got: {"path": oops}`, "Required: path."}},
		{"marker of a non-object", "get_current_time", `{"_raw":"3"}`, []string{"arguments were not valid JSON:", "got: 3", "Required: none."}},
		{"nothing", "write_file", ``, []string{"path: missing", "content: missing"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fails(t, s, tt.tool, tt.args, tt.want...)
		})
	}
	if got := get(t, filepath.Join(s.ws.dir, "f")); got != "text" {
		t.Errorf("a wrong call changed the file: %q", got)
	}
}

// What JSON Schema calls an integer, and what models write for "not given",
// is accepted.
func TestArgumentsAccepted(t *testing.T) {
	s := open(t, Options{}, map[string]string{"f": "one\ntwo\nthree\n"})
	tests := []struct{ tool, args, want string }{
		{"read_file", `{"path":"f","offset":2.0,"limit":1e0}`, "two\n[lines 2 to 2 of 3; read on with offset 3]"},
		{"read_file", `{"path":"f","offset":null,"limit":null}`, "one\ntwo\nthree\n"},
		{"read_file", `{"path":"f","offset":3,"limit":1e300}`, "three\n"},
		{"get_current_time", ``, "2025-03-01T12:00:00Z (Saturday, UTC)"},
		{"get_current_time", `{}`, "2025-03-01T12:00:00Z (Saturday, UTC)"},
		{"list_directory", `{"path":""}`, "f  14 B\n"},
	}
	for _, tt := range tests {
		if got := ok(t, s, tt.tool, tt.args); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.tool, tt.args, got, tt.want)
		}
	}
}

// A schema may say more than this package can put into words; the validator's
// own message is used then.
func TestArgumentsOfOtherSchemas(t *testing.T) {
	s := open(t, Options{}, nil)
	schema := `{"type":"object","$defs":{"n":{"type":"integer"}},
		"properties":{"a":{"$ref":"#/$defs/n"},"b":{"enum":["x","y"]},"c":{"type":["string","null"]}},
		"anyOf":[{"required":["a"]},{"required":["b"]}]}`
	if err := s.Add(fake{"t", schema, says("fine")}); err != nil {
		t.Fatal(err)
	}
	ok(t, s, "t", `{"a":1,"c":null,"more":true}`)
	fails(t, s, "t", `{"a":"one"}`, "a", `"integer"`, "Required: none.")
	fails(t, s, "t", `{"b":"z"}`, `b: want a value out of ["x","y"], got "z"`)
	fails(t, s, "t", `{}`, "anyOf")
}

func TestResultsAreTidy(t *testing.T) {
	s := open(t, Options{MaxOutput: 1000}, nil)
	picture := llm.Image{MIME: "image/png", Data: "AA=="}
	results := map[string]llm.ToolResult{
		"empty":   {},
		"blank":   {Blocks: []llm.Block{llm.Text{Text: " \n"}}},
		"invalid": {CallID: "other", Name: "other", Blocks: []llm.Block{llm.Text{Text: "a\xffb\x00c"}}},
		"long":    {Blocks: []llm.Block{llm.Text{Text: strings.Repeat("é", 5000)}}},
		"image":   {Blocks: []llm.Block{llm.Text{}, picture}},
	}
	for name, r := range results {
		if err := s.Add(fake{name, `{"type":"object"}`, func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return r, nil }}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"empty": "(no output)", "blank": "(no output)", "invalid": "a\uFFFDb\u2400c"} {
		if got := ok(t, s, name, o{}); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	want := strings.Repeat("é", 250) + "\n[... 9000 of 10000 bytes cut ...]\n" + strings.Repeat("é", 250)
	if got := ok(t, s, "long", o{}); got != want {
		t.Errorf("long: got %q", got)
	}
	r, err := s.Run(t.Context(), call("image", o{}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]llm.Block{picture}, r.Blocks); diff != "" {
		t.Error("image:", diff)
	}
}

func TestErrorEndsTheTurn(t *testing.T) {
	s := open(t, Options{}, nil)
	broken := errors.New("broken invariant")
	if err := s.Add(fake{"bad", `{"type":"object"}`, func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.ToolResult{}, broken }}); err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context(), call("bad", o{}))
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "bad") {
		t.Errorf("got %v", err)
	}
	if promise(t, r, "bad"); !r.IsError {
		t.Error("the result of an error is not an error")
	}
}

func TestCancelled(t *testing.T) {
	s := open(t, Options{Allowed: []string{"true"}}, map[string]string{"f": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, args := range map[string]o{
		"read_file": {"path": "f"}, "list_directory": {}, "bash": {"command": "true"},
		"write_file": {"path": "g", "content": "x"}, "edit_file": {"path": "f", "old_string": "x", "new_string": "y"},
	} {
		r, err := s.Run(ctx, call(name, args))
		if !errors.Is(err, context.Canceled) || !r.IsError {
			t.Errorf("%s: got %v, %v", name, r, err)
		}
		promise(t, r, name)
	}
	if _, err := os.Stat(filepath.Join(s.ws.dir, "g")); err == nil || get(t, filepath.Join(s.ws.dir, "f")) != "x" {
		t.Error("a cancelled call wrote")
	}
}

// A call that waits for another one's write gives up when it is cancelled.
func TestCancelledWhileWaiting(t *testing.T) {
	s := open(t, Options{}, nil)
	unlock, err := s.ws.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Run(ctx, call("write_file", o{"path": "f", "content": "x"})); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestClosed(t *testing.T) {
	s := open(t, Options{}, map[string]string{"f": "x"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := s.Run(t.Context(), call("read_file", o{"path": "f"})); !errors.Is(err, errClosed) {
		t.Errorf("got %v, want errClosed", err)
	}
}

func TestGetCurrentTime(t *testing.T) {
	s := open(t, Options{}, nil)
	for zone, want := range map[string]string{
		"UTC":              "2025-03-01T12:00:00Z (Saturday, UTC)",
		"Europe/Berlin":    "2025-03-01T13:00:00+01:00 (Saturday, Europe/Berlin)",
		"Pacific/Auckland": "2025-03-02T01:00:00+13:00 (Sunday, Pacific/Auckland)",
	} {
		if got := ok(t, s, "get_current_time", o{"timezone": zone}); got != want {
			t.Errorf("%s: got %q, want %q", zone, got, want)
		}
	}
	fails(t, s, "get_current_time", o{"timezone": "Mars/Base"}, `"Mars/Base"`, "Europe/Berlin")
	fails(t, s, "get_current_time", o{"timezone": "../../etc/passwd"}, "unknown time zone")
}

func TestCapture(t *testing.T) {
	tests := []struct {
		name   string
		writes []string
		want   string
	}{
		{"nothing", nil, ""},
		{"short", []string{"ab", "cd"}, "abcd"},
		{"exact", []string{"0123456789"}, "0123456789"},
		{"one more", []string{"0123456789x"}, "01234\n[... 1 of 11 bytes cut ...]\n6789x"},
		{"bytes", strings.Split("abcdefghijklmnopqrstuvwxyz", ""), "abcde\n[... 16 of 26 bytes cut ...]\nvwxyz"},
		{"one long", []string{"ab", strings.Repeat("-", 100), "yz"}, "ab---\n[... 94 of 104 bytes cut ...]\n---yz"},
		{"runes are not split", []string{"ééééééééé"}, "éé\n[... 10 of 18 bytes cut ...]\néé"},
	}
	for _, tt := range tests {
		c := newCapture(10)
		for _, w := range tt.writes {
			if n, err := c.Write([]byte(w)); n != len(w) || err != nil {
				t.Errorf("%s: Write: %d, %v", tt.name, n, err)
			}
		}
		if got := c.String(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Calls of every kind at once, for the race detector and the lock.
func TestParallel(t *testing.T) {
	s := open(t, Options{Ask: ApproverFunc(func(context.Context, Request) (Decision, error) { return Always, nil })},
		map[string]string{"log": "", "edited": strings.Repeat("x\n", 20)})
	const n = 20
	done := make(chan string, 4*n)
	for i := range n {
		do := func(name string, args any) {
			r, err := s.Run(t.Context(), call(name, args))
			if err != nil || r.IsError {
				done <- fmt.Sprintf("%s: %v %s", name, err, r.Text())
				return
			}
			done <- ""
		}
		go do("write_file", o{"path": "log", "content": fmt.Sprintf("line %d\n", i), "append": true})
		go do("edit_file", o{"path": "edited", "old_string": strings.Repeat("x\n", 1), "new_string": "x" + fmt.Sprint(i) + "\n", "replace_all": true})
		go do("read_file", o{"path": "log"})
		go do("list_directory", o{})
	}
	for range 4 * n {
		if msg := <-done; msg != "" && !strings.Contains(msg, "not found") {
			t.Error(msg)
		}
	}
	if got := strings.Count(get(t, filepath.Join(s.ws.dir, "log")), "line "); got != n {
		t.Errorf("%d of %d lines were kept", got, n)
	}
}

// Calls that cannot be run are told apart from those that fail, and the model is
// told how it called.
func TestCallsThatCannotBeRun(t *testing.T) {
	s := open(t, Options{}, nil)
	for _, c := range []struct {
		name, args string
		runs       bool
		says       string
	}{
		{"read_file", `{"path":"none"}`, true, ""},
		{"get_current_time", ``, true, ""},
		{"read_file", `{"_raw":"{\"path\": "}`, false, ""},
		{"read_file", `{}`, false, "path"},
		{"", `{}`, false, "the call has no name"},
		{"functions.read_file", `{}`, false, `there is no tool "functions.read_file": did you mean read_file?`},
		{"读文件", `{}`, false, `there is no tool "读文件"`},
	} {
		call := llm.ToolCall{ID: "c1", Name: c.name, Args: []byte(c.args)}
		if why := s.Check(call); (why == "") != c.runs {
			t.Errorf("Check(%q, %s) = %q", c.name, c.args, why)
		}
		if r, err := s.Run(t.Context(), call); err != nil || !c.runs && (!r.IsError || !strings.Contains(r.Text(), c.says)) {
			t.Errorf("Run(%q, %s) = %q, %v; want %q", c.name, c.args, r.Text(), err, c.says)
		}
	}
}

func noonClock() time.Time { return noon }
