package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"

	"goclaw/agent"
	"goclaw/internal/asjson"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// addressed says which session a reference was taken for.
type addressed struct {
	agent.Event
	note string
	key  session.Key
}

// plainEvents shows an answer as text on standard output, and everything else
// on standard error.
func (e *env) plainEvents() func(agent.Event, error) error {
	st := e.style()
	var answer transcript.Answer
	var failed error // the first error of standard output
	return func(ev agent.Event, err error) error {
		said, _ := ev.(agent.Said)
		if answer != nil && (err != nil || said.Text == "" && said.Thinking == "") {
			answer.Close()
			answer = nil
		}
		switch ev := ev.(type) {
		case agent.Said:
			if ev.Text == "" {
				return nil
			}
			if answer == nil {
				answer = transcript.NewAnswer(func(text string) {
					if _, err := io.WriteString(e.out, text); err != nil && failed == nil {
						failed = err
					}
				}, st, e.columns)
			}
			answer.Write(ev.Text)
			return failed
		case agent.Calling:
			fmt.Fprintln(e.err, st.Yellow("→ "+transcript.CallLine(ev.Call)))
		case agent.Called:
			for _, line := range transcript.Result(ev.Call, ev.Result, ev.Took, "", st) {
				fmt.Fprintln(e.err, line)
			}
		case addressed:
			e.note("%s", ev.note)
		case refused:
			e.warn("%s", ev.text())
		default:
			if text := transcript.Event(ev); text != "" {
				e.note("%s", text)
			}
		}
		return nil
	}
}

// jsonEvents prints every event as one line of JSON. Other programs rely on
// the form.
func (e *env) jsonEvents() func(agent.Event, error) error {
	enc := json.NewEncoder(e.out)
	enc.SetEscapeHTML(false)
	return func(ev agent.Event, err error) error {
		if err != nil {
			return enc.Encode(map[string]any{"type": "error", "message": transcript.Problem(err)})
		}
		if ev, ok := ev.(agent.Recorded); ok {
			line, err := asjson.Record(ev.Record)
			if err != nil {
				return err
			}
			if err := enc.Encode(map[string]any{"type": "recorded", "record": line}); err != nil {
				return err
			}
		}
		if fields := fieldsOf(ev); fields != nil {
			return enc.Encode(fields)
		}
		return nil
	}
}

// fieldsOf is asjson.Event, with the events of goclaw ask.
func fieldsOf(ev agent.Event) map[string]any {
	switch ev := ev.(type) {
	case addressed:
		return map[string]any{"type": "notice", "text": ev.note, "key": ev.key}
	case refused:
		out := map[string]any{"type": "notice", "text": ev.text()}
		maps.Copy(out, ev.fields())
		return out
	}
	return asjson.Event(ev)
}
