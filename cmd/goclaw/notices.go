package main

import (
	"fmt"

	"goclaw/internal/transcript"
	"goclaw/session"
	"goclaw/window"
)

// showNotices lists what the model was told about its window in s.
func (a *app) showNotices(s *session.Session, asJSON bool) error {
	given := window.Notices(s)
	if !asJSON {
		for _, line := range transcript.Notices(given, a.style()) {
			fmt.Fprintln(a.out, line)
		}
		return a.damage(s.Damage)
	}
	type notice struct {
		ID       string `json:"id"`
		Seq      int64  `json:"seq"`
		Time     string `json:"timestamp"`
		Percent  int    `json:"percent"`
		Delivery string `json:"delivery"`
		Once     bool   `json:"once"`
		Text     string `json:"text"`
		Actioned bool   `json:"actioned"`
	}
	out := []notice{}
	for _, n := range given {
		out = append(out, notice{n.Record.ID, int64(n.Record.Seq), stamp(n.Record.Time), n.Percent, n.As, n.Once, n.Text, n.Actioned})
	}
	if err := a.printJSON(out); err != nil {
		return err
	}
	return a.damage(s.Damage)
}
