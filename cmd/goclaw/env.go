package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"goclaw/internal/config"
	"goclaw/internal/inherit/openclaw"
	"goclaw/internal/permits"
	"goclaw/internal/progress"
	"goclaw/internal/repl/line"
	"goclaw/internal/stores"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// env is what every command has: the streams, the environment and the
// configuration.
type env struct {
	in       io.Reader
	out, err *terminal.Writer // see data for what is not for people
	getenv   func(string) string

	given  given          // by flags
	plain  bool           // --plain: a chat draws nothing
	conf   *config.Loaded // nil until config has loaded it
	placed stores.Placed  // where the sessions are

	openclaw openclaw.Installation // if its sessions are inherited

	unsaved []session.ID // the last list, if it could not be remembered

	interrupted atomic.Bool  // Ctrl-C was pressed
	grace       atomic.Int64 // how much longer than others the command may take to end after a signal
	rescue      bool         // how to repair the database was said

	tty tty
}

// tty is the terminal, which a chat changes.
type tty struct {
	undo atomic.Pointer[func()] // nil: it is as it was
}

// restore makes the terminal what it was.
func (t *tty) restore() {
	if f := t.undo.Load(); f != nil {
		(*f)()
	}
}

// config loads the configuration once and shows its warnings.
func (e *env) config() (*config.Loaded, error) {
	if e.conf != nil {
		return e.conf, nil
	}
	c, err := config.Load(e.getenv, os.Environ())
	if err != nil {
		return nil, err
	}
	if err := e.given.apply(c); err != nil {
		return nil, err
	}
	adopt(e, c)
	for _, w := range c.Warnings {
		e.warn("%s", w)
	}
	e.placed = stores.Place(c)
	if c.Sources["workspace"] == "" && permits.Fence(c).Check(c.Workspace) != nil {
		c.Workspace = c.Memory // started in goclaw's own home
	}
	e.conf = c
	return c, nil
}

// warn tells the user on standard error that something is wrong.
func (e *env) warn(format string, args ...any) { transcript.Say(e.err, "goclaw: "+format, args...) }

// note tells the user, dimmed and on standard error, what is not the answer.
func (e *env) note(format string, args ...any) {
	fmt.Fprintln(e.err, e.style().Dim(transcript.Wrap(transcript.Printable(fmt.Sprintf(format, transcript.Fields(args)...)), terminal.Columns(e.err))))
}

// print writes lines to standard output.
func (e *env) print(lines ...string) error {
	for _, l := range lines {
		if _, err := fmt.Fprintln(e.out, l); err != nil {
			return err
		}
	}
	return nil
}

// result prints what a command did: v for programs, or one line for people.
func (e *env) result(asJSON bool, v any, format string, args ...any) error {
	if asJSON {
		return e.printJSON(v)
	}
	return e.print(fmt.Sprintf(format, transcript.Fields(args)...))
}

func (e *env) printJSON(v any) error { return writeJSON(e.out, v) }

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// damage reports on standard error what could not be read. The output is then
// incomplete, and the exit code tells programs so.
func (e *env) damage(ds ...*session.Damage) error {
	for _, d := range ds {
		e.warn("damaged: %s", d.Error())
		if d.Size == 0 && d.Line == 0 && !e.rescue { // lost with a page of the database
			e.rescue = true
			transcript.Say(e.err, "  goclaw doctor %s --repair-to NEW.db makes a new database from every record that is left", d.File)
		}
	}
	if len(ds) > 0 {
		return errQuiet
	}
	return nil
}

// newBar returns what shows progress on standard error.
func newBar(e *env) *progress.Bar { return progress.New(e.err, e.getenv("TERM") == "dumb") }

// style has colours if the output is a terminal that shows them.
func (e *env) style() transcript.Style {
	able := terminal.Is(e.out) && e.getenv("TERM") != "dumb"
	return transcript.Style{Colour: able && e.getenv("NO_COLOR") == "", Render: able}
}

// data returns standard output for what another program reads byte for byte. A
// terminal gets text nevertheless.
func (e *env) data() io.Writer {
	if terminal.Is(e.out) {
		return e.out
	}
	return e.out.Under()
}

// columns returns the width of the terminal that is written to, or 0 if there
// is none.
func (e *env) columns() int {
	if !terminal.Is(e.out) {
		return 0
	}
	return e.width()
}

func (e *env) width() int { return cmp.Or(terminal.Columns(e.out), 100) }

// confirm asks a yes-or-no question on a terminal; elsewhere the answer is no.
func (e *env) confirm(question string) bool {
	if !terminal.Is(e.in) {
		return false
	}
	answer, err := line.NewPlain(e.in, e.err).Ask(context.Background(), transcript.Name(question)+" [y/N] ")
	return err == nil && line.Yes(answer)
}

// interruptible returns a context that the first Ctrl-C cancels; the second
// ends the program at once.
func (e *env) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signal.Ignore(syscall.SIGPIPE) // a reader that leaves does not end the turn
	sig := make(chan os.Signal, 2)
	signal.Notify(sig, os.Interrupt)
	var once sync.Once
	stop := func() { once.Do(func() { signal.Stop(sig); close(sig); cancel() }) }
	go func() {
		if _, ok := <-sig; !ok {
			return
		}
		e.interrupted.Store(true)
		cancel()
		if _, ok := <-sig; ok {
			os.Exit(130)
		}
	}()
	return ctx, stop
}
