package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestAnswers asks the offline model natural questions on an imported history,
// as a chat does. What it was tuned on is lantern; the other is to see what
// that is worth elsewhere.
func TestAnswers(t *testing.T) {
	for _, h := range []struct {
		name string
		want int // right answers at least
	}{{"lantern", 16}, {"school", 8}} {
		t.Run(h.name, func(t *testing.T) {
			home := t.TempDir()
			writeHistory(t, home, "testdata/answers/"+h.name+".txt")
			typed(t, home, "import")
			typed(t, home, "search", "--index")
			right, of := 0, 0
			for _, q := range questions(t, "testdata/answers/"+h.name+"-questions.txt") {
				answer := typed(t, home, "ask", "-s", fmt.Sprintf("test:cli:%d", of), q.ask)
				of++
				if missing := q.lacks(answer); missing == "" {
					right++
				} else {
					t.Logf("%q: %s\n%s", q.ask, missing, answer)
				}
			}
			t.Logf("%d of %d are right", right, of)
			if right < h.want {
				t.Errorf("%d of %d answers are right, want %d", right, of, h.want)
			}
		})
	}
}

// question is one, what the first quotes of its answer must hold, and what must
// not come before that.
type question struct {
	ask         string
	want, wrong []*regexp.Regexp
}

// firstQuotes is how many quotes of an answer are read. Where several things
// are asked for, each may take one more.
const firstQuotes = 3

// lacks returns what is wrong with an answer, "" if it is right.
func (q question) lacks(answer string) string {
	var quotes []string
	for l := range strings.Lines(answer) {
		if rest, ok := strings.CutPrefix(l, "> "); ok {
			quotes = append(quotes, rest)
		}
	}
	quotes = quotes[:min(len(quotes), firstQuotes+len(q.want)-1)]
	first := len(quotes)
	for _, w := range q.want {
		at := 0
		for at < len(quotes) && !w.MatchString(quotes[at]) {
			at++
		}
		if at == len(quotes) {
			return fmt.Sprintf("no %q in the first quotes", w)
		}
		first = min(first, at)
	}
	for _, quote := range quotes[:first] {
		for _, w := range q.wrong {
			if w.MatchString(quote) {
				return fmt.Sprintf("%q comes first", w)
			}
		}
	}
	return ""
}

// questions reads a file of questions.
func questions(t *testing.T, file string) (out []question) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(data), "\n\n") {
		var q question
		for l := range strings.Lines(block) {
			l = strings.TrimSpace(l)
			wrong, isWrong := strings.CutPrefix(l, "! ")
			switch {
			case l == "" || strings.HasPrefix(l, "#"):
			case q.ask == "":
				q.ask = l
			case isWrong:
				q.wrong = append(q.wrong, regexp.MustCompile(wrong))
			default:
				q.want = append(q.want, regexp.MustCompile(l))
			}
		}
		if q.ask == "" || len(q.want) == 0 {
			t.Fatalf("%s: no question in %q", file, block)
		}
		out = append(out, q)
	}
	return out
}

var historyHead = regexp.MustCompile(`^@ (\d+) (\d\d):(\d\d) (user|assistant|tool)$`)

// writeHistory writes the sessions of a file as OpenClaw keeps them.
func writeHistory(t *testing.T, home, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, ".openclaw", "agents", "main", "sessions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	index := map[string]any{}
	_, sessions, _ := strings.Cut("\n"+string(data), "\n== ")
	for i, s := range strings.Split(sessions, "\n== ") {
		key, said, _ := strings.Cut(s, "\n")
		id := fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", i)
		var log strings.Builder
		enc := json.NewEncoder(&log)
		var latest time.Time
		for n, m := range strings.Split(strings.TrimPrefix(said, "@ "), "\n@ ") {
			head, text, _ := strings.Cut("@ "+m, "\n")
			h := historyHead.FindStringSubmatch(head)
			if h == nil {
				t.Fatalf("%s: %q begins no message", file, head)
			}
			num := func(i int) int { v, _ := strconv.Atoi(h[i]); return v }
			now := time.Now()
			at := time.Date(now.Year(), now.Month(), now.Day()-num(1), num(2), num(3), 0, 0, time.Local)
			if latest.Before(at) {
				latest = at
			}
			if n == 0 {
				_ = enc.Encode(map[string]any{"type": "session", "version": 3, "id": id, "timestamp": at.UTC().Format("2006-01-02T15:04:05.000Z"), "cwd": home})
			}
			message := map[string]any{"role": h[4], "content": []any{map[string]any{"type": "text", "text": strings.TrimSpace(text)}}, "timestamp": at.UnixMilli()}
			if h[4] == "tool" {
				message["role"], message["toolCallId"], message["toolName"] = "toolResult", fmt.Sprintf("call_%d", n), "exec"
			}
			parent := any(nil)
			if n > 0 {
				parent = fmt.Sprintf("%08d", n-1)
			}
			_ = enc.Encode(map[string]any{"type": "message", "id": fmt.Sprintf("%08d", n), "parentId": parent, "timestamp": at.UTC().Format("2006-01-02T15:04:05.000Z"), "message": message})
		}
		index[key] = map[string]any{"sessionId": id, "updatedAt": latest.UnixMilli()}
		if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte(log.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := json.Marshal(index)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "sessions.json"), all, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
