package instructions

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"

	"goclaw/internal/text"
)

// Skill is a folder with instructions for certain tasks, as agentskills.io
// specifies it: a file SKILL.md with a name, a description and the instructions,
// and whatever else they speak of.
type Skill struct {
	Name, Description string
	Path              string // of its SKILL.md
	// Hidden: the user alone may call it, and the model is not told of it.
	Hidden bool

	info fs.FileInfo
}

// Dir returns the folder of the skill.
func (s Skill) Dir() string { return filepath.Dir(s.Path) }

// Skills are those that were found, the nearest first, and what is wrong with them
// and with others.
type Skills struct {
	List     []Skill
	Problems []string
}

const (
	skillFile      = "SKILL.md"
	maxName        = 64   // characters, by the specification
	maxDescription = 1024 // the same
	maxSkills      = 200
)

// skillName is what the specification allows. usable is what can be typed.
var (
	skillName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	usable    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
)

// FindSkills reads the skills in places, the nearest first; of several with the
// same name, the first counts. What old holds and has not changed since is not
// read again.
func FindSkills(places []Place, old Skills) Skills {
	var out Skills
	for _, p := range places {
		err := walk(p.Dir, func(path string, isDir bool) bool {
			file := filepath.Join(path, skillFile)
			info, err := os.Stat(file)
			if err != nil || !isDir {
				return isDir && len(out.List) < maxSkills
			}
			out.add(p, file, info, old)
			return false
		})
		if err != nil {
			out.problem(p.Dir, err)
		}
	}
	return out
}

func (s *Skills) problem(path string, err error) {
	s.Problems = append(s.Problems, fmt.Sprintf("%s: %s", path, strings.ReplaceAll(err.Error(), "\n", "; ")))
}

// add reads the skill in file.
func (s *Skills) add(p Place, file string, info fs.FileInfo, old Skills) {
	if slices.ContainsFunc(s.List, func(o Skill) bool { return os.SameFile(o.info, info) }) {
		return // the same one, by a link
	}
	if err := p.allows(file); err != nil {
		s.problem(file, err)
		return
	}
	sk, err := Skill{}, error(nil)
	if i := slices.IndexFunc(old.List, func(o Skill) bool { return o.Path == file && unchanged(o.info, info) }); i >= 0 {
		sk = old.List[i]
	} else {
		sk, err = readSkill(file, info)
	}
	if err != nil {
		s.problem(file, err)
		return
	}
	if p.Not != nil && p.Not(sk.Name) {
		return
	}
	if first := slices.IndexFunc(s.List, func(o Skill) bool { return strings.EqualFold(o.Name, sk.Name) }); first >= 0 {
		s.problem(file, fmt.Errorf("not used: %s is nearer and has the same name", s.List[first].Path))
		return
	}
	if err := sk.wrong(); err != nil {
		s.problem(file, err)
	}
	s.List = append(s.List, sk)
}

// readSkill reads a SKILL.md. The error says why it cannot be used.
func readSkill(file string, info fs.FileInfo) (Skill, error) {
	f, err := read(file)
	if err != nil {
		return Skill{}, err
	}
	fields, _, err := frontmatter(f.Text)
	switch {
	case err != nil:
		return Skill{}, fmt.Errorf("not used: %w", err)
	case fields == nil:
		return Skill{}, errors.New("not used: it does not begin with name and description between two lines of three dashes")
	case fields["description"] == "":
		return Skill{}, errors.New("not used: it has no description, by which the model would know when to read it")
	}
	if strings.ContainsFunc(file, unicode.IsControl) { // it would not be one line
		return Skill{}, errors.New("not used: its path has control characters")
	}
	s := Skill{Name: cmp.Or(fields["name"], filepath.Base(filepath.Dir(file))), Description: oneLine(fields["description"]), Path: file, info: info}
	s.Hidden = strings.EqualFold(fields["disable-model-invocation"], "true")
	if len(s.Name) > maxName || !usable.MatchString(s.Name) {
		return Skill{}, fmt.Errorf("not used: its name must be 1 to %d of a-z, 0-9 and -", maxName)
	}
	return s, nil
}

