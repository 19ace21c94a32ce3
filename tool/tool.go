// Package tool holds the tools that an agent can call: read_file,
// list_directory, grep, glob, write_file, edit_file, get_current_time and bash, and the
// Set that they are registered in, together with any others.
//
// Files are reached only below one directory, the workspace: an os.Root holds
// it, so that neither `..` nor a symbolic link leads out. A Fence keeps them out
// of what is private to the program, also below the workspace. bash is held by
// neither; that is why it asks first.
//
// Whatever goes wrong inside a tool is a result that the model can read.
// Results are valid UTF-8, never empty, and capped, with a note of what was
// cut and how to get at it.
package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw/internal/text"
	"goclaw/llm"
)

// errClosed: the Set was closed.
var errClosed = errors.New("tool: set is closed")

// Tool is something a model can call.
//
// Run gets arguments that fit the schema of Spec. A tool that fails says so in
// a result; an error ends the turn, and is for a cancelled context or a broken
// invariant only. Run may be called by several goroutines at once.
type Tool interface {
	Spec() llm.ToolSpec
	Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error)
}

// Mutator is a Tool that knows which of its calls change something. A Tool
// without it is taken to change something with every call.
type Mutator interface {
	Mutates(call llm.ToolCall) bool
}

// Options of a Set. Workspace and Now are required.
type Options struct {
	Workspace string           // the directory that files are reached in; made if it is missing
	Memory    string           // the directory that MEMORY.md and memory/ are in; "": the workspace
	Now       func() time.Time // the clock, for get_current_time

	Fence Fence // files that the tools refuse, wherever the workspace is

	Mode        Mode          // what is done without asking
	Ask         Approver      // allows the rest; nil: only what Mode, Rules and Allowed allow is done
	Rules       []Rule        // what was allowed before
	Allowed     []string      // the same for commands, exactly as written
	DisableBash bool          // bash is not offered at all
	BashTimeout time.Duration // of a command that names none; 0: 2 minutes, at most 10
	Sandbox     Sandbox       // confines commands
	Shell       string        // path of the shell; "": bash or else sh, on the PATH of Env
	Env         []string      // environment of commands ("NAME=value"), from which secrets are taken out; nil: a PATH only

	MaxOutput int // bytes of text in a result, notes not counted; 0: 50 KiB
}

const (
	defaultMaxOutput   = 50 << 10
	minMaxOutput       = 256
	defaultBashTimeout = 2 * time.Minute
	maxBashTimeout     = 10 * time.Minute
)

// Set is a registry of tools. It is safe for concurrent use.
type Set struct {
	ws    *workspace
	bash  *bash // nil if disabled
	guard *guard
	max   int

	mu     sync.RWMutex
	order  []*entry
	byName map[string]*entry
	closed bool
}

// New returns a Set with the file tools, the clock and, unless disabled, bash.
// Close releases it.
func New(o Options) (*Set, error) {
	switch {
	case o.Workspace == "":
		return nil, errors.New("tool: no workspace given")
	case o.Now == nil:
		return nil, errors.New("tool: no clock given")
	case o.BashTimeout < 0 || o.BashTimeout > maxBashTimeout:
		return nil, fmt.Errorf("tool: bash timeout %s is not between 0 and %s", o.BashTimeout, maxBashTimeout)
	case o.MaxOutput < 0 || o.MaxOutput > 0 && o.MaxOutput < minMaxOutput:
		return nil, fmt.Errorf("tool: output limit %d is below %d bytes", o.MaxOutput, minMaxOutput)
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = defaultMaxOutput
	}
	if o.BashTimeout == 0 {
		o.BashTimeout = defaultBashTimeout
	}
	ws, err := openWorkspace(o.Workspace, o.Fence)
	if err != nil {
		return nil, err
	}
	if o.Memory != "" && !sameDir(o.Memory, ws.dir) {
		if ws.memory, err = openWorkspace(o.Memory, o.Fence); err != nil {
			ws.close()
			return nil, err
		}
	}
	s := &Set{ws: ws, guard: newGuard(o), max: o.MaxOutput, byName: map[string]*entry{}}
	tools := []Tool{
		readFile{ws, o.MaxOutput},
		listDirectory{ws, o.MaxOutput},
		grep{ws, o.MaxOutput},
		glob{ws},
		writeFile{ws},
		editFile{ws},
		clock{o.Now},
	}
	if !o.DisableBash {
		s.bash = newBash(ws.dir, o, s.Mode)
		tools = append(tools, s.bash)
	}
	for _, t := range tools {
		if err := s.Add(t); err != nil {
			ws.close()
			return nil, err
		}
	}
	return s, nil
}

