package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"goclaw/llm"
	"goclaw/provider/offline"
	"goclaw/window"
)

// checkLimit is how long the doctor waits for a model's server.
const checkLimit = 3 * time.Second

// diagnosed is what the doctor found out about the model that a new session
// would be asked with. Other programs read it.
type diagnosed struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"`
	Server string `json:"server,omitempty"`
	Listed bool   `json:"listed"`
	Window int    `json:"window,omitempty"`
	Did    string `json:"did"` // in words
}

// examineModel finds out whether the model can be used: whether there is a key,
// and whether its server answers, accepts the key and has the model. The model
// itself is not asked.
func (a *app) examineModel(ctx context.Context) (d diagnosed, problems []finding) {
	fail := func(err error, hint string) (diagnosed, []finding) {
		d.Did = "it cannot be used"
		return d, []finding{{What: "model", Problem: oneLine(err), Hint: hint}}
	}
	v, err := a.choose(ctx)
	if err != nil {
		d.Name = a.model
		if d.Name == "" {
			d.Name = a.conf.Model
		}
		return fail(err, "goclaw config shows every setting and where it came from; --model offline needs no key")
	}
	d.Name, d.Window = v.name(), v.budget.Window
	defer func() {
		if d.Usable && v.note != "" {
			d.Did += "; " + v.note
		}
	}()
	if v.provider == offline.Name {
		d.Usable, d.Listed, d.Did = true, true, "built in: it needs no key and no network"
		return d, nil
	}
	checker, ok := v.Provider.(interface {
		Check(ctx context.Context, model string) error
	})
	if !ok {
		d.Usable, d.Did = true, "its server was not asked"
		return d, nil
	}
	d.Server = v.at.Base
	if u, err := url.Parse(v.at.Base); err == nil && u.Host != "" {
		d.Server = u.Host
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	err = checker.Check(ctx, v.model)
	size := window.Short(d.Window) + " tokens"
	switch {
	case err == nil:
		d.Usable, d.Listed = true, true
		d.Did = fmt.Sprintf("%s answers and has it; its window is %s", d.Server, size)
	case errors.Is(err, llm.ErrUnlisted):
		d.Usable = true
		d.Did = fmt.Sprintf("%s answers, but does not list its models; its window is %s", d.Server, size)
	case errors.Is(err, llm.ErrModel) && v.provider == "llamacpp":
		// It has one model and answers with that, whatever it is called by.
		d.Usable = true
		d.Did = fmt.Sprintf("%s answers, with the model that it was started with; its window is %s", d.Server, size)
	case ctx.Err() == context.DeadlineExceeded:
		return fail(fmt.Errorf("%s cannot be asked: %s does not answer within %v", d.Name, d.Server, checkLimit), networkHint)
	case errors.Is(err, llm.ErrNetwork):
		return fail(fmt.Errorf("%s cannot be asked: %w", d.Name, err), networkHint)
	default:
		return fail(fmt.Errorf("%s cannot be asked: %w", d.Name, err), modelHint(err))
	}
	return d, nil
}

const networkHint = "check the network, that the server runs, and its baseUrl (goclaw config); goclaw --model offline needs neither"
