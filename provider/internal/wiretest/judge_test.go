package wiretest

import (
	"fmt"
	"strings"
	"testing"

	"goclaw/llm/llmtest"
)

func picture(mime, data string) string {
	return fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":%q,"data":%q}}`, mime, data)
}

// The judge refuses what the Messages API refuses, one thing after the other.
func TestAnthropicRefuses(t *testing.T) {
	use := func(id string) string { return `{"type":"tool_use","id":"` + id + `","name":"read","input":{}}` }
	res := func(id, rest string) string { return `{"type":"tool_result","tool_use_id":"` + id + `"` + rest + `}` }
	with := func(answer, user string) string {
		return `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":[{"type":"text","text":"q"}]},` +
			`{"role":"assistant","content":[` + answer + `]},{"role":"user","content":[` + user + `]}]}`
	}
	const hi = `{"type":"text","text":"hi"}`
	const thought = `{"type":"thinking","thinking":"","signature":"s"}`
	png := picture(llmtest.Images[0].MIME, llmtest.Images[0].Data)
	wide := picture("image/png", Wide().Data)
	for i, c := range []struct{ body, says string }{
		{with(thought+","+hi+","+use("c1"), res("c1", `,"is_error":true,"content":[`+hi+`]`)+","+hi+","+png), ""},
		{with(use("c1"), res("c1", "")), ""},
		{with(use("c1"), res("c1", `,"is_error":true`)), "content cannot be empty if `is_error` is true"},
		{with(use("c1"), res("c1", `,"is_error":true,"content":[{"type":"text","text":" "}]`)), "non-whitespace"},
		{with(use("c1"), res("c1", `,"is_error":true,"content":[`+hi+","+png+`]`)), "must be type"},
		{with(use("c1"), hi), "without `tool_result`"},
		{with(use("c1"), hi+","+res("c1", "")), "before other content"},
		{with(hi, res("c1", "")), "unexpected"},
		{with(use("c1")+","+use("c1"), res("c1", "")), "must be unique"},
		{with(use("c.1"), res("c.1", "")), "tool_use.id"},
		{with(strings.Replace(use("c1"), "read", "a.b", 1), res("c1", "")), "tool_use.name"},
		{with(strings.Replace(use("c1"), `{}`, `[]`, 1), res("c1", "")), "valid dictionary"},
		{with(strings.Replace(use("c1"), `{}`, `{"a":"\ud83d"}`, 1), res("c1", "")), "surrogate"},
		{with(hi+","+thought+","+hi, hi), "before any other"},
		{with(thought, hi), "cannot be `thinking`"},
		{with(`{"type":"thinking","thinking":"t"},`+hi, hi), "signature"},
		{with(`{"type":"thinking","thinking":"t","signature":"s","cache_control":{"type":"ephemeral"}},`+hi, hi), "Extra inputs"},
		{with(png, hi), "in a assistant message"},
		{with(hi, picture("image/png", "AAAA")), "does not match"},
		{with(hi, strings.Repeat(png+",", 100)+png), "too many images"},
		{with(hi, strings.Repeat(png+",", 20)+wide), "many-image"},
		{with(hi, ""), "non-empty content"},
		{with(hi, hi)[:60], "not valid JSON"},
		{strings.Replace(with(hi, hi), `"user"`, `"assistant"`, 1), "alternate"},
		{strings.TrimSuffix(with(hi, hi), `,{"role":"user","content":[`+hi+`]}]}`) + "]}", "prefill"},
		{strings.Replace(with(hi, hi), `"max_tokens":10`, `"max_tokens":0`, 1), "max_tokens"},
		{strings.Replace(with(hi, hi), `"model":"m"`, `"model":"m","thinking":{"type":"enabled","budget_tokens":1024}`, 1), "budget_tokens"},
		{strings.Replace(with(hi, hi), `"model":"m"`, `"model":"m","system":[{"type":"text","text":""}]`, 1), "system"},
		{strings.Replace(with(hi, hi), `"model":"m"`, `"model":"m","tools":[{"name":"x y","input_schema":{"type":"object"}}]`, 1), "tools.0"},
		{strings.Replace(with(hi, hi), `"model":"m"`, `"model":"m","tools":[{"name":"x","input_schema":{}}]`, 1), "input_schema"},
		{strings.Replace(with(hi, hi), `"model":"m"`, `"model":"m","tools":[{"name":"x","input_schema":{"type":"object","anyOf":[]}}]`, 1), "anyOf"},
		{strings.Replace(with(hi, hi), `"model":"m"`, `"model":"m","tools":[{"name":"x","input_schema":{"type":"object"}},{"name":"x","input_schema":{"type":"object"}}]`, 1), "unique"},
		{with(hi, hi+strings.Repeat(" ", 32<<20)), "request_too_large"},
	} {
		err := Anthropic([]byte(c.body))
		if (err == nil) != (c.says == "") || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("case %d: got %v, want %q", i, err, c.says)
		}
	}
}

