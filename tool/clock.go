package tool

import (
	"context"
	"fmt"
	"time"
	_ "time/tzdata" // zones are known on systems that ship none

	"goclaw/llm"
)

type clock struct{ now func() time.Time }

func (clock) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name:        "get_current_time",
		Description: "Get the current date, time and weekday.",
		Schema: []byte(`{
  "type": "object",
  "properties": {
    "timezone": {"type": "string", "description": "such as Europe/Berlin"}
  },
  "additionalProperties": false
}`),
	}
}

func (clock) Mutates(llm.ToolCall) bool { return false }

func (c clock) Run(_ context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	a, err := args[struct{ Timezone string }](call)
	if err != nil {
		return llm.ToolResult{}, err
	}
	now := c.now()
	if a.Timezone != "" {
		loc, err := time.LoadLocation(a.Timezone)
		if err != nil {
			return llm.Failed(call, fmt.Sprintf("unknown time zone %q; give an IANA name such as Europe/Berlin, America/New_York or UTC", a.Timezone)), nil
		}
		now = now.In(loc)
	}
	zone := now.Location().String()
	if zone == "Local" {
		zone, _ = now.Zone()
	}
	return llm.Result(call, fmt.Sprintf("%s (%s, %s)", now.Format(time.RFC3339), now.Weekday(), zone)), nil
}
