package anthropic

import "goclaw/llm"

// Body returns the body of the request that Stream makes of req, byte for
// byte. It needs no key.
func (p *Provider) Body(req llm.Request) ([]byte, error) {
	body, _, err := build(req, p.maxTokens)
	return body, err
}
