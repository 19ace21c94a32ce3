// Package catalogue knows models: how much they read and write, what they
// cost, and whether they see pictures or reason.
//
// The knowledge is a small JSON file with its sources and its date in it. It is
// read on first use. A name that is not in it is found by its family, with
// limits that are safe for every model of the family.
package catalogue

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"goclaw/llm"
)

// Model is what is known of a model. Zero means not known.
type Model struct {
	ID        string   // as the catalogue names it: vendor/model
	Window    int      // tokens of prompt and answer together
	Input     int      // tokens of a prompt, where that is less than the window
	Output    int      // tokens of an answer
	Images    bool     // reads pictures
	Reasoning bool     // thinks before it answers
	Think     []string // the levels of thinking that can be asked for; none: not known
	API       string   // Responses where its vendor is to be asked with that; "" is the usual one
	Prices    *Prices
	Above     []Tier
	Guess     bool // known by its family only
}

// Responses is the API of OpenAI's reasoning models: with chat completions, the
// newer ones do not think beside tools, and none is given what it thought before.
const Responses = "responses"

// Prices are in US dollars for a million tokens.
type Prices struct {
	In         float64 `json:"in"`
	Out        float64 `json:"out"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
}

// Tier holds for a whole call once its prompt has more than Tokens.
type Tier struct {
	Tokens int    `json:"tokens"`
	Prices Prices `json:"prices"`
}

// Prompt is the most tokens that a prompt may have.
func (m Model) Prompt() int {
	if m.Input > 0 {
		return m.Input
	}
	return m.Window
}

// Cost returns what a call came to in US dollars, and whether that is known.
// Calls are to be added up one by one: what a call costs may depend on its
// length.
func (m Model) Cost(u llm.Usage) (usd llm.Cost, known bool) {
	if m.Prices == nil {
		return llm.Cost{}, false
	}
	p := *m.Prices
	for _, t := range m.Above {
		if u.Prompt() > t.Tokens {
			p = t.Prices
		}
	}
	in, out, read, write := float64(u.Input)*p.In, float64(u.Output)*p.Out, float64(u.CacheRead)*p.CacheRead, float64(u.CacheWrite)*p.CacheWrite
	return llm.Cost{Input: in / 1e6, Output: out / 1e6, CacheRead: read / 1e6, CacheWrite: write / 1e6, Total: (in + out + read + write) / 1e6}, true
}

// Small returns the small model of the vendor of the model name, for work that
// needs no better one. ok is false if there is none that is known to cost less.
func Small(name string) (m Model, ok bool) {
	of, known := Lookup(name)
	vendor, _, _ := strings.Cut(of.ID, "/")
	if given, _, _ := strings.Cut(name, "/"); !known || of.Guess || given != vendor {
		return Model{}, false
	}
	for _, e := range load().Models {
		if e.Small && strings.HasPrefix(e.ID, vendor+"/") {
			m = e.model()
			return m, m.ID != of.ID && m.Prices != nil && of.Prices != nil && m.Prices.In < of.Prices.In
		}
	}
	return Model{}, false
}

// Models returns the built-in models, the newest of each vendor first.
func Models() []Model {
	b := load()
	out := make([]Model, len(b.Models))
	for i, e := range b.Models {
		out[i] = e.model()
	}
	return out
}

//go:embed models.json
var file []byte

type entry struct {
	ID                    string
	Prefix                string // of a family
	Small                 bool   // the one of its vendor to write summaries
	Window, Input, Output int
	Images, Reasoning     bool
	Think, API            string
	Prices                *Prices
	Above                 []Tier
	Source                string
}

func (e entry) model() Model {
	m := Model{ID: e.ID, Window: e.Window, Input: e.Input, Output: e.Output, Images: e.Images, Reasoning: e.Reasoning, Think: strings.Fields(e.Think), API: e.API, Above: slices.Clone(e.Above)}
	if e.Prices != nil {
		p := *e.Prices
		m.Prices = &p
	}
	return m
}

type book struct {
	Date     string
	Sources  map[string]string
	Models   []entry
	Families []entry
	byName   map[string]int
	date     *regexp.Regexp
}

var load = sync.OnceValue(func() *book {
	var b book
	if err := json.Unmarshal(file, &b); err != nil {
		panic("catalogue: models.json: " + err.Error()) // part of the program; a test reads it
	}
	b.byName = make(map[string]int, len(b.Models))
	for i, e := range b.Models {
		_, model, _ := strings.Cut(e.ID, "/")
		b.byName[spell(model)] = i
	}
	b.date = regexp.MustCompile(`[-@](?:latest|preview|exp|\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|\d{2}-\d{2,4})$`)
	return &b
})

// spell makes one of the ways to write a model's name the only one.
func spell(model string) string { return strings.ReplaceAll(strings.ToLower(model), ".", "-") }

// Lookup finds a model by the name that users write: provider/model, the model
// alone, a dated one, or one as OpenRouter spells it. The provider before it
// does not matter, so that a model is the same wherever it is bought.
func Lookup(name string) (Model, bool) {
	b := load()
	model := strings.ToLower(strings.TrimSpace(name[strings.LastIndexByte(name, '/')+1:]))
	model, tag, _ := strings.Cut(model, ":") // :free, :nitro, or the size of a local one
	for {
		names := spellings(spell(model))
		if tag != "" {
			names = append(names, spell(model+"-"+tag)) // gpt-oss:20b
			slices.Reverse(names)
		}
		for _, n := range names {
			if i, ok := b.byName[n]; ok {
				m := b.Models[i].model()
				if tag == "free" {
					m.Prices, m.Above = &Prices{}, nil
				}
				return m, true
			}
		}
		short := b.date.ReplaceAllString(model, "")
		if short == model || short == "" {
			break
		}
		model = short
	}
	return relative(b, spell(model))
}

// spellings returns n and, for Claude, n with family and number exchanged:
// claude-4-6-opus is claude-opus-4-6.
func spellings(n string) []string {
	parts := strings.Split(n, "-")
	if parts[0] != "claude" || len(parts) < 3 {
		return []string{n}
	}
	last := len(parts) - 1
	if isNumber(parts[1]) && !isNumber(parts[last]) {
		return []string{n, strings.Join(append([]string{"claude", parts[last]}, parts[1:last]...), "-")}
	}
	return []string{n}
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// relative finds the model that n is a variant of, or its family. What it
// costs and which levels of thinking it has is then not known.
func relative(b *book, n string) (Model, bool) {
	for p := n; ; {
		cut := strings.LastIndexByte(p, '-')
		if cut < 0 {
			break
		}
		p = p[:cut]
		if i, ok := b.byName[p]; ok {
			m := b.Models[i].model()
			m.Prices, m.Above, m.Think, m.Guess = nil, nil, nil, true
			return m, true
		}
	}
	for _, f := range b.Families {
		if strings.HasPrefix(n, f.Prefix) {
			m := f.model()
			m.ID, m.Guess = f.Prefix+"*", true
			return m, true
		}
	}
	return Model{}, false
}
