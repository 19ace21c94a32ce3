package session

import (
	"time"

	"goclaw/llm"
)

// Info is what a log adds up to, without its messages: a row of a list. It is
// a projection; it can be thrown away and computed again.
//
// Key, Title, Records, Compactions, Spent and the times are about the whole
// log. Turns, Model, Thinking, Used, Leaf and KeepFrom are about the live
// branch.
type Info struct {
	ID      ID
	Key     Key
	Title   string
	Origin  Origin
	Parent  string
	CWD     string
	Created time.Time
	Updated time.Time // time of the latest record that has one, but not before Created: a fork of old records is new
	Trashed time.Time // zero unless it is in the trash; the store knows it, not the log

	Records     int       // how many
	Last        Seq       // the latest record
	Compactions int       // how many, undone ones included
	Spent       llm.Usage // tokens only: what they cost is in the records

	Turns    int // messages of a person
	Provider string
	Model    string
	Thinking string
	Used     int    // tokens in the context after the last reported call; 0: not known since a compaction
	Leaf     string // the record that the next one continues

	// KeepFrom is the first record that the context needs: a reader that
	// begins there and has Info needs nothing else. LastBend is the latest
	// record that did not simply continue the one before. KeepFrom is 1 unless
	// it comes after LastBend.
	KeepFrom Seq
	LastBend Seq
}

// ModelName returns "provider/model", or what is known of it.
func (in Info) ModelName() string {
	if in.Provider == "" || in.Model == "" {
		return in.Provider + in.Model
	}
	return in.Provider + "/" + in.Model
}

// Mirror reports whether in is the log of another program's session, taken
// from a file that the program may go on writing. It is for reading only: what
// is said in it is said in a continuation.
func (in Info) Mirror() bool { return in.Origin.Path != "" }

// Subagent reports whether in did a task for another session, as the program that
// it comes from says. Lists leave it out, and it never stands for the other one.
func (in Info) Subagent() bool { return in.Origin.Mark == Subagent }

// Add counts r, which must be the record after in.Last, and reports whether
// that was possible without the rest of the log. If not, in is unchanged and
// the log must be outlined. find returns the number of the record with an id,
// or 0.
//
// Add and Outline agree; stores use Add for most appends.
func (in *Info) Add(r Record, find func(id string) Seq) bool {
	if r.Seq != in.Last+1 {
		return false
	}
	next := *in
	if r.Seq > 1 {
		if _, again := r.Body.(Header); again {
			return false
		}
		if r.ID == "" || r.Side || r.Link != Given || r.Parent != in.Leaf || !canonical(r.Body) {
			return false
		}
	} else if _, ok := r.Body.(Header); !ok {
		return false
	}
	p := path{turns: in.Turns, provider: in.Provider, model: in.Model, thinking: in.Thinking, used: in.Used, keep: in.KeepFrom}
	switch b := r.Body.(type) {
	case Undo:
		return false
	case Compaction, Reset:
		first := firstKept(b)
		at := Seq(0)
		if first == r.ID {
			at = r.Seq
		} else if first != "" {
			at = find(first)
		}
		if at != 0 && at <= in.LastBend {
			return false
		}
		p = p.after(r)
		p.keep = at
		if at == 0 {
			p.keep = r.Seq
		}
	case Header, Leaf:
	default:
		p = p.after(r)
	}
	if r.Seq > 1 && find(r.ID) != 0 {
		return false
	}
	next.log(r)
	next.setPath(p)
	if r.Seq > 1 {
		next.Leaf = r.ID
	}
	*in = next
	return true
}

// log counts r in what is about the whole log.
func (in *Info) log(r Record) {
	in.Records++
	in.Last = r.Seq
	if !r.Time.IsZero() { // other programs write lines without a time
		in.Updated = r.Time
	}
	switch b := r.Body.(type) {
	case Header:
		if in.Records == 1 {
			in.Created = r.Time
			in.Key, in.Origin, in.CWD, in.Parent = b.Key, b.Origin, b.CWD, b.Parent
			if in.ID == "" {
				in.ID = b.ID
			}
			in.KeepFrom = 1
		}
	case Title:
		in.Title = b.Title
	case Moved:
		if b.Key != "" {
			in.Key = b.Key
		}
	case Marked:
		in.Origin.Mark = b.Mark
	case Message:
		in.Spent = in.Spent.Add(b.Usage.Tokens())
	case Compaction:
		in.Compactions++
		in.Spent = in.Spent.Add(b.Usage.Tokens())
	case Checkpoint:
		in.Spent = in.Spent.Add(b.Usage.Tokens())
	case Usage:
		in.Spent = in.Spent.Add(b.Usage.Tokens())
	}
	if in.Created.IsZero() {
		in.Created = r.Time
	}
	if in.Updated.Before(in.Created) {
		in.Updated = in.Created
	}
}

func (in *Info) setPath(p path) {
	in.Turns, in.Used = p.turns, p.used
	in.Provider, in.Model, in.Thinking = p.provider, p.model, p.thinking
	in.KeepFrom = p.keep
	if in.KeepFrom <= in.LastBend || in.KeepFrom < 1 {
		in.KeepFrom = 1
	}
}

// path is what a branch adds up to at one record.
type path struct {
	turns, used               int
	provider, model, thinking string
	keep                      Seq // 0: from the beginning
}

// after returns p with r added, except keep, which needs the branch.
func (p path) after(r Record) path {
	switch b := r.Body.(type) {
	case Message:
		if IsTurn(b) {
			p.turns++
		}
		if b.Role == llm.Assistant {
			if b.Model != "" && !b.Synthetic() {
				p.provider, p.model = b.Provider, b.Model
			}
			if u := b.Usage.Total(); u > 0 && b.Stop != llm.StopError && b.Stop != llm.StopAborted {
				p.used = u
			}
		}
	case ModelChange:
		p.provider, p.model = b.Provider, b.Model
	case ThinkingChange:
		p.thinking = b.Level
	case Compaction, Reset, Undo:
		p.used = 0
	}
	return p
}

func firstKept(b Body) string {
	switch b := b.(type) {
	case Compaction:
		return b.FirstKept
	case Reset:
		return b.FirstKept
	}
	return ""
}