// And what chat completions refuses.
func TestOpenAIRefuses(t *testing.T) {
	call := func(id, name, args string) string {
		return fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, id, name, args)
	}
	res := func(id, content string) string {
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, content)
	}
	with := func(msgs ...string) string {
		return `{"model":"m","messages":[` + strings.Join(append(msgs, `{"role":"user","content":"q"}`), ",") + `]}`
	}
	good := call("c1", "read", "{}")
	const tool = `{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{}}}}`
	png := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + llmtest.Images[0].Data + `"}}`
	many := func(n int) []string {
		var calls, msgs []string
		for i := range n {
			calls = append(calls, fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":"read","arguments":"{}"}}`, i))
			msgs = append(msgs, res(fmt.Sprint("c", i), `"ok"`))
		}
		return append([]string{`{"role":"assistant","tool_calls":[` + strings.Join(calls, ",") + `]}`}, msgs...)
	}
	for i, c := range []struct{ body, says string }{
		{with(good, res("c1", `"ok"`)), ""},
		{with(good), "did not have response"},
		{with(res("c1", `"ok"`)), "must be a response"},
		{with(good, res("c1", `"ok"`), res("c1", `"ok"`)), "must be a response"},
		{with(good, res("c1", `"ok"`), good, res("c1", `"ok"`)), "used twice"},
		{with(good, res("c1", `""`)), "non-whitespace"},
		{with(good, res("c1", `[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]`)), "role tool"},
		{with(call(strings.Repeat("c", 41), "read", "{}")), "tool_use.id"},
		{with(call("c1", "functions.read", "{}")), "tool_use.name"},
		{with(call("c1", strings.Repeat("n", 65), "{}")), "tool_use.name"},
		{with(call("c1", "read", "[")), "valid dictionary"},
		{with(`{"role":"assistant"}`), "got null"},
		{with(`{"role":"user","content":[]}`), "content"},
		{with(`{"role":"user","content":[{"type":"text","text":" "}]}`), "non-whitespace"},
		{with(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`), "does not match"},
		{with(`{"role":"developers","content":"x"}`), "role"},
		{`{"model":"m","messages":[]}`, "too short"},
		{strings.Replace(with(), `"model":"m"`, `"model":""`, 1), "model"},
		{strings.Replace(with(), `"model":"m"`, `"model":"m","tools":[{"type":"function","function":{"name":"a b","parameters":{"type":"object"}}}]`, 1), "tools[0]"},
		{strings.Replace(with(), `"model":"m"`, `"model":"m","tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object"}}}]`, 1), "missing properties"},
		{strings.Replace(with(), `"model":"m"`, `"model":"m","tools":[`+tool+`,`+tool+`]`, 1), "unique"},
		{strings.Replace(with(), `"model":"m"`, `"model":"m","tools":[`+strings.Replace(tool, `"a"`, `"a","description":"`+strings.Repeat("d", 1025)+`"`, 1)+`]`, 1), "string too long"},
		{with(many(129)...), "array too long"},
		{with(many(128)...), ""},
		{with(`{"role":"user","content":[` + strings.Repeat(png+",", 500) + png + `]}`), "too many images"},
		{with()[:20], "not valid JSON"},
	} {
		err := OpenAI([]byte(c.body))
		if (err == nil) != (c.says == "") || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("case %d: got %v, want %q", i, err, c.says)
		}
	}
}

func TestResponses(t *testing.T) {
	const (
		user   = `{"type":"message","role":"user","content":"hi"}`
		think  = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}`
		call   = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{}"}`
		output = `{"type":"function_call_output","call_id":"c1","output":"ok"}`
		said   = `{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]}`
		plain  = `{"type":"message","role":"assistant","content":"a"}`
	)
	with := func(items ...string) string {
		return `{"model":"m","store":false,"input":[` + strings.Join(append([]string{user}, items...), ",") + `]}`
	}
	change := func(old, new string, items ...string) string { return strings.Replace(with(items...), old, new, 1) }
	for i, c := range []struct{ body, says string }{
		{with(), ""},
		{with(think, call, output), ""},
		{with(think, said, user), ""},
		{with(plain, user), ""},
		{with(think, user), "without its required following item"},
		{with(plain, think), "without its required following item"},
		{with(think, output), "without its required following item"},
		{with(said, user), "without its required 'reasoning' item"},
		{with(call, output), "without its required 'reasoning' item"},
		{with(think, said, user, said), "duplicate item"},
		{with(think, think, said), "duplicate item"},
		{with(output), "no tool call found"},
		{with(think, call, output, output), "no tool call found"},
		{with(think, call), "no tool output found"},
		{with(think, call, user), "no tool output found"},
		{change(`"encrypted_content":"gAAA"`, `"content":[]`, think, said), "not found"},
		{change(`"summary":[],`, ``, think, said), "'summary'"},
		{change(`"rs_1"`, `"r1"`, think, said), "begins with 'rs'"},
		{change(`"status":"completed",`, ``, think, said), "'status'"},
		{change(`"output_text"`, `"input_text"`, think, said), "invalid value"},
		{change(`"role":"assistant"`, `"role":"assistant","phase":"last"`, plain), "phase"},
		{change(`"store":false,`, ``), "stored"},
		{change(`"store":false,`, `"store":false,"max_output_tokens":15,`), "below minimum"},
		{change(`"store":false,`, `"store":false,"tools":[{"type":"function","name":"a","parameters":{"type":"object","properties":{}}}],`), "additionalProperties"},
		{change(`"content":"hi"`, `"content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]`), "does not match"},
		{`{"model":"m","store":false,"messages":[]}`, "'input'"},
		{`{"model":"m","store":false,"input":[]}`, "must be provided"},
	} {
		err := Responses([]byte(c.body))
		if (err == nil) != (c.says == "") || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("case %d: got %v, want %q", i, err, c.says)
		}
	}
}