// wrong says what the specification does not allow, though the skill can be used.
func (s Skill) wrong() error {
	switch folder := filepath.Base(s.Dir()); {
	case !skillName.MatchString(s.Name):
		return fmt.Errorf("used, but its name %q is not of a-z, 0-9 and single -", s.Name)
	case s.Name != folder:
		return fmt.Errorf("used, but its name %q is not that of its folder", s.Name)
	case len([]rune(s.Description)) > maxDescription:
		return fmt.Errorf("used, but its description is longer than %d characters: the model gets the beginning", maxDescription)
	}
	return nil
}

func unchanged(a, b fs.FileInfo) bool {
	return a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// Line is how the model is told of the skill.
func (s Skill) Line() string {
	return fmt.Sprintf("- %s: %s (%s)", s.Name, text.Clip(s.Description, maxDescription), s.Path)
}

// Listed returns the skills that the model is told of, by name, in at most most
// bytes, and how many others there is no room for. The nearer ones go first.
func (s Skills) Listed(most int) (listed []Skill, left int) {
	for _, sk := range s.List {
		switch size := len(sk.Line()) + 1; {
		case sk.Hidden:
		case size > most:
			left++
		default:
			most -= size
			listed = append(listed, sk)
		}
	}
	sort.Slice(listed, func(i, j int) bool { return listed[i].Name < listed[j].Name })
	return listed, left
}

// News says, in a line each, how s differs from what it was. The model is told
// only of skills that are not hidden.
func (s Skills) News(was Skills) []string {
	var out []string
	visible := func(list []Skill, name string) (Skill, bool) {
		i := slices.IndexFunc(list, func(o Skill) bool { return o.Name == name && !o.Hidden })
		if i < 0 {
			return Skill{}, false
		}
		return list[i], true
	}
	for _, sk := range s.List {
		old, ok := visible(was.List, sk.Name)
		switch {
		case sk.Hidden:
		case !ok:
			out = append(out, "a new skill: "+strings.TrimPrefix(sk.Line(), "- "))
		case old.Path != sk.Path || !unchanged(old.info, sk.info):
			out = append(out, "this skill has changed: "+strings.TrimPrefix(sk.Line(), "- "))
		}
	}
	for _, old := range was.List {
		if _, ok := visible(s.List, old.Name); !ok && !old.Hidden {
			out = append(out, fmt.Sprintf("the skill %s is gone", old.Name))
		}
	}
	return out
}

// Named returns the skill called name.
func (s Skills) Named(name string) (Skill, bool) {
	i := slices.IndexFunc(s.List, func(o Skill) bool { return strings.EqualFold(o.Name, name) })
	if i < 0 {
		return Skill{}, false
	}
	return s.List[i], true
}

// maxBody is how much of a skill or a template is sent at once.
const maxBody = 64 << 10

// Expand returns what is sent when the user calls the skill. What the user added
// comes first, since titles are made of that, and stands where the skill says
// $ARGUMENTS.
func (s Skill) Expand(args string) (string, error) {
	f, err := read(s.Path)
	if err != nil {
		return "", err
	}
	_, body, err := frontmatter(f.Text)
	if err != nil {
		return "", err
	}
	body = strings.TrimSpace(body)
	if len(body) > maxBody {
		body = text.Head(body, maxBody) + fmt.Sprintf("\n[cut: these are %d of %d bytes; read_file reads the rest]", maxBody, len(body))
	}
	call := "Use the skill " + s.Name
	if args = strings.TrimSpace(args); args != "" {
		call += ": " + args
	}
	body, _ = fill(body, args, allArguments)
	return fmt.Sprintf("%s\n\n# %s (paths in it are relative to its folder)\n%s", call, s.Path, body), nil
}

// oneLine makes one line of s.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
