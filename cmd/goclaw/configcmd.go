package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/config"
	"goclaw/internal/models"
	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
	"goclaw/tool"
)

func configCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting and where it came from",
		Args:  atMost(0),
		RunE:  func(*cobra.Command, []string) error { return showConfig(a.env, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a list of objects")
	cmd.AddCommand(&cobra.Command{
		Use:   "init",
		Short: "Write a commented file with every setting",
		Args:  atMost(0),
		RunE: func(*cobra.Command, []string) error {
			home, err := config.Home(a.getenv)
			if err != nil {
				return err
			}
			path := filepath.Join(home, "config.json")
			if err := writeSample(path); err != nil {
				return err
			}
			return a.print("wrote " + path)
		},
	}, configSetCmd(a))
	return cmd
}

func configSetCmd(a *app) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Change a setting in the configuration file",
		Long: `Changes one setting in the file and leaves everything else in it as it is,
comments included. A wrong name or value changes nothing. VALUE is text, or JSON
where the setting is not text.`,
		Example: `  goclaw config set model anthropic/claude-sonnet-4-5
  goclaw config set tools.allow '["bash(go test)"]'
  goclaw config set --remove model`,
		Args: func(cmd *cobra.Command, args []string) error {
			if remove {
				return exactly("KEY")(cmd, args)
			}
			return exactly("KEY", "VALUE")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error { return setConfig(a.env, args, remove) },
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the setting from the file, so that its default counts")
	return cmd
}

// checkRules refuses a list with something that is no rule. What is no list of
// texts is refused by the configuration.
func checkRules(value any) error {
	list, _ := value.([]any)
	for _, v := range list {
		if text, ok := v.(string); ok {
			if _, err := tool.ParseRule(text); err != nil {
				return err
			}
		}
	}
	return nil
}

func setConfig(e *env, args []string, remove bool) error {
	path, err := config.Path(e.getenv)
	if err != nil {
		return err
	}
	name, err := config.Name(args[0])
	if err != nil {
		return usage("%s", strings.TrimPrefix(err.Error(), "config: "))
	}
	if remove {
		if err := config.Edit(path, name, nil); err != nil {
			return err
		}
		return e.print(fmt.Sprintf("removed %s from %s", transcript.Name(args[0]), path))
	}
	var value any
	if key := strings.Join(name, "."); key == "tools.allow" && json.Unmarshal([]byte(args[1]), &value) == nil {
		if err := checkRules(value); err != nil {
			return usage("%s: %v", key, err)
		}
	}
	// Text as it is, unless only another kind of value fits.
	err = config.Edit(path, name, args[1])
	if err != nil && json.Unmarshal([]byte(args[1]), &value) == nil {
		if _, text := value.(string); !text && value != nil {
			err = config.Edit(path, name, value)
		}
	}
	var wrong config.WrongValue
	switch {
	case errors.As(err, &wrong):
		return usage("%w", wrong)
	case err != nil:
		return err
	}
	if env := config.Variable(strings.Join(name, ".")); env != "" && e.getenv(env) != "" {
		e.warn("$%s is set, and overrides it", env)
	}
	return e.print(fmt.Sprintf("set %s in %s", transcript.Name(args[0]), path))
}

func showConfig(e *env, asJSON bool) error {
	c, err := e.config()
	if err != nil {
		return err
	}
	type entry struct {
		Key    string `json:"key"`
		Value  any    `json:"value"`
		Source string `json:"source"`
	}
	entries := []entry{}
	for _, l := range c.Leaves() {
		entries = append(entries, entry{l.Key, l.Value, c.Source(l.Key)})
	}
	for _, f := range models.Limiting(models.Facts(c)) {
		name := transcript.Printable(f.Name)
		entries = append(entries, entry{"remembered." + f.What + "." + name, f.Value, f.Text + "; goclaw models forget " + name})
	}
	if asJSON {
		return e.printJSON(entries)
	}
	st := e.style()
	fmt.Fprintln(e.out, st.Dim("file: "+c.File))
	for _, l := range entries {
		v, err := json.Marshal(l.Value)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.out, "%-42s %s  %s\n", transcript.Name(l.Key), v, st.Dim("("+transcript.Name(l.Source)+")"))
	}
	return nil
}

// writeSample writes the commented configuration to path, where there must be
// no other.
func writeSample(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if said, err := wholefile.Read(path, wholefile.Small); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	} else if len(bytes.TrimSpace(said)) > 0 {
		return fmt.Errorf("%s exists already: goclaw config shows what it says", path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := cmp.Or(f.Chmod(0o600), f.Truncate(0)); err != nil {
		return err
	}
	if _, err := f.WriteAt(config.Sample(), 0); err != nil {
		return err
	}
	return f.Close()
}
