package session

import (
	"encoding/json"
	"time"

	"goclaw/llm"
)

// ID names one conversation: one log.
type ID string

// Seq is a position in a log: 1, 2, 3 ... Order is Seq: never time, never an
// id, for clocks run back and ids are random.
type Seq int64

// Record is one entry of a log.
//
// ID is unique within its log, not across logs: forks and rewinds copy
// entries with their ids. Parent is the ID of the record that this one
// continues, "" for the first of a branch.
//
// Raw is the line that the record was read from, without its line end; it is
// nil for a record made here. Whoever writes a record with Raw writes those
// bytes, so that fields this version does not know survive. Changing Body
// means setting Raw to nil.
type Record struct {
	Seq    Seq
	ID     string
	Parent string
	Link   Link
	Side   bool // never becomes the leaf (OpenClaw's appendMode "side")
	Time   time.Time
	Body   Body
	Raw    json.RawMessage
}

// Link says what a line said about its parent. Records made here are Given.
type Link uint8

const (
	Given  Link = iota // Parent holds: an id, or "" for null
	Absent             // the line has no parentId: it continues the leaf
	Blank              // parentId is blank: the line belongs nowhere
)

// Body is what a record says: one of the types below.
type Body interface{ body() }

// Header opens a log. It is always the first record and not part of the tree.
type Header struct {
	Version int
	ID      ID
	Key     Key
	CWD     string
	Parent  string // the session that this one was forked from, if any
	Origin  Origin
}

// Origin says where an inherited or forked log came from. It is the zero
// value for a log begun here.
type Origin struct {
	Program string `json:"program,omitempty"` // openclaw, pi, claw0, goclaw ...
	Path    string `json:"path,omitempty"`
	Key     Key    `json:"key,omitempty"`
	ID      ID     `json:"id,omitempty"`
	Seq     Seq    `json:"seq,omitempty"` // the last record taken from there
}

// Message is something said: by the user, by the model, or by a tool. A
// tool's result is a user message with one ToolResult block.
type Message struct {
	llm.Message
	At       time.Time // when it was said; the zero time if unknown
	Provider string
	API      string
	Model    string
	Usage    llm.Usage
	Stop     llm.Stop
	Error    string
	Cut      bool            // an answer to a request whose long tool results were cut: Usage is not of all that is there
	Excluded bool            // part of the history, never sent to a model
	Details  json.RawMessage // for people and programs, never sent
}

// Synthetic reports whether a program wrote m in a model's name, for people
// only. OpenClaw does so.
func (m Message) Synthetic() bool {
	return m.Provider == "openclaw" && (m.Model == "gateway-injected" || m.Model == "delivery-mirror")
}

// Shell is a command that the user ran beside the conversation.
type Shell struct {
	Command, Output string
	ExitCode        *int
	Cancelled       bool
	Truncated       bool
	FullOutput      string // where the whole output is, if truncated
	Excluded        bool
	At              time.Time
}

// Compaction folds the past: instead of what came before FirstKept, Summary
// is sent. Nothing is removed by it.
//
// A compaction in the middle of a turn keeps the question that is being worked
// on: FirstKept is the question, Resume is where what is kept goes on. Of what
// lies between only the user's own words are sent; Summary tells of the rest.
type Compaction struct {
	Summary        string
	FirstKept      string // id of the first record still sent as it is
	Resume         string // "": everything from FirstKept on is kept
	TokensBefore   int
	TokensAfter    int    // 0: not known
	FromCheckpoint string // id of the checkpoint that the summary is from
	Details        json.RawMessage
	Usage          llm.Usage
}

// Undo takes the compaction Target out of effect.
type Undo struct{ Target string }

// Checkpoint is a structured summary of everything up to the record Covers,
// made ahead of time so that folding needs no model call.
type Checkpoint struct {
	Summary   string    `json:"summary"`
	Topics    []string  `json:"topics,omitempty"`
	Decisions []string  `json:"decisions,omitempty"`
	Questions []string  `json:"questions,omitempty"`
	Covers    string    `json:"covers"`
	Tokens    int       `json:"tokens"`
	Messages  int       `json:"messages"`
	Model     string    `json:"model,omitempty"`
	Usage     llm.Usage `json:"usage,omitzero"` // what making it took
}

// Notice is a warning that was given to the model about its window.
type Notice struct {
	Percent int    `json:"percent"`
	Text    string `json:"text"`
	As      string `json:"as"`             // system, user or marked
	Once    bool   `json:"once,omitempty"` // for the system, while its turn lasts and no longer
}

// BranchSummary tells of a branch that the conversation came back from.
type BranchSummary struct {
	From    string
	Summary string
	Details json.RawMessage
}

// CustomMessage is sent to the model as the user's, on a program's behalf.
type CustomMessage struct {
	Type    string
	Blocks  []llm.Block
	Display bool
	Details json.RawMessage
	At      time.Time
}

// Custom is a program's own data. It is never sent.
type Custom struct {
	Type string
	Data json.RawMessage
}

// ModelChange says which model is asked from here on. Chosen is set if the
// user chose it here; other programs write a change for reasons of their own.
type ModelChange struct {
	Provider, Model string
	Chosen          bool
}

// Name is the model as people write it: provider/model, or the provider alone
// if it has but one model of the same name.
func (c ModelChange) Name() string {
	if c.Provider == c.Model {
		return c.Model
	}
	return c.Provider + "/" + c.Model
}

// ThinkingChange says how much the model shall think from here on.
type ThinkingChange struct{ Level string }

// Label marks the record Target; an empty Label takes the mark away.
type Label struct{ Target, Label string }

// Pin is the label of a record that folding keeps word for word.
const Pin = "pin"

// Title names the session.
type Title struct{ Title string }

// Moved gives the session another key: its owner calls it so from now on.
type Moved struct{ Key Key }

// Reset begins anew: nothing before it is sent, except from FirstKept on if
// that is set.
type Reset struct{ Reason, FirstKept string }

// Leaf moves the end of the live branch to Target. AppendParent, if set, is
// what the writer names as parent of what comes next.
type Leaf struct{ Target, AppendParent string }

// Edit replaces what is sent of the record Target by Blocks, or drops it.
type Edit struct {
	Target string
	Drop   bool
	Blocks []llm.Block
}

// Unknown is a record of a kind that this version does not know. Its bytes
// are in Record.Raw.
type Unknown struct{ Type string }

func (Header) body()         {}
func (Message) body()        {}
func (Shell) body()          {}
func (Compaction) body()     {}
func (Undo) body()           {}
func (Checkpoint) body()     {}
func (Notice) body()         {}
func (BranchSummary) body()  {}
func (CustomMessage) body()  {}
func (Custom) body()         {}
func (ModelChange) body()    {}
func (ThinkingChange) body() {}
func (Label) body()          {}
func (Title) body()          {}
func (Moved) body()          {}
func (Reset) body()          {}
func (Leaf) body()           {}
func (Edit) body()           {}
func (Unknown) body()        {}

// IsTurn reports whether b is something that a person said: a user message
// that is no tool result.
func IsTurn(b Body) bool {
	m, ok := b.(Message)
	if !ok || m.Role != llm.User {
		return false
	}
	for _, bl := range m.Blocks {
		if _, ok := bl.(llm.ToolResult); ok {
			return false
		}
	}
	return true
}
