package inherit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/inherit"
	"goclaw/session"
)

// sourceLines are the lines of a source that a log holds, in their order:
// those that its records carry, or the records' own.
func sourceLines(t *testing.T, st session.Store, id session.ID) []string {
	t.Helper()
	var out []string
	for r, err := range st.Read(context.Background(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		var f map[string]json.RawMessage
		if err := json.Unmarshal(r.Raw, &f); err != nil {
			t.Fatal(err)
		}
		line := json.RawMessage(r.Raw)
		for _, name := range []string{"claude-code", "codex", "gemini-cli", "line"} {
			if v, ok := f[name]; ok {
				line = v
			}
		}
		var list []json.RawMessage
		switch {
		case (r.Seq == 1 || strings.HasPrefix(r.ID, "goclaw.")) && len(line) == len(r.Raw): // ours
		case strings.Contains(r.ID, "/"): // one more record of a line
		case json.Unmarshal(line, &list) == nil:
			for _, l := range list {
				out = append(out, string(l))
			}
		default:
			out = append(out, string(line))
		}
	}
	return out
}

// madeCodex, madeClaude and madePi write files of n steps, with rows that say
// nothing in all places.
func madeCodex(rnd *rand.Rand, n int) (lines []string) {
	add := func(typ, format string, args ...any) {
		lines = append(lines, fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:00.%03dZ","type":%q,"payload":%s}`, len(lines)%1000, typ, fmt.Sprintf(format, args...)))
	}
	add("session_meta", `{"id":"s","cwd":"/home/me/proj","model_provider":"openai"}`)
	add("turn_context", `{"model":"gpt-5-codex"}`)
	for i := range n {
		switch rnd.IntN(9) {
		case 0:
			add("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"question %d"}]}`, i)
		case 1:
			add("response_item", `{"type":"reasoning","summary":[{"type":"summary_text","text":"thought %d"}]}`, i)
		case 2:
			add("response_item", `{"type":"function_call","name":"shell","arguments":"{}","call_id":"c%d"}`, i)
			if rnd.IntN(2) == 0 {
				add("event_msg", `{"type":"token_count","info":{"total_token_usage":{"total_tokens":%d},"last_token_usage":{"input_tokens":%d,"output_tokens":9}}}`, i, i+10)
			}
			add("response_item", `{"type":"function_call_output","call_id":"c%d","output":"ok"}`, i)
		case 3:
			add("response_item", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"answer %d"}]}`, i)
		case 4:
			add("event_msg", `{"type":"token_count","info":{"total_token_usage":{"total_tokens":%d},"last_token_usage":{"input_tokens":%d,"output_tokens":9}}}`, i, i+10)
		case 5:
			add("event_msg", `{"type":"agent_message","message":"told"}`)
		case 6:
			add("future_kind", `{"a":%d}`, rnd.IntN(2))
		case 7:
			if rnd.IntN(4) == 0 {
				add("event_msg", `{"type":"thread_rolled_back","num_turns":1}`)
			}
		case 8:
			add("event_msg", `{"type":"thread_name_updated","thread_id":"s","thread_name":"name %d"}`, i)
		}
	}
	return lines
}

func madeClaude(rnd *rand.Rand, n int) (lines []string) {
	parent := ""
	say := func(typ, id, message string) {
		lines = append(lines, cc(typ, id, parent, message))
		parent = id
	}
	aside := func() {
		switch rnd.IntN(6) {
		case 0:
			lines = append(lines, `{"type":"queue-operation","operation":"dequeue","sessionId":"cc"}`)
		case 1:
			lines = append(lines, fmt.Sprintf(`{"type":"future-kind","a":%d,"sessionId":"cc"}`, rnd.IntN(2)))
		case 2:
			lines = append(lines, fmt.Sprintf(`{"type":"custom-title","customTitle":"title %d","sessionId":"cc"}`, len(lines)))
		}
	}
	for i := range n {
		say("user", fmt.Sprintf("u%d", i), fmt.Sprintf(`"message":{"role":"user","content":"question %d"}`, i))
		aside()
		calls := rnd.IntN(4)
		for k := range calls {
			say("assistant", fmt.Sprintf("a%d.%d", i, k), fmt.Sprintf(`"message":{"id":"m%d","role":"assistant","model":"claude-x","usage":{"input_tokens":%d,"output_tokens":%d},"content":[{"type":"tool_use","id":"t%d.%d","name":"Read","input":{}}]}`, i, i+10, k, i, k))
			aside()
		}
		for k := range calls {
			say("user", fmt.Sprintf("r%d.%d", i, k), fmt.Sprintf(`"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d.%d","content":"ok"}]}`, i, k))
			aside()
		}
	}
	return lines
}

// madeGemini also resumes the session, which writes all messages again, and takes
// some back.
func madeGemini(rnd *rand.Rand, n int) []string {
	lines := []string{`{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","kind":"main"}`}
	var ids, msgs []string // in force
	say := func(id, format string, args ...any) {
		m := fmt.Sprintf(`{"id":%q,"timestamp":"2026-01-01T00:00:00.%03dZ",%s}`, id, len(lines)%1000, fmt.Sprintf(format, args...))
		lines = append(lines, m, fmt.Sprintf(`{"$set":{"lastUpdated":"%d"}}`, len(lines)))
		if k := len(ids) - 1; k >= 0 && ids[k] == id {
			msgs[k] = m
			return
		}
		ids, msgs = append(ids, id), append(msgs, m)
	}
	for i := range n {
		switch rnd.IntN(6) {
		case 0, 1:
			say(fmt.Sprint("u", i), `"type":"user","content":[{"text":"question %d"}]`, i)
		case 2:
			say(fmt.Sprint("a", i), `"type":"gemini","content":"answer %d","model":"gemini","tokens":{"input":%d,"output":5}`, i, i)
		case 3:
			id, answer := fmt.Sprint("a", i), fmt.Sprintf(`"type":"gemini","content":"","model":"gemini","thoughts":[{"subject":"Plan","description":"%d"}]`, i)
			result := fmt.Sprintf(`[{"functionResponse":{"id":"ls__c%d","name":"ls","response":{"output":"ok"}}}]`, i)
			say(id, "%s", answer)
			say(id, `%s,"toolCalls":[{"id":"ls__c%d","name":"ls","args":{"a":1},"result":%s,"status":"success"}]`, answer, i, result)
			say(fmt.Sprint("r", i), `"type":"user","content":%s`, result)
		case 4:
			if len(ids) > 0 && rnd.IntN(3) == 0 {
				k := rnd.IntN(len(ids))
				lines = append(lines, fmt.Sprintf(`{"$rewindTo":%q}`, ids[k]))
				ids, msgs = ids[:k], msgs[:k]
			}
		case 5:
			lines = append(lines, fmt.Sprintf(`{"$set":{"messages":[%s],"lastUpdated":"%d"}}`, strings.Join(msgs, ","), i))
		}
	}
	return lines
}

func madePi(rnd *rand.Rand, n int) []string {
	lines := []string{header("s")}
	ids := []string{""}
	for i := range n {
		switch rnd.IntN(5) {
		case 0:
			lines = append(lines, fmt.Sprintf(`{"type":"some_future_row","payload":%d}`, rnd.IntN(2)))
		case 1:
			lines = append(lines, fmt.Sprintf(`{"type":"another","id":"x%d","parentId":%q,"a":1}`, i, ids[len(ids)-1]))
		default:
			id := fmt.Sprintf("m%d", i)
			parent := ids[len(ids)-1]
			if rnd.IntN(6) == 0 {
				parent = ids[rnd.IntN(len(ids))]
			}
			lines = append(lines, userLine(id, parent, fmt.Sprint("say ", i)))
			ids = append(ids, id)
		}
	}
	return lines
}

// TestGrowing: however often a file is imported while it is written, also in the
// middle of an answer or of a line, its log holds each line once and reads as
// if it had been imported when it was whole.
func TestGrowing(t *testing.T) {
	ctx := context.Background()
	for name, made := range map[string]func(*rand.Rand, int) []string{"codex": madeCodex, "claude": madeClaude, "gemini": madeGemini, "pi": madePi} {
		for seed := range uint64(12) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				wrote := made(rnd, 30)
				text := strings.Join(wrote, "\n") + "\n"
				first := len(wrote[0]) + 1
				if name == "codex" {
					first += len(wrote[1]) + 1
				}
				cuts := []int{first, len(text), len(text)}
				for range 12 {
					cuts = append(cuts, first+rnd.IntN(len(text)-first))
				}
				slices.Sort(cuts)
				file := filepath.Join(t.TempDir(), "s.jsonl")
				st := openStore(t, t.TempDir())
				m := inherit.NewMemo("")
				var log session.ID
				for i, cut := range cuts {
					if err := os.WriteFile(file, []byte(text[:cut]), 0o600); err != nil {
						t.Fatal(err)
					}
					if rnd.IntN(3) == 0 {
						m = inherit.NewMemo("")
					}
					rep, _ := take(t, st, m, false, file)
					if len(rep.Outcomes) != 1 {
						t.Fatalf("%d bytes: %d transcripts", cut, len(rep.Outcomes))
					}
					o := rep.Outcomes[0]
					if want := inherit.New; (o.State != want) == (i == 0) || i > 0 && o.State != inherit.Grown && o.State != inherit.Unchanged {
						t.Errorf("%d of %d bytes: %s, %v", cut, len(text), o.State, o.Err)
					}
					log = o.Log
				}
				if n := len(dump(t, st)); n != 1 {
					t.Errorf("%d logs, want 1", n)
				}
				whole := openStore(t, t.TempDir())
				take(t, whole, nil, false, file)
				want := slices.Sorted(slices.Values(wrote))
				if name == "pi" {
					want = slices.Sorted(slices.Values(wrote[1:]))
				}
				for _, store := range []session.Store{whole, st} {
					if diff := cmp.Diff(want, slices.Sorted(slices.Values(sourceLines(t, store, log)))); diff != "" {
						t.Errorf("lines in the log (-want +got):\n%s", diff)
					}
				}
				a, err := session.Replay(log, whole.Read(ctx, log, 0))
				if err != nil {
					t.Fatal(err)
				}
				b, err := session.Open(ctx, st, log)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(lines(a, ""), lines(b, "")); diff != "" {
					t.Errorf("context (-at once +in steps):\n%s", diff)
				}
				type told struct {
					title, model, leaf string
					turns, used        int
				}
				if a, b := (told{a.Title, a.ModelName(), a.Leaf, a.Turns, a.Used}), (told{b.Title, b.ModelName(), b.Leaf, b.Turns, b.Used}); a != b {
					t.Errorf("at once %+v, in steps %+v", a, b)
				}
				if a.Spent != b.Spent {
					t.Errorf("spent at once %+v, in steps %+v", a.Spent, b.Spent)
				}
			})
		}
	}
}
