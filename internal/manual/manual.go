// Package manual writes manual pages: one for each command, made from what its help
// says, and one for the settings.
package manual

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goclaw/internal/config"
)

// Manual is that of a version of goclaw.
type Manual struct{ Version string }

// Write writes the pages of root and the commands below it, and returns how many
// they are: man1 has the commands, man5 the settings.
func (m Manual) Write(dir string, root *cobra.Command) (n int, err error) {
	write := func(name string, page func(io.Writer) error) error {
		n++
		path := filepath.Join(dir, "man"+name[len(name)-1:], name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		var b strings.Builder
		if err := page(&b); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(b.String()), 0o644)
	}
	var visit func(*cobra.Command) error
	visit = func(c *cobra.Command) error {
		if err := write(pageName(c)+".1", func(w io.Writer) error { return m.Page(w, c) }); err != nil {
			return err
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				if err := visit(sub); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := visit(root); err != nil {
		return n, err
	}
	return n, write("goclaw-settings.5", m.settings)
}

// pageName is the name of the page of a command: goclaw-sessions-show.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// roff writes a page in the language of man.
type roff struct {
	w       io.Writer
	version string
	err     error
}

// put writes lines, which are escaped already.
func (r *roff) put(format string, args ...any) {
	if r.err == nil {
		_, r.err = fmt.Fprintf(r.w, format+"\n", args...)
	}
}

// escaped returns text that means itself, also at the beginning of a line.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

// text writes paragraphs, which empty lines separate.
func (r *roff) text(text string) {
	for i, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			r.put(".PP")
		}
		r.put("%s", escaped(p))
	}
}

// term writes a name and its meaning.
func (r *roff) term(name, meaning string) {
	r.put(".TP\n\\fB%s\\fR\n%s", escaped(name), escaped(meaning))
}

func (r *roff) title(name, section string) {
	r.put(".TH %s %s \"\" \"%s\" \"goclaw\"\n.nh\n.ad l", escaped(strings.ToUpper(name)), section, escaped("goclaw "+r.version))
}

// Page writes the page of a command.
func (m Manual) Page(w io.Writer, c *cobra.Command) error {
	r := &roff{w: w, version: m.Version}
	r.title(pageName(c), "1")
	r.put(".SH NAME\n%s \\- %s", escaped(pageName(c)), escaped(c.Short))
	r.put(".SH SYNOPSIS\n\\fB%s\\fR%s", escaped(c.CommandPath()), escaped(strings.TrimPrefix(c.UseLine(), c.CommandPath())))
	if c.HasAvailableSubCommands() {
		r.put(".br\n\\fB%s\\fR COMMAND", escaped(c.CommandPath()))
	}
	r.put(".SH DESCRIPTION")
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	r.text(long)
	r.flags("OPTIONS", c.LocalFlags())
	r.flags("OPTIONS OF EVERY COMMAND", c.InheritedFlags())
	if c.HasAvailableSubCommands() {
		r.put(".SH COMMANDS")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				r.term(sub.Name(), sub.Short+" ("+pageName(sub)+"(1))")
			}
		}
	}
	if c.Example != "" {
		r.put(".SH EXAMPLES\n.nf\n%s\n.fi", escaped(strings.TrimRight(c.Example, "\n")))
	}
	if !c.HasParent() {
		r.rest()
	}
	see := `\fBgoclaw\fR(1), \fBgoclaw\-settings\fR(5)`
	if c.HasParent() && c.Parent().HasParent() {
		see = fmt.Sprintf(`\fB%s\fR(1), `, escaped(pageName(c.Parent()))) + see
	}
	r.put(".SH SEE ALSO\n%s", see)
	return r.err
}

// rest is what only the page of goclaw itself has.
func (r *roff) rest() {
	r.put(".SH EXIT STATUS")
	for _, x := range [][2]string{{"0", "done"}, {"1", "failed"}, {"2", "wrong usage"}, {"130", "stopped by Ctrl-C"}} {
		r.term(x[0], x[1])
	}
	r.put(".SH ENVIRONMENT")
	for _, x := range [][2]string{
		{"GOCLAW_HOME", "the folder of the sessions, the configuration and the memory files; default: ~/.openclaw/goclaw"},
		{"GOCLAW_CONFIG", "the configuration file; default: config.json in that folder"},
		{"ANTHROPIC_API_KEY, OPENAI_API_KEY, NAME_API_KEY", "the keys of providers"},
		{"GOCLAW_NO_LOCAL", "if set, no model server is looked for on this machine"},
		{"NO_COLOR", "if set, nothing is coloured"},
	} {
		r.term(x[0], x[1])
	}
}

// flags writes a section about flags, if there are any.
func (r *roff) flags(section string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	r.put(".SH %s", section)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			name += " " + strings.NewReplacer("STRINGARRAY", "TEXT", "STRING", "TEXT", "INT", "NUMBER").Replace(strings.ToUpper(value))
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
			usage += " (default: " + f.DefValue + ")"
		}
		r.term(name, usage)
	})
}

// settings writes the page of the configuration.
func (m Manual) settings(w io.Writer) error {
	r := &roff{w: w, version: m.Version}
	r.title("goclaw-settings", "5")
	r.put(".SH NAME\ngoclaw\\-settings \\- the configuration of goclaw")
	r.put(".SH DESCRIPTION")
	r.text(`The configuration is a file of JSON with comments, config.json in GOCLAW_HOME. goclaw setup asks for the main settings and writes it; goclaw config set KEY VALUE changes one; goclaw config shows all of them and where each came from.

Most settings also have an environment variable, which goes before the file.`)
	r.put(".SH SETTINGS")
	for _, key := range config.Keys() {
		doc := config.Meaning(key)
		if env := config.Variable(key); env != "" {
			doc += " ($" + env + ")"
		}
		r.term(key, doc)
	}
	r.put(".SH SEE ALSO\n\\fBgoclaw\\fR(1), \\fBgoclaw\\-setup\\fR(1), \\fBgoclaw\\-config\\-set\\fR(1)")
	return r.err
}
