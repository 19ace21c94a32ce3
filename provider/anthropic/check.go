package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// Check asks whether the model can be used, which costs nothing: nil if the
// server has it and accepts the key, llm.ErrUnlisted if the server answers but
// does not say. It tries once, for as long as ctx allows.
func (p *Provider) Check(ctx context.Context, model string) error {
	if p.noKey {
		return p.api.Fail(llm.ErrAuth, "no_key", "no API key")
	}
	body, err := p.api.Get(ctx, "v1", "models", model)
	var status *wire.StatusError
	switch {
	case err == nil && json.Valid(body):
		return nil
	case err == nil:
		return llm.ErrUnlisted
	case wire.Unlisted(err) && errors.As(err, &status):
		if read(status.Status, status.Header, status.Body).typ == "not_found_error" {
			return p.api.Fail(llm.ErrModel, "not_found_error", fmt.Sprintf("unknown model %q", model))
		}
		return llm.ErrUnlisted
	}
	err, _ = p.classify(err, model, false)
	return err
}
