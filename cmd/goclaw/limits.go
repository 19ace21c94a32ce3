package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"sync"

	"goclaw/internal/config"
	"goclaw/internal/local"
	"goclaw/internal/wholefile"
	"goclaw/window"
)

// assumedWindow is taken for a model whose window nobody knows.
const assumedWindow = 32_000

// ownChoice is the longest answer that is left to a server to choose: a longer
// one is not asked for by its number.
const ownChoice = 32_000

// findWindow finds out the window of a model that neither the catalogue nor the
// configuration nor a refusal has told: from lm, which its server has told
// already, or by asking the server, or by assuming one. It takes a moment at
// most, and cannot fail.
func (m *model) findWindow(c *config.Loaded, lm local.Model) {
	if m.budget.Window > 0 {
		return
	}
	if lm.Window+lm.Trained == 0 {
		lm, _ = m.at.Ask(context.Background(), http.DefaultClient, m.model) // on an error the window is assumed
	}
	known := lm.Window+lm.Trained > 0
	m.budget.Window = assumedWindow
	if known {
		m.budget.Window = lm.Usable()
	}
	if lm.Answer < ownChoice {
		m.maxTokens = leastSet(m.maxTokens, lm.Answer)
	}
	m.note = m.reserve(c)
	if !known {
		m.tell(fmt.Sprintf("the window of %s is not known, so %s tokens are assumed: set models.%q.contextWindow in %s", m.name(), window.Short(assumedWindow), m.name(), c.File))
	}
}

// limits are what refusals have taught about a model. Zero means nothing.
type limits struct {
	Window int `json:"window,omitempty"` // tokens it takes
	Answer int `json:"answer,omitempty"` // tokens of its longest answer
}

// MarshalJSON writes a window alone as a number.
func (l limits) MarshalJSON() ([]byte, error) {
	if l.Answer == 0 {
		return json.Marshal(l.Window)
	}
	type plain limits
	return json.Marshal(plain(l))
}

// UnmarshalJSON reads both forms.
func (l *limits) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &l.Window) == nil {
		return nil
	}
	type plain limits
	return json.Unmarshal(data, (*plain)(l))
}

var limitsMu sync.Mutex

func limitsFile(home string) string { return filepath.Join(home, "windows.json") }

// learntLimits are what refusals have taught, by model.
func learntLimits(home string) (map[string]limits, error) {
	data, err := wholefile.Read(limitsFile(home), wholefile.Small)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]limits{}, nil
	}
	if err != nil {
		return nil, err
	}
	m := map[string]limits{}
	if err := json.Unmarshal(data, &m); err != nil {
		return map[string]limits{}, nil // a damaged file: it is learnt again
	}
	return m, nil
}

func limitsOf(home, model string) limits {
	if home == "" {
		return limits{}
	}
	limitsMu.Lock()
	defer limitsMu.Unlock()
	m, err := learntLimits(home)
	if err != nil {
		return limits{}
	}
	return m[model]
}

// rememberLimits adds what is not zero in l to what is known of model.
func rememberLimits(home, model string, l limits) error {
	limitsMu.Lock()
	defer limitsMu.Unlock()
	m, err := learntLimits(home)
	if err != nil {
		return err
	}
	m[model] = limits{cmp.Or(l.Window, m[model].Window), cmp.Or(l.Answer, m[model].Answer)}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(limitsFile(home), append(data, '\n'))
}
