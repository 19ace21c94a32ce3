package main

import (
	"io"
	"sync/atomic"

	"goclaw/agent"
	"goclaw/internal/briefing"
	"goclaw/internal/config"
	"goclaw/internal/inherit/openclaw"
	"goclaw/internal/models"
	"goclaw/internal/naming"
	"goclaw/internal/spending"
	"goclaw/internal/stores"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// app is one run of the program: what its commands work with.
type app struct {
	*env
	stores *stores.Stores
	lists  lists
	models *models.Models
	brief  *briefing.Briefing
	search *searcher
	today  *spending.Day // nil until it is asked for
	// greeted: somebody who is here for the first time was told what was found.
	greeted bool
	// retrying is told that a summary is asked for again; nil: nobody is.
	retrying func(agent.Retrying)
	who      string                                       // the name under which sessions are locked; "": whoAmI
	spawn    func(ended func(), args ...string) error     // starts this program again; nil: it cannot
	working  atomic.Pointer[func(id session.ID, on bool)] // is told of checkpoints in the background
}

func newApp(in io.Reader, out, errOut io.Writer, getenv func(string) string) *app {
	e := &env{in: in, out: terminal.NewWriter(out), err: terminal.NewWriter(errOut), getenv: getenv}
	ss := storesOf(e)
	a := &app{env: e, lists: lists{e}, stores: ss, models: modelsOf(e), brief: briefingOf(e), search: &searcher{env: e, stores: ss}}
	a.retrying = func(r agent.Retrying) { a.note("%s", transcript.Event(r)) }
	return a
}

// modelsOf returns what chooses models with the configuration of e.
func modelsOf(e *env) *models.Models {
	return models.New(models.Options{
		Config: e.config, Getenv: e.getenv, Note: e.note, Warn: e.warn,
		Agent: func(in session.Info) (openclaw.Agent, session.Key, bool) { return e.openclaw.AgentOf(in) },
	})
}

// briefingOf returns what the model is told about where e works.
func briefingOf(e *env) *briefing.Briefing {
	return briefing.New(briefing.Options{
		Config: func() *config.Loaded { return e.conf }, Getenv: e.getenv, OpenClaw: func() openclaw.Installation { return e.openclaw },
	})
}

// storesOf returns what opens the store that e configures.
func storesOf(e *env) *stores.Stores {
	return stores.New(stores.Options{
		Config: e.config, Getenv: e.getenv, Note: e.note, Warn: e.warn, Err: func() io.Writer { return e.err },
		Placed: func() stores.Placed { return e.placed }, Last: func() naming.Listed { return lists{e}.Last() },
	})
}

func (a *app) close() {
	if a.search.ix != nil {
		a.search.ix.Close()
	}
	if a.stores.Store != nil {
		a.stores.Store.Close()
	}
}
