package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed testdata/languages.tsv
var inLanguages string

// languageSets are notes and questions in languages that the model does not
// know, as messages and as memory files. The caller removes the folder.
func languageSets() (sets []*set, dir string, err error) {
	if dir, err = os.MkdirTemp("", "bench-recall"); err != nil {
		return nil, "", err
	}
	messages := &set{name: "messages", docs: map[string][]document{}}
	notes := &set{name: "notes", docs: map[string][]document{}, notes: dir}
	day := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	files := map[string]string{}
	for i, line := range strings.Split(strings.TrimSpace(inLanguages), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 3 {
			return nil, dir, fmt.Errorf("languages.tsv: line %d has %d fields", i+1, len(f))
		}
		d := document{ID: fmt.Sprint("m", i), Conversation: "all", Session: f[0], Speaker: "user", Text: f[1], TS: day}
		messages.docs["all"] = append(messages.docs["all"], d)
		messages.queries = append(messages.queries, query{QID: d.ID, Conversation: "all", Question: f[2], Category: f[0], Gold: []string{d.ID}, AskedAt: day})
		name := "memory/" + f[0] + ".md"
		files[name] += "- " + f[1] + "\n"
		d.ID = fmt.Sprintf("all/%s#L%d", name, strings.Count(files[name], "\n"))
		notes.docs["all"] = append(notes.docs["all"], d)
		notes.queries = append(notes.queries, query{QID: d.ID, Conversation: "all", Question: f[2], Category: f[0], Gold: []string{d.ID}, AskedAt: day})
	}
	for name, text := range files {
		path := filepath.Join(dir, "all", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, dir, err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, dir, err
		}
	}
	return []*set{messages, notes}, dir, nil
}

// languages prints how well goclaw finds what is not English, and returns an
// error if it finds less with the model than without.
func languages(ctx context.Context, w io.Writer, o options) error {
	sets, dir, err := languageSets()
	defer os.RemoveAll(dir)
	if err != nil {
		return err
	}
	t := table{{"not English: recall@5 / MRR", "questions", "without the model", "with it", ""}}
	var worse []string
	for _, s := range sets {
		var by [2]map[string][]score // by language, without and with the model
		for i, y := range []system{{ours, false, openGoclaw(o, nil)}, {ours, true, openGoclaw(o, o.model)}} {
			open, err := y.openAll(ctx, s)
			if err != nil {
				return err
			}
			_, scores, err := open.ask(s.queries)
			open.close()
			if err != nil {
				return err
			}
			by[i] = map[string][]score{}
			for n, q := range s.queries {
				by[i][q.Category] = append(by[i][q.Category], scores[n])
			}
		}
		for _, lang := range slices.Sorted(maps.Keys(by[0])) {
			a, b := mean(by[0][lang]), mean(by[1][lang])
			name, said := s.name+", "+lang, "ok"
			if b[0] < a[0] || b[3] < a[3] {
				said = "worse"
				worse = append(worse, name)
			}
			t = append(t, []string{name, fmt.Sprint(len(by[0][lang])), fmt.Sprintf("%.1f / %.1f", a[0], a[3]), fmt.Sprintf("%.1f / %.1f", b[0], b[3]), said})
		}
	}
	t.print(w)
	if worse != nil {
		return errors.New("worse with the model: " + strings.Join(worse, "; "))
	}
	return nil
}
