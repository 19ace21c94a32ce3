package compact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRepair(t *testing.T) {
	want := Summary{Text: "it went well", Decisions: []string{"use Go", "no cgo"}}
	for _, c := range []struct {
		name, text string
		strict     bool
	}{
		{"as asked", `{"summary":"it went well","decisions":["use Go","no cgo"]}`, true},
		{"trailing commas", `{"summary":"it went well","decisions":["use Go","no cgo",],}`, true},
		{"a missing end", `{"summary":"it went well","decisions":["use Go","no cgo"`, true},
		{"torn in a string", `{"summary":"it went well","decisions":["use Go","no cgo`, true},
		{"talk around it", "Here you are:\n```json\n{\"summary\":\"it went well\",\"decisions\":[\"use Go\",\"no cgo\"]}\n```\nAnything else?", true},
		{"another spelling", `{"Summary":"it went well","key_decisions":["use Go","no cgo"]}`, true},
		{"one string for a list", `{"summary":"it went well","decisions":"- use Go\n- no cgo"}`, true},
		{"a raw line break", "{\"summary\":\"it went well\",\"decisions\":\"use Go\nno cgo\"}", true},
		{"keys without quotes", `{summary: "it went well", decisions: ["use Go", "no cgo"]}`, true},
		{"objects in a list", `{"summary":"it went well","decisions":[{"what":"use Go"},{"what":"no cgo"}]}`, true},
		{"Markdown", "## Summary\nit went well\n\n## Key Decisions\n- use Go\n- no cgo", false},
		{"in tags", "<summary>## Summary\nit went well\n\n## Decisions\n- use Go\n- no cgo</summary>", false},
	} {
		got, strict := answer(c.text)
		if d := cmp.Diff(want, got); d != "" || strict != c.strict {
			t.Errorf("%s: strict %v (-want +got)\n%s", c.name, strict, d)
		}
	}
}

func FuzzRepair(f *testing.F) {
	f.Add(`{"summary":"x","decisions":[1,{"a":[`)
	f.Add(strings.Repeat(`{"a":[`, 40))
	f.Add(`{a:,b}:]`)
	f.Fuzz(func(t *testing.T, text string) {
		s, _ := answer(text)
		if s.Text != strings.TrimSpace(s.Text) {
			t.Errorf("%q: text %q", text, s.Text)
		}
	})
}
