package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// reasoner is a server that speaks OpenAI's Responses API as strictly as that
// does. It answers as fakewire says, and thinks before it calls and before it
// answers: it knows its encrypted reasoning again, whichever process sends it
// back, and refuses what is not its own.
//
// Item ids say what belongs together: msg_7 and fc_7_1 came with rs_7.
type reasoner struct {
	n      int
	failed bool
	limit  int // bytes of a request that fit into the window; 0: any number
}

// sealed is the reasoning of an item, as only the server can write it.
func sealed(id string) string {
	return fmt.Sprintf("gAAA%x==", sha256.Sum256([]byte("key of "+id)))[:40]
}

type wireItem struct {
	Type      string
	ID        string
	Role      string
	Phase     string
	Status    string
	Content   json.RawMessage
	CallID    string `json:"call_id"`
	Name      string
	Arguments string
	Output    json.RawMessage
	Summary   *[]struct{ Type, Text string }
	Encrypted string `json:"encrypted_content"`
}

type wireRequest struct {
	Model   string
	Stream  bool
	Store   *bool
	Include []string
	Input   []wireItem
	Tools   []struct {
		Type, Name string
		Strict     *bool
	}
}

// refusal is an error of the API.
type refusal struct{ code, param, msg string }

func refuse(code, param, msg string, args ...any) *refusal {
	return &refusal{code, param, fmt.Sprintf(msg, args...)}
}

func (e *refusal) write(w http.ResponseWriter) {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": e.msg, "type": "invalid_request_error", "param": e.param, "code": e.code}})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	w.Write(body)
}

