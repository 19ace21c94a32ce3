package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// Check asks whether the model can be used, which costs nothing: nil if the
// server lists it and accepts the key, llm.ErrModel if it lists others only,
// llm.ErrUnlisted if the server answers but lists nothing. It tries once, for
// as long as ctx allows.
func (p *server) Check(ctx context.Context, model string) error {
	if p.noKey {
		return p.api.Fail(llm.ErrAuth, "no_key", "no API key")
	}
	body, err := p.api.Get(ctx, "models")
	if wire.Unlisted(err) {
		return llm.ErrUnlisted
	}
	if err != nil {
		err, _ = p.classify(err, llm.Request{Model: model}, false)
		return err
	}
	var list struct{ Data []struct{ ID string } }
	if json.Unmarshal(body, &list) != nil || len(list.Data) == 0 {
		return llm.ErrUnlisted
	}
	var names []string
	for _, m := range list.Data {
		// Ollama lists a model with its tag, which is :latest if it is not named.
		if strings.EqualFold(m.ID, model) || strings.EqualFold(m.ID, model+":latest") {
			return nil
		}
		names = append(names, wire.Line(m.ID))
	}
	const most = 5
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return p.api.Fail(llm.ErrModel, "unlisted", fmt.Sprintf("the server does not have %q; it has %s", model, strings.Join(names, ", ")))
}
