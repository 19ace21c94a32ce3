package recall

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"goclaw/internal/secrets"
	"goclaw/internal/text"
)

// Endpoint is an embedding model that is served with OpenAI's API. Ollama and
// most local servers speak it as well.
type Endpoint struct {
	URL    string // without /embeddings, such as http://localhost:11434/v1
	Model  string
	Key    string       // "" if none is needed
	Client *http.Client // nil: one with a timeout of a minute
}

// Name says which model it is.
func (e Endpoint) Name() string { return e.Model }

const (
	maxReply     = 64 << 20
	maxPerAsking = 64
)

// Vectors asks for vectors, some texts at a time.
func (e Endpoint) Vectors(ctx context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for len(texts) > 0 {
		n := min(len(texts), maxPerAsking)
		vs, err := e.ask(ctx, texts[:n])
		if err != nil {
			return nil, fmt.Errorf("embeddings of %s: %w", e.Model, err)
		}
		out, texts = append(out, vs...), texts[n:]
	}
	return out, nil
}

func (e Endpoint) ask(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": e.Model, "input": texts})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(e.URL, "/")+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if e.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.Key)
	}
	client := e.Client
	if client == nil {
		client = &http.Client{Timeout: time.Minute}
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server says %s: %s", resp.Status, text.Head(strings.TrimSpace(secrets.Without(string(data), e.Key)), 200))
	}
	var reply struct {
		Data []struct {
			Index     int
			Embedding []float32
		}
	}
	if err := json.Unmarshal(data, &reply); err != nil {
		return nil, fmt.Errorf("the server's reply: %w", err)
	}
	vs := make([][]float32, len(texts))
	for _, d := range reply.Data {
		if d.Index >= 0 && d.Index < len(vs) {
			vs[d.Index] = d.Embedding
		}
	}
	for i, v := range vs {
		if len(v) == 0 || len(v) != len(vs[0]) {
			return nil, fmt.Errorf("the server gave %d numbers for text %d of %d", len(v), i+1, len(texts))
		}
	}
	return vs, nil
}
