package llm

import (
	"encoding/json"
	"strconv"
)

// SendableTools returns the descriptions of tools in the form that every API
// accepts: each has a name of its own that CallName leaves alone, and a schema of
// an object. Names maps a name that was changed to the tool's own.
func SendableTools(tools []ToolSpec) (sent []ToolSpec, names map[string]string) {
	used := map[string]bool{}
	for _, t := range tools {
		used[t.Name] = used[t.Name] || CallName(t.Name) == t.Name
	}
	taken := map[string]bool{}
	for _, t := range tools {
		name := CallName(t.Name)
		for n := 2; taken[name] || name != t.Name && used[name]; n++ {
			end := "_" + strconv.Itoa(n)
			name = CallName(t.Name)
			name = name[:min(len(name), maxCallName-len(end))] + end
		}
		taken[name] = true
		if name != t.Name {
			if names == nil {
				names = map[string]string{}
			}
			names[name] = t.Name
			t.Name = name
		}
		t.Schema = objectSchema(t.Schema)
		sent = append(sent, t)
	}
	return sent, names
}

// objectSchema returns schema if it is that of an object, as every API demands,
// else that of any object.
func objectSchema(schema json.RawMessage) json.RawMessage {
	var s struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(schema, &s) != nil || s.Type != "object" {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return schema
}
