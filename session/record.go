package session

import (
	"encoding/json"
	"time"

	"goclaw/llm"
)

// ID names one conversation: one log.
type ID string

// Seq is the number of a record in its log: 1, 2, 3 ... It alone orders
// records: clocks run back, and ids are random.
type Seq int64

// Record is one entry of a log.
//
// ID is unique within its log, not across logs: forks copy records with their
// ids. Parent is the ID of the record that this one
// continues, "" for the first of a branch.
//
// Raw is the line that the record was read from, without its line end; nil for
// a record made here. A store writes those bytes again, so that fields unknown
// to this version survive. Set Raw to nil when you change Body.
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
	Given  Link = iota // Parent says it: an id, or "" for null
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

// Origin says where an imported or forked log came from. It is zero for a log
// begun here.
type Origin struct {
	Program string `json:"program,omitempty"` // openclaw, pi, claw0, goclaw ...
	Path    string `json:"path,omitempty"`
	Key     Key    `json:"key,omitempty"`
	ID      ID     `json:"id,omitempty"`
	Seq     Seq    `json:"seq,omitempty"` // the last record taken from there
	// Mark is one of the marks below, or "". In Info it is the latest.
	Mark string `json:"mark,omitempty"`
}

// Marks say what is special about another program's session.
const (
	Subagent = "subagent" // another session gave it its task: lists leave it out
	Archived = "archived" // the user put it away there
	Deleted  = "deleted"  // the user deleted it there
)

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
	// Continues is the id of the record that holds the beginning of this answer, if
	// results of its calls lie between: another program ran them while the answer
	// arrived. Both are sent as one answer.
	Continues string
	Cut       bool            // answers a request whose long tool results were cut: Usage is not of the whole context
	Excluded  bool            // stays in the history, and is never sent to a model
	Details   json.RawMessage // for people and programs, never sent
}

// Synthetic reports whether a program wrote m in a model's name, for people
// only, as OpenClaw does.
func (m Message) Synthetic() bool {
	return m.Provider == "openclaw" && (m.Model == "gateway-injected" || m.Model == "delivery-mirror")
}

// Shell is a command that the user ran outside the conversation.
type Shell struct {
	Command, Output string
	ExitCode        *int
	Cancelled       bool
	Truncated       bool
	FullOutput      string // where the whole output is, if truncated
	Excluded        bool
	At              time.Time
}

// Compaction replaces what came before FirstKept with Summary in what is sent.
// It removes nothing.
//
// A compaction in the middle of a turn keeps the question that is being worked
// on: FirstKept is the question, and everything from Resume on is sent. Of what
// lies between only the user's own words are sent; Summary covers the rest.
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

// Usage is what a call to a model took, where no other record tells: its answer
// was recorded before that was known, or there is none.
type Usage struct {
	Kind, Note      string // why, in the words of the program that made the call
	Provider, Model string
	Usage           llm.Usage
}

// Undo takes the compaction Target out of effect.
type Undo struct{ Target string }

// Checkpoint is a structured summary of everything up to the record Covers,
// made in advance so that a compaction needs no model call.
type Checkpoint struct {
	Summary   string    `json:"summary"`
	Topics    []string  `json:"topics,omitempty"`
	Decisions []string  `json:"decisions,omitempty"`
	Questions []string  `json:"questions,omitempty"`
	Covers    string    `json:"covers"`
	Tokens    int       `json:"tokens"`
	Messages  int       `json:"messages"`
	Model     string    `json:"model,omitempty"`
	Usage     llm.Usage `json:"usage,omitzero"` // tokens spent on making it
}

// Notice tells the model how full its window is.
type Notice struct {
	Percent int    `json:"percent"`
	Text    string `json:"text"`
	As      string `json:"as"`             // system, user or marked
	Once    bool   `json:"once,omitempty"` // for the system, and only while its turn lasts
}

// BranchSummary summarises a branch that the conversation came back from.
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

// ModelChange says which model is asked from here on. Chosen is set if the user
// chose it in goclaw; other programs write changes for their own reasons.
type ModelChange struct {
	Provider, Model string
	Chosen          bool
}

// Name is the model as people write it: provider/model, or one word if both are
// the same.
func (c ModelChange) Name() string {
	if c.Provider == c.Model {
		return c.Model
	}
	return c.Provider + "/" + c.Model
}

// ThinkingChange says how much the model thinks from here on.
type ThinkingChange struct{ Level string }

// Label marks the record Target; an empty Label takes the mark away.
type Label struct{ Target, Label string }

// Pin is the label of a record that every compaction keeps word for word.
const Pin = "pin"

// Title names the session.
type Title struct{ Title string }

// Moved gives the session another key.
type Moved struct{ Key Key }

// Marked gives the session another mark, "" for none: the user has archived it in
// the program that it comes from, for example.
type Marked struct{ Mark string }

// Reset starts over: nothing before it is sent, except from FirstKept on if that
// is set.
type Reset struct{ Reason, FirstKept string }

// Leaf moves the end of the live branch to Target. AppendParent, if set, is the
// parent that the writer names in its next record.
type Leaf struct{ Target, AppendParent string }

// Edit replaces what is sent of the record Target with Blocks, or drops it.
type Edit struct {
	Target string
	Drop   bool
	Blocks []llm.Block
}

// Refused says that an API refuses one block of the record Target, and will
// refuse it in every later request. A text that says so is sent in its place.
// Block is its index among the blocks of the record, after the last Edit of it.
type Refused struct {
	Target string
	Block  int
	Why    string // the API's words
}

// Unknown is a record of a kind that this version does not know. Its bytes
// are in Record.Raw.
type Unknown struct{ Type string }

func (Header) body()         {}
func (Message) body()        {}
func (Shell) body()          {}
func (Compaction) body()     {}
func (Usage) body()          {}
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
func (Marked) body()         {}
func (Reset) body()          {}
func (Leaf) body()           {}
func (Edit) body()           {}
func (Refused) body()        {}
func (Unknown) body()        {}

// IsTurn reports whether b is a message of a person: a user message that is no
// tool result. It begins a turn.
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