// check says what the API refuses of a request.
func (r wireRequest) check() *refusal {
	switch {
	case r.Model == "" || len(r.Input) == 0:
		return refuse("missing_required_parameter", "input", "Missing required parameter.")
	case !r.Stream || r.Store == nil || *r.Store || !slices.Contains(r.Include, "reasoning.encrypted_content"):
		return refuse("invalid_value", "store", "The test wants a stream of what is not stored.")
	}
	for i, t := range r.Tools {
		if t.Type != "function" || t.Strict == nil || *t.Strict {
			return refuse("invalid_function_parameters", fmt.Sprintf("tools[%d].parameters", i), "Invalid schema for function '%s'.", t.Name)
		}
	}
	ids, open, called := map[string]bool{}, map[string]bool{}, map[string]bool{}
	last := "" // the reasoning before
	for i, it := range r.Input {
		own := it.Type == "reasoning" || it.Type == "function_call" || it.Role == "assistant"
		if last != "" && !own {
			return refuse("", "input", "Item '%s' of type 'reasoning' was provided without its required following item.", last)
		}
		last = ""
		if it.ID != "" && ids[it.ID] {
			return refuse("duplicate_item", "input", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", it.ID)
		}
		ids[it.ID] = true
		if parts := strings.Split(it.ID, "_"); it.ID != "" && it.Type != "reasoning" && !ids["rs_"+parts[1]] {
			return refuse("", "input", "Item '%s' of type '%s' was provided without its required 'reasoning' item: 'rs_%s'.", it.ID, it.Type, parts[1])
		}
		switch it.Type {
		case "reasoning":
			last = it.ID
			switch {
			case it.Summary == nil:
				return refuse("missing_required_parameter", fmt.Sprintf("input[%d].summary", i), "Missing required parameter: 'input[%d].summary'.", i)
			case it.Encrypted == "":
				return refuse("", "input", "Item with id '%s' not found. Items are not persisted when `store` is set to false.", it.ID)
			case it.Encrypted != sealed(it.ID):
				return refuse("invalid_encrypted_content", "", "The encrypted content %.4s... could not be verified.", it.Encrypted)
			}
		case "function_call":
			if called[it.CallID] || it.Name == "" || !json.Valid([]byte(it.Arguments)) {
				return refuse("invalid_value", fmt.Sprintf("input[%d]", i), "Invalid 'input[%d]'.", i)
			}
			called[it.CallID], open[it.CallID] = true, true
		case "function_call_output":
			if !open[it.CallID] {
				return refuse("", "input", "No tool call found for function call output with call_id %s.", it.CallID)
			}
			delete(open, it.CallID)
		case "message":
			if it.Role == "user" && len(open) > 0 {
				return refuse("", "input", "No tool output found for function call %v.", open)
			}
		default:
			return refuse("invalid_value", fmt.Sprintf("input[%d].type", i), "Invalid value: '%s'.", it.Type)
		}
	}
	if last != "" || len(open) > 0 {
		return refuse("", "input", "Item '%s' was provided without its required following item; no tool output found for %v.", last, open)
	}
	return nil
}

// words returns the last text of the user, and whether results came after it.
func (r wireRequest) words() (text string, results bool) {
	for _, it := range slices.Backward(r.Input) {
		if it.Type == "function_call_output" {
			results = true
		}
		var parts []struct{ Type, Text string }
		if it.Role != "user" || json.Unmarshal(it.Content, &parts) != nil {
			continue
		}
		for _, p := range slices.Backward(parts) {
			if p.Type == "input_text" && !strings.HasPrefix(p.Text, "[Context:") {
				return p.Text, results
			}
		}
	}
	return "", results
}

// answer refuses a request, or answers it. Asked to "list both" it calls two
// tools at once, asked to "overdo" it reaches the length of its answer, asked to
// "fail" it fails the first time.
func (s *reasoner) answer(w http.ResponseWriter, raw []byte) {
	var req wireRequest
	if err := json.Unmarshal(raw, &req); err != nil {
		refuse("invalid_json", "", "%v", err).write(w)
		return
	}
	if e := req.check(); e != nil {
		e.write(w)
		return
	}
	s.n++
	w.Header().Set("Content-Type", "text/event-stream")
	seq, index := 0, -1
	ev := func(name, data string) {
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", name, name, seq, data)
		seq++
	}
	response := func(name, status, rest string) {
		ev(name, fmt.Sprintf(`"response":{"id":"resp_%d","object":"response","created_at":1,"status":%q,"model":%q,"output":[],"store":false%s}`, s.n, status, req.Model, rest))
	}
	item := func(begun, done string, deltas func()) {
		index++
		ev("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, index, begun))
		deltas()
		ev("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, index, done))
	}
	quote := func(t string) string { b, _ := json.Marshal(t); return string(b) }
	say := func(phase string, parts ...string) {
		id := fmt.Sprintf("msg_%d", s.n)
		item(fmt.Sprintf(`{"id":%q,"type":"message","status":"in_progress","role":"assistant","phase":%q,"content":[]}`, id, phase),
			fmt.Sprintf(`{"id":%q,"type":"message","status":"completed","role":"assistant","phase":%q,"content":[{"type":"output_text","annotations":[],"logprobs":[],"text":%s}]}`, id, phase, quote(strings.Join(parts, ""))), func() {
				for _, p := range parts {
					ev("response.output_text.delta", fmt.Sprintf(`"item_id":%q,"output_index":%d,"content_index":0,"delta":%s,"logprobs":[]`, id, index, quote(p)))
				}
			})
	}
	call := func(k int, name, args string) {
		id, callID := fmt.Sprintf("fc_%d_%d", s.n, k), fmt.Sprintf("call_%d_%d", s.n, k)
		item(fmt.Sprintf(`{"id":%q,"type":"function_call","status":"in_progress","call_id":%q,"name":%q,"arguments":""}`, id, callID, name),
			fmt.Sprintf(`{"id":%q,"type":"function_call","status":"completed","call_id":%q,"name":%q,"arguments":%s}`, id, callID, name, args), func() {
				ev("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":%q,"output_index":%d,"delta":%s`, id, index, args))
			})
	}
	response("response.created", "in_progress", `,"usage":null,"error":null`)
	if s.limit > 0 && len(raw) > s.limit {
		response("response.failed", "failed", `,"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again."}`)
		return
	}
	text, results := req.words()
	if strings.Contains(text, "fail") && !s.failed {
		s.failed = true
		response("response.failed", "failed", `,"error":{"code":"server_error","message":"An error occurred while processing your request."}`)
		return
	}
	rs := fmt.Sprintf("rs_%d", s.n)
	item(fmt.Sprintf(`{"id":%q,"type":"reasoning","summary":[],"encrypted_content":"gAAA"}`, rs),
		fmt.Sprintf(`{"id":%q,"type":"reasoning","summary":[{"type":"summary_text","text":"I weigh it."}],"encrypted_content":%q}`, rs, sealed(rs)), func() {
			ev("response.reasoning_summary_part.added", fmt.Sprintf(`"item_id":%q,"output_index":%d,"summary_index":0,"part":{"type":"summary_text","text":""}`, rs, index))
			ev("response.reasoning_summary_text.delta", fmt.Sprintf(`"item_id":%q,"output_index":%d,"summary_index":0,"delta":"I weigh it."`, rs, index))
		})
	end := `,"error":null,"usage":{"input_tokens":120,"input_tokens_details":{"cached_tokens":20},"output_tokens":37,"output_tokens_details":{"reasoning_tokens":30},"total_tokens":157}`
	switch name, args := wanted(text); {
	case name != "" && !results:
		say("commentary", "I shall look.")
		call(1, name, args)
		if strings.Contains(text, "both") {
			call(2, name, args)
		}
	default:
		say("final_answer", answerParts(text)...)
	}
	if strings.Contains(text, "overdo") {
		response("response.incomplete", "incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`+end)
		return
	}
	response("response.completed", "completed", end)
}
