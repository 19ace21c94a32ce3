// Package storekit holds what authors of a session.Store need besides the
// interface: the check before an append, the order of a list, file names, and
// the optional Feed that an index follows. store/storetest tests the result.
package storekit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"goclaw/llm"
	"goclaw/session"
)

// MaxRecord is the length in bytes that the line of a record may have. Append
// refuses a longer one, and a longer line in a file is damage.
const MaxRecord = 32 << 20

// CheckAppend reports why recs must not be appended to the log id, whose last
// record is last; nil if they may. Every store calls it, so that all refuse the
// same.
func CheckAppend(id session.ID, last session.Seq, recs []session.Record) error {
	if id == "" {
		return fmt.Errorf("session: a log needs an id")
	}
	if err := checkID("session", string(id)); err != nil {
		return err
	}
	for i, r := range recs {
		if want := last + session.Seq(i) + 1; r.Seq != want {
			return fmt.Errorf("session %q: record %d cannot follow record %d: %w", id, r.Seq, want-1, session.ErrConflict)
		}
		if r.Body == nil {
			return fmt.Errorf("session %q: record %d has no body", id, r.Seq)
		}
		h, header := r.Body.(session.Header)
		switch {
		case r.Seq == 1 && !header:
			return fmt.Errorf("session %q: a log begins with a header, not with %T", id, r.Body)
		case r.Seq == 1 && h.ID != id:
			return fmt.Errorf("session %q: its header names session %q", id, h.ID)
		case len(r.Raw) > MaxRecord:
			return fmt.Errorf("session %q: record %d has %d bytes, the limit is %d: %w", id, r.Seq, len(r.Raw), MaxRecord, session.ErrTooLarge)
		case r.Raw == nil && bodySize(r.Body) > MaxRecord:
			return fmt.Errorf("session %q: record %d is larger than %d bytes: %w", id, r.Seq, MaxRecord, session.ErrTooLarge)
		case r.Seq == 1 && !utf8.ValidString(string(h.Key)):
			return fmt.Errorf("session %q: its key %q is not UTF-8", id, h.Key)
		}
		if m, ok := r.Body.(session.Moved); ok && !utf8.ValidString(string(m.Key)) {
			return fmt.Errorf("session %q: its key %q is not UTF-8", id, m.Key)
		}
		if err := checkID("record", r.ID); err != nil {
			return err
		}
	}
	return nil
}

// checkID refuses ids that would not survive a line of JSON or a column of
// text.
func checkID(what, id string) error {
	if !utf8.ValidString(id) || strings.ContainsRune(id, 0) {
		return fmt.Errorf("session: %s id %q is not UTF-8 or has a NUL", what, id)
	}
	return nil
}

// Sort puts infos into the order of Store.List.
func Sort(infos []session.Info) {
	slices.SortFunc(infos, func(a, b session.Info) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.ID, b.ID))
	})
}

// bodySize is how many bytes b takes in a line, at least.
func bodySize(b session.Body) int {
	switch b := b.(type) {
	case session.Message:
		return blocksSize(b.Blocks) + len(b.Details)
	case session.CustomMessage:
		return blocksSize(b.Blocks) + len(b.Details)
	case session.Shell:
		return len(b.Command) + len(b.Output)
	case session.Compaction:
		return len(b.Summary) + len(b.Details)
	case session.Checkpoint:
		return len(b.Summary)
	case session.BranchSummary:
		return len(b.Summary) + len(b.Details)
	case session.Custom:
		return len(b.Data)
	case session.Notice:
		return len(b.Text)
	case session.Partial:
		return b.Size()
	case session.Title:
		return len(b.Title)
	case session.Refused:
		return len(b.Why)
	}
	return 0
}

func blocksSize(blocks []llm.Block) int {
	n := llm.SizeOf(blocks)
	return n.Text + n.Thinking + n.Data
}