// Every API accepts these names.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Add registers t after the other tools. It refuses a name that is
// taken or that an API would refuse, and a schema that cannot be used.
func (s *Set) Add(t Tool) error {
	spec := t.Spec()
	if !toolName.MatchString(spec.Name) {
		return fmt.Errorf("tool: name %q is not 1 to 64 of a-z, A-Z, 0-9, _ and -", spec.Name)
	}
	schema, err := compile(spec)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.byName[spec.Name]; taken {
		return fmt.Errorf("tool: %s is registered already", spec.Name)
	}
	e := &entry{tool: t, spec: spec, schema: schema, guard: s.guard, max: s.max}
	s.byName[spec.Name] = e
	s.order = append(s.order, e)
	return nil
}

// Specs describes the tools in the order of their registration, which is the
// same in every process: a prompt prefix made of them stays stable.
func (s *Set) Specs() []llm.ToolSpec {
	s.mu.RLock()
	defer s.mu.RUnlock()
	specs := make([]llm.ToolSpec, len(s.order))
	for i, e := range s.order {
		specs[i] = e.spec
	}
	return specs
}

// Tools returns the tools in the order of Specs. Each validates its arguments
// and tidies its result as Run does.
func (s *Set) Tools() []Tool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	tools := make([]Tool, len(s.order))
	for i, e := range s.order {
		tools[i] = e
	}
	return tools
}

// Run runs the tool that call names. A wrong name and wrong arguments are
// results. If it returns an error, the result still answers the call and holds
// what is known so far.
func (s *Set) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	s.mu.RLock()
	e, closed := s.byName[call.Name], s.closed
	s.mu.RUnlock()
	switch {
	case closed:
		return llm.Failed(call, "the tools are shut down"), errClosed
	case ctx.Err() != nil:
		return llm.Failed(call, "interrupted before it began"), ctx.Err()
	case e == nil:
		return s.unknown(call), nil
	}
	return e.Run(ctx, call)
}

// Check says why call cannot be run, whatever the state of the workspace: its
// name is wrong, or its arguments are. It is "" if neither is.
func (s *Set) Check(call llm.ToolCall) string {
	s.mu.RLock()
	e := s.byName[call.Name]
	s.mu.RUnlock()
	if e == nil {
		return fmt.Sprintf("there is no tool %q", call.Name)
	}
	return e.check(call.Args)
}

// Mutates reports whether call may change something outside the conversation.
// Calls that do not may run at the same time as each other. A call that will
// be refused for its name changes nothing.
func (s *Set) Mutates(call llm.ToolCall) bool {
	s.mu.RLock()
	e := s.byName[call.Name]
	s.mu.RUnlock()
	return e != nil && e.Mutates(call)
}

// Rules returns what is done without asking, whatever the mode: the rules of
// Options and those that were allowed since.
func (s *Set) Rules() []Rule {
	_, rules := s.guard.now()
	return slices.Clone(rules)
}

// Allowed returns the commands that bash runs without asking because they were
// allowed exactly as written, sorted.
func (s *Set) Allowed() []string {
	var out []string
	for _, r := range s.Rules() {
		if r.Exact != "" {
			out = append(out, r.Exact)
		}
	}
	slices.Sort(out)
	return out
}

// Mode returns what is done without asking.
func (s *Set) Mode() Mode {
	mode, _ := s.guard.now()
	return mode
}

