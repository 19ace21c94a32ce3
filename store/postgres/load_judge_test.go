//go:build unix

package postgres

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/window"
)

// judge compares the logs with what the processes did.
func (l *load) judge() {
	t := l.t
	st, err := Open(bg, server.DSN(l.name), Options{})
	must(t, err)
	defer st.Close()
	must(t, st.Check(bg, func(id session.ID, err error) { t.Errorf("check of %s: %v", id, err) }))
	j := &judgement{load: l, asked: map[string]int{}, answered: map[string]int{}, calls: map[string]result{}}
	keys := map[session.Key]session.ID{}
	for in, err := range st.List(bg, session.Query{}) {
		must(t, err)
		if other, ok := keys[in.Key]; ok {
			t.Errorf("%s has two sessions, %s and %s", in.Key, other, in.ID)
		}
		keys[in.Key] = in.ID
		j.log(st, in)
	}
	j.diaries()
	j.marks()
	if j.done == 0 || j.late+j.broken == 0 {
		t.Errorf("%d questions were answered and %d interrupted, want some of both", j.done, j.late+j.broken)
	}
	t.Logf("%v; %d sessions, %d records; %d questions answered, %d of them in turns that did not end well; %d interrupted; %d not taken, because the session was held; %d resumed; tools ran %d times, %d calls were interrupted",
		l.suffers, len(keys), j.records, j.done, j.late, j.broken, j.held, j.resumed, j.ran, j.open)
	for _, what := range slices.Sorted(maps.Keys(j.why)) {
		t.Logf("%d times: %s", j.why[what], what)
	}
}

// judgement is what the logs and the diaries say.
type judgement struct {
	*load
	asked    map[string]int    // how often each question is in the logs
	answered map[string]int    // and how often it is answered there
	calls    map[string]result // calls in the logs
	why      map[string]int    // errors

	records, done, late, broken, held, resumed, ran, open int
}

// result is what a log says of a call.
type result int

const (
	none result = iota // it has no result
	given
	interrupted // it is not known whether the tool ran
)

// log judges one log.
func (j *judgement) log(st *Store, in session.Info) {
	t := j.t
	var recs []session.Record
	question, answered := "", true
	for r, err := range st.Read(bg, in.ID, 0) {
		must(t, err)
		if r.Seq != session.Seq(len(recs)+1) {
			t.Errorf("%s: record %d follows %d others", in.ID, r.Seq, len(recs))
		}
		m, ok := r.Body.(session.Message)
		if q := asked.FindStringSubmatch(m.Text()); ok && m.Role == llm.User && q != nil {
			if !answered {
				j.unanswered(in.ID, question, recs)
			}
			question, answered = q[1], false
			j.asked[question]++
		} else if ok {
			if why := j.follows(m, question); why != "" {
				t.Errorf("%s: record %d, after question %s: %s", in.ID, r.Seq, question, why)
			}
			if strings.HasPrefix(m.Text(), "answer "+question+".") && m.Stop == llm.StopEnd {
				if answered = true; j.answered[question] > 0 {
					t.Errorf("%s: question %s is answered again in record %d", in.ID, question, r.Seq)
				}
				j.answered[question]++
			}
		}
		recs = append(recs, r)
	}
	j.records += len(recs)
	if session.Seq(len(recs)) != in.Last {
		t.Errorf("%s has %d records, of %d", in.ID, len(recs), in.Last)
	}
	if !answered {
		j.unanswered(in.ID, question, recs)
	}
	j.replays(in.ID, recs)
}

// follows returns why m cannot follow a question: because it belongs to another
// turn, whose process had lost the session.
func (j *judgement) follows(m session.Message, question string) string {
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case llm.ToolCall:
			if _, again := j.calls[b.ID]; again || !strings.HasPrefix(b.ID, "toolu_"+clean(question)+"_") {
				return fmt.Sprintf("the call %s (again: %v)", b.ID, again)
			}
			j.calls[b.ID] = none
		case llm.ToolResult:
			if had, known := j.calls[b.CallID]; !known || had != none || !strings.HasPrefix(b.CallID, "toolu_"+clean(question)+"_") {
				return fmt.Sprintf("the result of %s (again: %v)", b.CallID, had != none)
			}
			j.calls[b.CallID] = given
			if isInterrupted(b) {
				j.calls[b.CallID] = interrupted
			}
		case llm.Text:
			if m.Role == llm.Assistant && !strings.HasPrefix(b.Text, "answer "+question+".") {
				return fmt.Sprintf("%.40q", b.Text)
			}
		}
	}
	return ""
}

// isInterrupted reports whether r says that its call was interrupted.
func isInterrupted(r llm.ToolResult) bool {
	return r.IsError && strings.Contains(fmt.Sprint(r.Blocks), window.Interrupted)
}

