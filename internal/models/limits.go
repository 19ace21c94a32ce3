package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"goclaw/agent"
	"goclaw/internal/catalogue"
	"goclaw/internal/config"
	"goclaw/internal/local"
	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
	"goclaw/llm"
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
func (m *Model) findWindow(c *config.Loaded, lm local.Model) {
	if m.Budget.Window > 0 {
		return
	}
	if lm.Window+lm.Trained == 0 {
		lm, _ = m.At.Ask(context.Background(), http.DefaultClient, m.ModelName) // on an error the window is assumed
	}
	known := lm.Window+lm.Trained > 0
	m.Budget.Window = assumedWindow
	if known {
		m.Budget.Window = lm.Usable()
	}
	if lm.Answer < ownChoice {
		m.maxTokens = leastSet(m.maxTokens, lm.Answer)
	}
	m.Note = m.reserve(c)
	if !known {
		m.tell(fmt.Sprintf("the window of %s is not known, so %s tokens are assumed: set models.%q.contextWindow in %s", m.Name(), window.Short(assumedWindow), m.Name(), c.File))
	}
}

// limits are what is known about a model besides the catalogue. Zero means
// nothing.
type limits struct {
	Window     int    `json:"window,omitempty"` // tokens it takes, as a refusal said
	WindowFrom lesson `json:"windowFrom,omitzero"`
	Answer     int    `json:"answer,omitempty"` // tokens of its longest answer, likewise
	AnswerFrom lesson `json:"answerFrom,omitzero"`
	Accepted   int    `json:"accepted,omitempty"` // tokens of the longest prompt it took
}

// lesson is when something was learnt, and from which message.
type lesson struct {
	At   time.Time `json:"at,omitzero"`
	Said string    `json:"said,omitempty"`
}

// What was learnt is forgotten after lessonsLast, and then tried again: the
// server may have been wrong, or changed. What is below the least, or above the
// most, is not believed at all.
const (
	lessonsLast = 7 * 24 * time.Hour
	leastWindow = 2000
	mostWindow  = 1 << 30
	leastAnswer = 256
)

func (l lesson) expires() time.Time { return l.At.Add(lessonsLast) }

// holds reports whether the lesson counts at a time. One from the future counts
// for a day: the clock was wrong.
func (l lesson) holds(now time.Time) bool {
	return now.Before(l.expires()) && l.At.Before(now.Add(24*time.Hour))
}

// UnmarshalJSON also reads the form of older versions: a window alone is a
// number.
func (l *limits) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &l.Window) == nil {
		return nil
	}
	type plain limits
	return json.Unmarshal(data, (*plain)(l))
}

// inEffect returns l without what does not count at a time: what has expired, is
// implausible, or was disproved by a longer prompt that the model took.
func (l limits) inEffect(now time.Time) limits {
	if l.Accepted < 0 || l.Accepted > mostWindow {
		l.Accepted = 0
	}
	if l.Window < max(leastWindow, l.Accepted) || l.Window > mostWindow || !l.WindowFrom.holds(now) {
		l.Window, l.WindowFrom = 0, lesson{}
	}
	if l.Answer < leastAnswer || l.Answer > mostWindow || !l.AnswerFrom.holds(now) {
		l.Answer, l.AnswerFrom = 0, lesson{}
	}
	return l
}

func limitsFile(home string) string { return filepath.Join(home, "windows.json") }

// learntLimits are what is known now, by model. What cannot be read is learnt
// again.
func learntLimits(home string) map[string]limits {
	if home == "" {
		return map[string]limits{}
	}
	data, err := wholefile.Read(limitsFile(home), wholefile.Small)
	if err != nil {
		return map[string]limits{}
	}
	return parseLimits(home, data)
}

// parseLimits reads the content of the file. A damaged entry costs nothing but
// itself.
func parseLimits(home string, data []byte) map[string]limits {
	now, written := time.Now(), time.Time{}
	if fi, err := os.Stat(limitsFile(home)); err == nil {
		written = fi.ModTime() // older versions did not note when
	}
	var entries map[string]json.RawMessage
	_ = json.Unmarshal(data, &entries)
	out := map[string]limits{}
	for model, entry := range entries {
		var l limits
		if json.Unmarshal(entry, &l) != nil {
			continue
		}
		if l.Window > 0 && l.WindowFrom.At.IsZero() {
			l.WindowFrom.At = written
		}
		if l.Answer > 0 && l.AnswerFrom.At.IsZero() {
			l.AnswerFrom.At = written
		}
		if l = l.inEffect(now); l != (limits{}) {
			out[model] = l
		}
	}
	return out
}

// changeLimits changes what is known, for all processes.
func changeLimits(home string, change func(map[string]limits)) error {
	return wholefile.Update(limitsFile(home), func(old []byte) ([]byte, error) {
		m := parseLimits(home, old)
		change(m)
		data, err := json.MarshalIndent(m, "", "  ")
		return append(data, '\n'), err
	})
}

// rememberLimits adds what is not zero in l to what is known of model.
func rememberLimits(home, model string, l limits) error {
	return changeLimits(home, func(m map[string]limits) {
		known := m[model]
		if l.Window > 0 {
			known.Window, known.WindowFrom = l.Window, l.WindowFrom
		}
		if l.Answer > 0 {
			known.Answer, known.AnswerFrom = l.Answer, l.AnswerFrom
		}
		known.Accepted = max(known.Accepted, l.Accepted)
		m[model] = known.inEffect(time.Now())
	})
}

// Learn remembers what a refusal teaches about the model that is asked now, for
// this run and later ones.
func (ms *Models) Learn(l agent.Learnt) {
	m := ms.Now
	if m.ProviderName != l.Provider || m.ModelName != l.Model || l.Once != "" || l.Window > 0 && l.Window < m.accepted {
		return
	}
	from := lesson{time.Now().UTC().Truncate(time.Second), saidBy(l.Err)}
	known := limits{Window: l.Window, Answer: l.Answer, Accepted: m.accepted}
	if l.Window > 0 {
		m.Budget.Window, known.WindowFrom = l.Window, from
	}
	if l.Answer > 0 {
		m.maxTokens, known.AnswerFrom = l.Answer, from
	}
	m.reserve(ms.conf())
	// If it cannot be written, the next refusal teaches it again.
	_ = rememberLimits(ms.conf().Home, m.Name(), known)
}

// saidBy returns what the server said in a refusal.
func saidBy(err error) string {
	if o := (*llm.OverflowError)(nil); errors.As(err, &o) && o.Err != nil {
		err = o.Err
	}
	if err == nil {
		return ""
	}
	return transcript.OneLine(transcript.Printable(transcript.Problem(err)), 200)
}

// took remembers that m took a prompt of that many tokens. It is written when it
// is a tenth more than before, so that a growing session writes it rarely.
func (ms *Models) took(m *Model, prompt int) {
	if prompt <= m.accepted || prompt < leastWindow {
		return
	}
	write := prompt > m.noted+m.noted/10
	m.accepted = prompt
	if write {
		m.noted = prompt
		_ = rememberLimits(ms.conf().Home, m.Name(), limits{Accepted: prompt}) // or the next one is
	}
}

// WindowOf returns how many tokens a model takes, as far as that is known without
// asking anyone.
func WindowOf(c *config.Loaded, name string) int {
	m, _ := catalogue.Lookup(name)
	return cmp.Or(c.Models[name].ContextWindow, c.ContextWindow, leastSet(m.Prompt(), learntLimits(c.Home)[name].Window))
}