// SetMode changes what is done without asking, beginning with the next call.
func (s *Set) SetMode(m Mode) {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	s.guard.mode = m
}

// Close releases the workspace. Commands that run are not waited for: cancel
// their contexts. Closing twice is harmless.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.bash != nil {
		s.bash.close()
	}
	return s.ws.close()
}

func (s *Set) unknown(call llm.ToolCall) llm.ToolResult {
	if call.Name == "bash" && s.bash == nil {
		return llm.Failed(call, "bash is switched off here; the file tools still work")
	}
	var names []string
	for _, spec := range s.Specs() {
		names = append(names, spec.Name)
	}
	text := fmt.Sprintf("there is no tool %q", call.Name)
	if strings.TrimSpace(call.Name) == "" {
		text = "the call has no name: nothing was run. Call again with the name of a tool"
	}
	if near := nearest(call.Name, names); near != "" {
		text += fmt.Sprintf(": did you mean %s?", near)
	}
	return llm.Failed(call, clean(text+"\nTools: "+strings.Join(names, ", ")))
}

// entry is a registered tool: the one place where arguments are checked and
// results tidied.
type entry struct {
	tool   Tool
	spec   llm.ToolSpec
	schema *schema
	guard  *guard
	max    int
}

func (e *entry) Spec() llm.ToolSpec { return e.spec }

func (e *entry) Mutates(call llm.ToolCall) bool {
	return mutates(e.tool, call)
}

func (e *entry) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	if len(call.Args) == 0 {
		call.Args = []byte("{}") // some models send nothing where nothing is needed
	}
	if problem := e.check(call.Args); problem != "" {
		return llm.Failed(call, clean(problem)), nil
	}
	refused, err := e.guard.permit(ctx, e.tool, call)
	if err != nil {
		return llm.Failed(call, "interrupted before it began"), fmt.Errorf("tool %s: %w", call.Name, err)
	}
	if refused != "" {
		return llm.Failed(call, clean(refused)), nil
	}
	if begun := llm.ProgressOf(ctx).Begun; begun != nil {
		begun()
	}
	r, err := e.tool.Run(ctx, call)
	r.CallID, r.Name = call.ID, call.Name
	r.Blocks = e.tidy(r.Blocks)
	if err != nil {
		r.IsError = true
		return r, fmt.Errorf("tool %s: %w", call.Name, err)
	}
	return r, nil
}

// check says what is wrong with arguments, or "".
func (e *entry) check(args []byte) string {
	if len(args) == 0 {
		args = []byte("{}")
	}
	return e.schema.check(args)
}

// The tools of this package cap themselves, with better notes; noteRoom is
// what those notes may take.
const noteRoom = 1 << 10

func (e *entry) tidy(blocks []llm.Block) []llm.Block {
	out := make([]llm.Block, 0, len(blocks))
	for _, b := range blocks {
		t, ok := b.(llm.Text)
		if !ok {
			out = append(out, b)
			continue
		}
		t.Text = clean(t.Text)
		if len(t.Text) > e.max+noteRoom {
			t.Text = text.Middle(t.Text, e.max/2, e.max/2)
		}
		if strings.TrimSpace(t.Text) != "" {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		out = append(out, llm.Text{Text: "(no output)"})
	}
	return out
}

func openWorkspace(dir string, fence Fence) (*workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("tool: workspace %s: %w", dir, err)
	}
	if fence.survey().encloses(abs) {
		return nil, fmt.Errorf("tool: %s cannot be the workspace: it is private to the program; name another folder", abs)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("tool: workspace: %w", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("tool: workspace: %w", err)
	}
	bases := []string{abs}
	if real, err := filepath.EvalSymlinks(abs); err == nil && !slices.Contains(bases, real) {
		bases = append(bases, real)
	}
	w := &workspace{root: root, dir: abs, bases: bases, fence: fence, beside: &readable{open: map[string]*workspace{}}, writing: make(chan struct{}, 1), patience: 10 * time.Second}
	w.memory = w
	return w, nil
}

func sameDir(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return filepath.Clean(a) == b
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