// unanswered judges a turn that has no answer in the log, which ended there with
// recs.
func (j *judgement) unanswered(id session.ID, question string, recs []session.Record) {
	s := j.replays(id, recs)
	if _, ok := runner.InterruptedIn(s); !ok {
		j.t.Errorf("%s: question %s has no answer after record %d, and is not interrupted", id, question, len(recs))
	}
}

// replays replays a log. What a model would be sent next is valid, and each call
// without a result is answered there as interrupted.
func (j *judgement) replays(id session.ID, recs []session.Record) *session.Session {
	s, err := session.Replay(id, func(yield func(session.Record, error) bool) {
		for _, r := range recs {
			if !yield(r, nil) {
				return
			}
		}
	})
	must(j.t, err)
	open := s.Unanswered()
	must(j.t, s.Apply(s.Next(session.Message{Message: llm.UserText("and now?")}, session.System{})))
	req := window.Build(s, window.Prompt{Provider: "anthropic", Model: "claude-sonnet-4-5", Tools: marking{}.Specs()}, window.Loose)
	if err := llmtest.Validate(req); err != nil {
		j.t.Errorf("%s: the request after record %d: %v", id, len(recs), err)
	}
	told := map[string]bool{}
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			if r, ok := b.(llm.ToolResult); ok && isInterrupted(r) {
				told[r.CallID] = true
			}
		}
	}
	for _, c := range open {
		if !told[c.ID] {
			j.t.Errorf("%s: the call %s has no result, and is not answered as interrupted", id, c.ID)
		}
	}
	return s
}

// diaries compares the logs with what the processes were told.
func (j *judgement) diaries() {
	files, err := filepath.Glob(filepath.Join(j.dir, "*.diary"))
	must(j.t, err)
	j.why = map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(j.t, err)
		open := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			n, why, _ := strings.Cut(rest, " ")
			if word != "ask" && word != "resumed" {
				delete(open, n)
			}
			switch word {
			case "ask":
				open[n] = true
			case "resumed":
				j.resumed++
			default:
				j.outcome(word, n, why)
			}
		}
		name := strings.TrimSuffix(filepath.Base(file), ".diary")
		for n := range open {
			if !j.killed[name] {
				j.t.Errorf("question %s has no end, and its process was not killed", n)
			}
			j.outcome("killed", n, "")
		}
	}
}

// outcome judges what became of a question.
func (j *judgement) outcome(word, n, why string) {
	if j.asked[n] > 1 || j.answered[n] > 1 {
		j.t.Errorf("question %s is %d times in the logs, and answered %d times", n, j.asked[n], j.answered[n])
	}
	j.done += j.answered[n]
	switch word {
	case "done":
		if j.answered[n] != 1 {
			j.t.Errorf("question %s was answered, and the logs have %d answers", n, j.answered[n])
		}
		return
	case "held":
		j.held++
		if j.asked[n] != 0 {
			j.t.Errorf("question %s was refused, and is in the logs", n)
		}
	case "wrong":
		j.t.Errorf("question %s was answered with %s", n, why)
	case "failed":
		if !slices.ContainsFunc(reported, func(s string) bool { return strings.Contains(why, s) }) {
			j.t.Errorf("question %s: %s", n, why)
		}
		fallthrough
	case "killed":
		if j.answered[n] == 1 {
			j.late++
		} else if j.asked[n] == 1 {
			j.broken++
		}
	}
	j.why[word+": "+general(why)]++
}

// reported are the errors with which a turn may end.
var reported = []string{"the lock was lost", "the connection was lost", "cannot connect"}

// general is an error without what differs from one to the next.
func general(why string) string {
	for _, s := range append(reported, "is held by") {
		if strings.Contains(why, s) {
			return s
		}
	}
	return why
}

// marks compares the logs with what tools did.
func (j *judgement) marks() {
	text, err := os.ReadFile(filepath.Join(j.dir, "marks"))
	must(j.t, err)
	ran := map[string]string{}
	for line := range strings.Lines(string(text)) {
		id, who, _ := strings.Cut(strings.TrimSpace(line), " ")
		if first, again := ran[id]; again {
			j.t.Errorf("the call %s ran twice, by %s and %s", id, first, who)
		}
		ran[id] = who
		if _, known := j.calls[id]; !known {
			j.t.Errorf("the call %s ran, and is not in a log", id)
		}
	}
	j.ran = len(ran)
	for id, r := range j.calls {
		if r != given {
			j.open++
		} else if ran[id] == "" {
			j.t.Errorf("the call %s has a result and did not run", id)
		}
	}
}
