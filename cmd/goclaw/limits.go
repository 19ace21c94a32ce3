package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"goclaw/agent"
	"goclaw/internal/config"
	"goclaw/provider/local"
	"goclaw/window"
)

// assumedWindow is taken for a model of which nobody knows the window.
const assumedWindow = 32_000

// ownChoice is the longest answer that is left to a server to choose: a longer
// one is not asked for by its number.
const ownChoice = 32_000

// sizeUp finds out the window of a model that neither the catalogue nor the
// configuration nor a refusal has told: from m, which its server has told
// already, or by asking the server, or by assuming one. It takes a moment at
// most, and cannot fail.
func (v *voice) sizeUp(c *config.Loaded, m local.Model) {
	if v.budget.Window > 0 {
		return
	}
	if m.Window+m.Trained == 0 {
		m, _ = v.at.Ask(context.Background(), http.DefaultClient, v.model) // what is not told is assumed
	}
	known := m.Window+m.Trained > 0
	v.budget.Window = assumedWindow
	if known {
		v.budget.Window = m.Usable()
	}
	if m.Answer < ownChoice {
		v.maxTokens = leastSet(v.maxTokens, m.Answer)
	}
	v.note = v.reserve(c)
	if !known {
		v.tell(fmt.Sprintf("the window of %s is not known, %s tokens are assumed: set models.%q.contextWindow in %s", v.name(), window.Short(assumedWindow), v.name(), c.File))
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

// learn remembers what a refusal teaches about a model, for this run and those
// to come.
func (a *app) learn(l agent.Learnt) {
	v := a.voice
	if v.provider != l.Provider || v.model != l.Model {
		return
	}
	if l.Window > 0 {
		v.budget.Window = l.Window
	}
	if l.Answer > 0 {
		v.maxTokens = l.Answer
	}
	v.reserve(a.conf)
	if err := rememberLimits(a.conf.Home, v.name(), limits{l.Window, l.Answer}); err != nil {
		// It is learnt again from the next refusal.
		return
	}
}

var limitsMu sync.Mutex

func limitsFile(home string) string { return filepath.Join(home, "windows.json") }

// learntLimits are what refusals have taught, by model.
func learntLimits(home string) (map[string]limits, error) {
	data, err := os.ReadFile(limitsFile(home))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]limits{}, nil
	}
	if err != nil {
		return nil, err
	}
	m := map[string]limits{}
	if err := json.Unmarshal(data, &m); err != nil {
		return map[string]limits{}, nil // a torn file: it is learnt again
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
	m[model] = limits{lastSet(m[model].Window, l.Window), lastSet(m[model].Answer, l.Answer)}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(home, "windows-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(append(data, '\n'))
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp.Name(), limitsFile(home))
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
