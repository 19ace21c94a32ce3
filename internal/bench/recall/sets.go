package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goclaw/llm"
)

// document is one message of docs.jsonl, or one note of notes_docs.jsonl.
type document struct {
	ID, Conversation, Session, Speaker, Text string
	TS                                       time.Time
}

// message is d as a log has it. Two people are the two roles, and their
// messages begin with their names.
func (d document) message(first bool) llm.Message {
	text := []llm.Block{llm.Text{Text: d.said()}}
	switch {
	case d.Speaker == "tool":
		return llm.Message{Role: llm.User, Blocks: []llm.Block{llm.ToolResult{CallID: d.ID, Name: "tool", Blocks: text}}}
	case d.Speaker == "user", d.person() && first:
		return llm.Message{Role: llm.User, Blocks: text}
	}
	return llm.Message{Role: llm.Assistant, Blocks: text}
}

// person reports whether d was said by somebody with a name.
func (d document) person() bool {
	return d.Speaker != "" && !slices.Contains([]string{"user", "assistant", "tool"}, d.Speaker)
}

// said is the text of d in a log.
func (d document) said() string {
	if d.person() {
		return d.Speaker + ": " + d.Text
	}
	return d.Text
}

// query is one line of queries.jsonl or notes_queries.jsonl.
type query struct {
	QID, Conversation, Question, Category string
	Gold                                  []string
	AskedAt                               time.Time `json:"asked_at"`
}

// notSearch are the categories that the mean leaves out.
var notSearch = []string{"adversarial", "event_ordering", "summarization", "instruction_following", "preference_following"}

// set is texts, and questions about them.
type set struct {
	name    string
	notes   string // the folder with a workspace of memory files for each conversation; "": messages
	docs    map[string][]document
	queries []query
	goal    *goal // nil: none
}

// conversations returns the names of those that are asked about.
func (s *set) conversations() []string {
	var names []string
	for _, q := range s.queries {
		if !slices.Contains(names, q.Conversation) {
			names = append(names, q.Conversation)
		}
	}
	return names
}

// searches are the questions of s that count.
func (s *set) searches() (out []query) {
	for _, q := range s.queries {
		if !slices.Contains(notSearch, q.Category) {
			out = append(out, q)
		}
	}
	return out
}

// known are the names of the sets in folders that the issue names; others have
// the name of their folder.
var known = map[string][2]string{"dev": {"turns", "notes"}, "code-dev": {"code", ""}, "chat-dev": {"chat", ""}}

// findSets loads the sets in dirs, each of which is a set or holds some.
func findSets(dirs []string, o options) (sets []*set, err error) {
	for _, dir := range dirs {
		folders := []string{dir}
		if !holdsSet(dir) {
			if folders, err = filepath.Glob(filepath.Join(dir, "*")); err != nil {
				return nil, err
			}
		}
		before := len(sets)
		for _, f := range folders {
			if !holdsSet(f) {
				continue
			}
			some, err := loadSets(f)
			if err != nil {
				return nil, err
			}
			sets = append(sets, some...)
		}
		if len(sets) == before {
			return nil, fmt.Errorf("%s holds no docs.jsonl with queries.jsonl, and no folder with them", dir)
		}
	}
	order := []string{"turns", "notes", "code", "chat"}
	place := func(s *set) int {
		if i := slices.Index(order, s.name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(sets, func(a, b *set) int { return place(a) - place(b) })
	if o.known > 0 {
		sets = slices.DeleteFunc(sets, func(s *set) bool { return s.notes != "" })
	}
	for _, s := range sets {
		if o.known > 0 {
			s.knownItems(o.known)
		} else if o.together {
			s.join()
		}
		s.thin(o.most)
	}
	return sets, nil
}

func holdsSet(dir string) bool {
	for _, name := range []string{"queries.jsonl", "notes_queries.jsonl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// loadSets loads what dir has: messages, notes or both.
func loadSets(dir string) (sets []*set, err error) {
	folder := filepath.Base(filepath.Clean(dir))
	names, ok := known[folder]
	if !ok {
		names = [2]string{folder, folder + " notes"}
	}
	for i, prefix := range []string{"", "notes_"} {
		s := &set{name: names[i], docs: map[string][]document{}, goal: goals[names[i]]}
		if prefix != "" {
			s.notes = filepath.Join(dir, "notes")
		}
		s.queries, err = readLines[query](filepath.Join(dir, prefix+"queries.jsonl"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		docs, err := readLines[document](filepath.Join(dir, prefix+"docs.jsonl"))
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			s.docs[d.Conversation] = append(s.docs[d.Conversation], d)
		}
		sets = append(sets, s)
	}
	return sets, nil
}

// thin leaves most of the questions that count, evenly taken; 0: all.
func (s *set) thin(most int) {
	all := s.searches()
	if most == 0 || len(all) <= most {
		return
	}
	s.queries = nil
	for i := range most {
		s.queries = append(s.queries, all[i*len(all)/most])
	}
}

// join makes one conversation of all.
func (s *set) join() {
	var all []document
	for _, c := range s.conversations() {
		all = append(all, s.docs[c]...)
	}
	s.docs = map[string][]document{"": all}
	for i := range s.queries {
		s.queries[i].Conversation = ""
	}
}

// people reports whether people with names talk to each other.
func (s *set) people() bool {
	for _, docs := range s.docs {
		return docs[0].person()
	}
	return false
}

func readLines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []T
	s := bufio.NewScanner(f)
	s.Buffer(nil, 8<<20)
	for s.Scan() {
		if strings.TrimSpace(s.Text()) == "" {
			continue
		}
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(out)+1, err)
		}
		out = append(out, v)
	}
	return out, s.Err()
}
