package notes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSubject(t *testing.T) {
	for text, want := range map[string]string{
		"- Ada writes compilers for a living": "Ada",
		"2. **Ada**: compilers":               "Ada",
		"Ada's compiler is fast":              "Ada's",
		"The engineer Ada writes compilers":   "Ada",
		"compilers are what Ada writes":       "Ada",
		"what is written here says Ada":       "",
		"the quick brown fox and Ada":         "",
		"":                                    "",
	} {
		if got := (Note{Text: text}).subject(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := (Note{Text: "Ada", isHeading: true}).subject(); got != "" {
		t.Errorf("a heading has the subject %q", got)
	}
}

func TestNamesOthers(t *testing.T) {
	notes := []Note{
		{Text: "- Ada writes compilers"}, {Text: "- Ada's garden is large"}, {Text: "- Grace sails"}, {Text: "- Grace has a boat"}, {Text: "- Boats need paint"},
		{Text: "- Ada encouraged Grace to sail"}, {Text: "- Ada knows what grace is"}, {Text: "- Grace's boat: Ada's idea"}, {Text: "- Ada paints Boats"}, {Text: "that is said of Ada and Grace"},
	}
	about := subjects(notes)
	var got []string
	for _, n := range notes {
		if n.namesOthers(about) {
			got = append(got, n.Text)
		}
	}
	if diff := cmp.Diff([]string{"- Ada encouraged Grace to sail", "- Grace's boat: Ada's idea"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSplit(t *testing.T) {
	long := strings.Repeat("word ", 150)
	got := split("intro\nmore\n\n# A\n- one\n  goes on\n- two\n## B\n```\n# no heading\n\n- no item\n```\n" + long + "\n" + long + "\n")
	type n struct {
		Line, Lines int
		Heading     string
		Text        string
	}
	var short []n
	for _, g := range got {
		short = append(short, n{g.Line, g.Lines, g.Heading, g.Text[:min(len(g.Text), 20)]})
	}
	want := []n{
		{1, 2, "", "intro\nmore"}, {4, 1, "A", "A"}, {5, 2, "A", "- one\n  goes on"}, {7, 1, "A", "- two"}, {8, 1, "A > B", "B"},
		{9, 6, "A > B", "```\n# no heading\n\n- "}, {15, 1, "A > B", "word word word word "},
	}
	if d := cmp.Diff(want, short); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// shape is a note in a table.
type shape struct {
	Line, Lines int
	Heading     string
	Text        string
}

func shapes(text string) []shape {
	var out []shape
	for _, n := range split(text) {
		out = append(out, shape{n.Line, n.Lines, n.Heading, strings.TrimSpace(n.Text[:min(len(n.Text), 24)])})
	}
	return out
}

// TestNotesOf: files as they are found, with their lines.
func TestNotesOf(t *testing.T) {
	long := strings.Repeat("word ", 300)
	for name, c := range map[string]struct {
		text string
		want []shape
	}{
		"unclosed":            {"# A\n```\ncode\n\n# B\n- one\n- two\n\nlast\n", []shape{{1, 1, "A", "A"}, {2, 2, "A", "```\ncode"}, {5, 1, "B", "B"}, {6, 1, "B", "- one"}, {7, 1, "B", "- two"}, {9, 1, "B", "last"}}},
		"unclosed, later":     {"```\na\n\n# no\n```\n# B\n```go\nx\n\n# C\n", []shape{{1, 5, "", "```\na\n\n# no\n```"}, {6, 1, "B", "B"}, {7, 2, "B", "```go\nx"}, {10, 1, "C", "C"}}},
		"fence in a fence":    {"````\n```\n# no\n```\n````\n# B\n", []shape{{1, 5, "", "````\n```\n# no\n```\n````"}, {6, 1, "B", "B"}}},
		"other marks":         {"~~~\n```\n# no\n~~~\n# B\n", []shape{{1, 4, "", "~~~\n```\n# no\n~~~"}, {5, 1, "B", "B"}}},
		"in line":             {"```x``` is code\n\n# B\n", []shape{{1, 1, "", "```x``` is code"}, {3, 1, "B", "B"}}},
		"windows":             {"# A\r\n\r\n- one\r\n  more\r\n- two\r\n", []shape{{1, 1, "A", "A"}, {3, 2, "A", "- one\n  more"}, {5, 1, "A", "- two"}}},
		"no end":              {"one", []shape{{1, 1, "", "one"}}},
		"marks only":          {"***\n\n```\n- one\n\n🎉\n", []shape{{4, 1, "", "- one"}, {6, 1, "", "🎉"}}},
		"empty":               {"", nil},
		"nothing":             {"\n\n \n", nil},
		"front matter":        {"---\ntitle: Trip\ntags: [travel]\n---\n# A\none\n", []shape{{2, 2, "", "title: Trip\ntags: [trave"}, {5, 1, "A", "A"}, {6, 1, "A", "one"}}},
		"front matter, toml":  {"+++\ntitle = \"Trip\"\n+++\none\n", []shape{{2, 1, "", `title = "Trip"`}, {4, 1, "", "one"}}},
		"rules":               {"---\nno metadata\n\n---\n\none\n", []shape{{1, 2, "", "---\nno metadata"}, {6, 1, "", "one"}}},
		"front, unclosed":     {"---\ntitle: x\n", []shape{{1, 2, "", "---\ntitle: x"}}},
		"underlined":          {"Title\n=====\n\none\n\nPart\n----\n- two\n", []shape{{1, 2, "Title", "Title"}, {4, 1, "Title", "one"}, {6, 2, "Title > Part", "Part"}, {8, 1, "Title > Part", "- two"}}},
		"not underlined":      {"- item\n---\n\na\nb\n---\n", []shape{{1, 2, "", "- item\n---"}, {4, 3, "", "a\nb\n---"}}},
		"a tag is no heading": {"#tag\n", []shape{{1, 1, "", "#tag"}}},
		"long line":           {"a\n" + long + "\nb\n", []shape{{1, 1, "", "a"}, {2, 1, "", "word word word word word"}, {2, 1, "", "word word word word word"}, {3, 1, "", "b"}}},
		"long code":           {"```\n" + strings.Repeat("x = 1\n", 300) + "```\nend\n", []shape{{1, 200, "", "```\nx = 1\nx = 1\nx = 1\nx"}, {201, 103, "", "x = 1\nx = 1\nx = 1\nx = 1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, shapes(c.text)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// FuzzNotes: whatever a file holds, its notes are small, in order, and stand
// where they say.
func FuzzNotes(f *testing.F) {
	f.Add("# A\n```\nx\n")
	f.Add("---\na: b\n---\nT\n==\n" + strings.Repeat("é", 1000))
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "")
		lines, last := linesOf(text), 0
		for _, n := range split(text) {
			switch {
			case n.Line < last || n.Line < 1 || n.Lines < 1 || n.Line+n.Lines-1 > len(lines):
				t.Fatalf("a note of lines %d+%d after line %d of %d", n.Line, n.Lines, last, len(lines))
			case len(n.Text) > maxNote+1 || n.Text == "":
				t.Fatalf("a note of %d bytes", len(n.Text))
			case !strings.Contains(strings.Join(lines[n.Line-1:n.Line-1+n.Lines], "\n"), n.Text):
				t.Fatalf("%q does not stand at line %d", n.Text, n.Line)
			}
			last = n.Line
		}
	})
}
