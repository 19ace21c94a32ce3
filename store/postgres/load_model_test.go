//go:build unix

package postgres

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

// loadModel is a model's server that speaks as Anthropic's does. It reads what
// to do from the last question of a request: call tools, one result at a time or
// two calls at once, and then answer with the number of the question.
type loadModel struct{ *httptest.Server }

func newLoadModel(t *testing.T) *loadModel {
	m := &loadModel{httptest.NewServer(http.HandlerFunc(answerQuestion))}
	t.Cleanup(m.Close)
	return m
}

// asked is a question: its number, how many tools to call, and whether to answer
// slowly.
var asked = regexp.MustCompile(`^question (\S+): (\d) tools(, slowly)?$`)

// block is a block of a message.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func answerQuestion(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var question []string
	results := 0 // since the question
	for _, m := range req.Messages {
		var blocks []block
		if json.Unmarshal(m.Content, &blocks) != nil {
			var text string
			_ = json.Unmarshal(m.Content, &text)
			blocks = []block{{"text", text}}
		}
		for _, b := range blocks {
			if found := asked.FindStringSubmatch(b.Text); found != nil {
				question, results = found, 0
			}
			if b.Type == "tool_result" {
				results++
			}
		}
	}
	if question == nil {
		http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"there is no question"}}`, http.StatusBadRequest)
		return
	}
	n, tools, slow := question[1], int(question[2][0]-'0'), question[3] != ""
	time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	s := stream{w}
	s.event(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`)
	if results < tools {
		calls := min(tools-results, 1+results%2)
		for i := range calls {
			s.event(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"toolu_%s_%d","name":"mark","input":{}}}`, i, clean(n), results+i))
			s.event(fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":"{}"}}`, i))
			s.event(fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
		}
		s.end("tool_use")
		return
	}
	s.event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	s.say("answer " + n + ".")
	if slow { // long enough for a part of it to be recorded
		for range 12 {
			s.say(" " + strings.Repeat("word ", 60))
			time.Sleep(100 * time.Millisecond)
		}
	}
	s.event(`{"type":"content_block_stop","index":0}`)
	s.end("end_turn")
}

// clean returns the number of a question as an id of a call can have it.
func clean(n string) string { return strings.ReplaceAll(n, ".", "_") }

// stream is an answer as it is sent.
type stream struct{ w http.ResponseWriter }

func (s stream) event(data string) {
	s.w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(s.w, "event: x\ndata: %s\n\n", data)
	s.w.(http.Flusher).Flush()
}

func (s stream) say(text string) {
	s.event(fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, text))
}

func (s stream) end(reason string) {
	s.event(fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":5}}`, reason))
	s.event(`{"type":"message_stop"}`)
}
