package main

import (
	"context"
	"fmt"

	"goclaw/provider/offline"
	"goclaw/session"
)

// askChosen asks the model that was chosen in s with /model, if one was and it
// can be had. --model goes before it; a choice that another program recorded
// does not count.
func (a *app) askChosen(ctx context.Context, s *session.Session) error {
	v, err := a.choose(ctx)
	if err != nil || a.model != "" || s.Origin.Program != "" && s.Origin.Program != "goclaw" {
		return err
	}
	spec := ""
	for _, r := range s.Branch {
		if c, ok := r.Body.(session.ModelChange); ok {
			spec = c.Provider + "/" + c.Model
			if c.Provider == offline.Name {
				spec = offline.Name
			}
		}
	}
	if spec == "" || spec == v.name() {
		return nil
	}
	chosen, err := named(a.conf, spec, a.getenv)
	if err != nil {
		fmt.Fprintf(a.err, "%s, which this session asks, cannot be had (%s): asking %s\n", spec, oneLine(err), v.name())
		return nil
	}
	a.voice = chosen
	return nil
}
