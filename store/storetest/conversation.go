package storetest

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

// Conversation yields the first n records of a made-up conversation with an
// agent, for tests and benchmarks: about 35 % tool calls and results, sizes
// log-normal (median 400 bytes, p99 30 KB), two compactions for every 10,000
// records. The records depend on seed alone; n only says how many there are. The
// header's id is ConversationID(seed).
func Conversation(seed uint64, n int) iter.Seq[session.Record] {
	return func(yield func(session.Record) bool) {
		rng := rand.New(rand.NewPCG(seed, 0x60c1a3))
		id := ConversationID(seed)
		at := sessiontest.Start.Add(time.Duration(seed) * time.Second)
		h := session.Header{Version: session.Version, ID: id, Key: session.Key("main:bench:" + string(id)), CWD: "/home/me"}
		if n < 1 || !yield(session.Record{Seq: 1, Time: at, Body: h}) {
			return
		}
		var (
			leaf, turn string // the last record, and the first of the last turn
			call       string // waits for its result
			used       = 3000
			answered   = true
			full       bool // a compaction is due
		)
		for seq := session.Seq(2); seq <= session.Seq(n); seq++ {
			full = full || seq%5000 == 0
			at = at.Add(time.Duration(rng.IntN(20_000)) * time.Millisecond)
			r := session.Record{Seq: seq, ID: fmt.Sprintf("%d_%08x", at.UnixMilli(), rng.Uint32()), Parent: leaf, Time: at}
			switch {
			case call != "":
				res := llm.Result(llm.ToolCall{ID: call, Name: "bash"}, prose(rng))
				r.Body = session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{res}}, At: at}
				call = ""
			case full:
				full = false
				r.Body = session.Compaction{Summary: Words(rng, 4000), FirstKept: turn, TokensBefore: used}
				used = 8000
			case answered:
				r.Body = session.Message{Message: llm.UserText(prose(rng)), At: at}
				turn, answered = r.ID, false
			default:
				m := session.Message{Message: llm.Message{Role: llm.Assistant}, At: at, Provider: "anthropic", API: "anthropic-messages", Model: "claude-sonnet-4-5"}
				text := prose(rng)
				used += len(text) / 4
				m.Usage = llm.Usage{Input: 4, Output: 1 + len(text)/4, CacheRead: used, CacheWrite: len(text) / 8}
				if rng.Float64() < 0.35 {
					call = fmt.Sprintf("toolu_%016x", rng.Uint64())
					args, err := json.Marshal(map[string]string{"command": text})
					if err != nil {
						panic(err) // a string
					}
					m.Blocks, m.Stop = []llm.Block{llm.ToolCall{ID: call, Name: "bash", Args: args}}, llm.StopTool
				} else {
					m.Blocks, m.Stop, answered = []llm.Block{llm.Text{Text: text}}, llm.StopEnd, true
				}
				r.Body = m
			}
			leaf = r.ID
			if !yield(r) {
				return
			}
		}
	}
}

// ConversationID is the id of the log that Conversation yields.
func ConversationID(seed uint64) session.ID { return session.ID(fmt.Sprintf("conversation-%d", seed)) }

// prose returns words of a random length. p99 is at 2.326 sigma: ln(30000/400).
func prose(rng *rand.Rand) string {
	const sigma = 1.856
	n := 400 * math.Exp(sigma*rng.NormFloat64())
	return Words(rng, int(min(max(n, 2), 1<<20)))
}

// Words cuts n bytes out of a book.
func Words(rng *rand.Rand, n int) string {
	b := book()
	off := rng.IntN(len(b) - n)
	return b[off : off+n]
}

// book is two megabytes of invented words with some line ends and quotes. The
// words are as frequent as in a language: a few make up most of the text. It is
// made when it is needed: a child of Processes does without.
var book = sync.OnceValue(func() string {
	rng := rand.New(rand.NewPCG(1, 1))
	vocabulary := make([]string, 30_000)
	for i := range vocabulary {
		w := make([]byte, 2+rng.IntN(9))
		for j := range w {
			w[j] = byte('a' + rng.IntN(26))
		}
		vocabulary[i] = string(w)
	}
	zipf := rand.NewZipf(rng, 1.07, 4, uint64(len(vocabulary)-1))
	b := make([]byte, 0, 2<<20+64)
	for len(b) < 2<<20 {
		b = append(b, vocabulary[zipf.Uint64()]...)
		switch rng.IntN(24) {
		case 0:
			b = append(b, '\n')
		case 1:
			b = append(b, `, "`...)
		default:
			b = append(b, ' ')
		}
	}
	return string(b)
})
