package openai

import "goclaw/llm"

// Body returns the body of the first request that Stream makes of req, byte
// for byte. It needs no key.
func (p *Provider) Body(req llm.Request) ([]byte, error) {
	return p.build(req, effort(p.flavour, req))
}
