package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"goclaw/internal/models"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/provider/offline"
	"goclaw/window"
)

// checkLimit is how long the doctor waits for a model's server.
const checkLimit = 3 * time.Second

// modelCard is what the doctor found out about the model that a new session
// would be asked with. Other programs read it.
type modelCard struct {
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
func examineModel(ctx context.Context, a *app) (d modelCard, problems []finding) {
	fail := func(err error, hint string) (modelCard, []finding) {
		d.Did = "it cannot be used"
		return d, []finding{{What: "model", Problem: transcript.Problem(err), Hint: hint}}
	}
	m, err := a.models.Choose(ctx)
	if err != nil {
		d.Name = cmp.Or(a.models.Flag, a.conf.Model)
		return fail(err, "goclaw config shows every setting and where it came from; --model offline needs no key")
	}
	d.Name, d.Window = m.Name(), m.Budget.Window
	d.Server = m.At.Base
	if u, err := url.Parse(m.At.Base); err == nil && u.Host != "" {
		d.Server = u.Host
	}
	checker, ok := m.Provider.(interface {
		Check(ctx context.Context, model string) error
	})
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	if ok {
		err = checker.Check(ctx, m.ModelName)
	}
	switch size := window.Short(d.Window) + " tokens"; {
	case m.ProviderName == offline.Name:
		d.Listed, d.Did = true, "built in: it needs no key and no network"
	case !ok:
		d.Server, d.Did = "", "its server was not asked"
	case err == nil:
		d.Listed, d.Did = true, fmt.Sprintf("%s answers and has it; its window is %s", d.Server, size)
	case errors.Is(err, llm.ErrUnlisted):
		d.Did = fmt.Sprintf("%s answers, but does not list its models; its window is %s", d.Server, size)
	case errors.Is(err, llm.ErrModel) && m.ProviderName == "llamacpp":
		// It has one model and answers with that, by whatever name it is asked.
		d.Did = fmt.Sprintf("%s answers, with the model that it was started with; its window is %s", d.Server, size)
	case ctx.Err() == context.DeadlineExceeded:
		return fail(fmt.Errorf("%s cannot be asked: %s did not answer within %v", d.Name, d.Server, checkLimit), networkHint)
	case errors.Is(err, llm.ErrNetwork):
		return fail(fmt.Errorf("%s cannot be asked: %w", d.Name, err), networkHint)
	default:
		return fail(fmt.Errorf("%s cannot be asked: %w", d.Name, err), models.Hint(err))
	}
	d.Usable = true
	for _, more := range []string{m.Note, a.models.How} {
		if more != "" {
			d.Did += "; " + more
		}
	}
	return d, nil
}

const networkHint = "check the network, that the server runs, and its baseUrl (goclaw config); goclaw --model offline needs neither"
