//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// Command terminal measures the chat on a terminal from outside: the first frame
// with many sessions and with a long one, how long a key press takes to be drawn
// while an answer streams, how much is written for what is shown, and the
// resident size. It prints the limits next to the figures and exits with 1 if
// one does not hold.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/vt"

	"goclaw/internal/tui/tuitest"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/sqlite"
	"goclaw/store/storetest"
)

// Sizes, which flags make smaller for a quick look.
var (
	sessions = flag.Int("sessions", 10_000, "in the store")
	records  = flag.Int("records", 100_000, "in the long session")
	tries    = flag.Int("tries", 9, "at the first frame")
	keys     = flag.Int("keys", 300, "that are pressed while an answer streams")
	rate     = flag.Int("rate", 500, "tokens a second")
	keep     = flag.String("keep", "", "a folder for the stores, used again if they are there")
	look     = flag.Bool("look", false, "print the last screen")
	program  = flag.String("bin", "", "the program, if it is built already")
)

func main() {
	flag.Parse()
	ok, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/terminal:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// figure is a line of the table. It must not be above most, if that is not 0.
type figure struct {
	what string
	got  float64
	unit string
	most float64
}

func (f figure) print() bool {
	limit, mark := "", ""
	if f.most != 0 {
		limit = fmt.Sprintf("%.4g %s", f.most, f.unit)
	}
	if f.most != 0 && f.got > f.most {
		mark = "  too much"
	}
	fmt.Printf("%-68s %10s %10s%s\n", f.what, fmt.Sprintf("%.1f %s", f.got, f.unit), limit, mark)
	return mark == ""
}

func run() (bool, error) {
	dir := *keep
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "bench-terminal"); err != nil {
			return false, err
		}
		defer os.RemoveAll(dir)
	}
	bin := *program
	if bin == "" {
		bin = filepath.Join(dir, "goclaw")
		build := exec.Command("go", "build", "-o", bin, "./cmd/goclaw")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return false, err
		}
	}
	many, long := filepath.Join(dir, "many"), filepath.Join(dir, "long")
	if err := fill(bin, many, *sessions, 6); err != nil {
		return false, err
	}
	if err := fill(bin, long, 1, *records); err != nil {
		return false, err
	}
	fmt.Printf("%-68s %10s %10s\n", "", "measured", "limit")
	ok := true
	for _, step := range []func() ([]figure, error){
		func() ([]figure, error) {
			return frames(bin, many, fmt.Sprintf("first frame, %d sessions in the store", *sessions))
		},
		func() ([]figure, error) {
			return frames(bin, long, fmt.Sprintf("first frame, a session of %d records", *records), "--session", string(storetest.ConversationID(1)))
		},
		func() ([]figure, error) { return stream(bin, long) },
	} {
		figures, err := step()
		if err != nil {
			return false, err
		}
		for _, f := range figures {
			ok = f.print() && ok
		}
	}
	return ok, nil
}

// fill makes a store with n sessions of that many records, and its index.
func fill(bin, home string, n, records int) error {
	path := filepath.Join(home, "sessions.db")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	st, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	defer st.Close()
	for i := range n {
		var recs []session.Record
		for r := range storetest.Conversation(uint64(i+1), records+100) {
			if recs = append(recs, r); len(recs) >= records && answered(r) {
				break // else the chat would say that the last turn was interrupted
			}
		}
		if err := st.Append(context.Background(), recs[0].Body.(session.Header).ID, recs...); err != nil {
			return err
		}
	}
	cmd := exec.Command(bin, "search", "anything")
	cmd.Env = environ(home)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("goclaw search: %w: %s", err, out)
	}
	return nil
}

func environ(home string) []string {
	return []string{"GOCLAW_HOME=" + home, "GOCLAW_NO_LOCAL=1", "HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}
}

func answered(r session.Record) bool {
	m, ok := r.Body.(session.Message)
	return ok && m.Role == llm.Assistant && m.Stop == llm.StopEnd
}

// open starts the chat on a terminal, and returns how long its first frame took:
// that with the prompt.
func open(bin, home, model string, args ...string) (*tuitest.Terminal, *exec.Cmd, time.Duration, error) {
	t, err := tuitest.Open(100, 40)
	if err != nil {
		return nil, nil, 0, err
	}
	cmd := exec.Command(bin, args...)
	cmd.Env = environ(home)
	if model != "" {
		cmd.Env = append(cmd.Env, "ANTHROPIC_BASE_URL="+model, "ANTHROPIC_API_KEY=sk-test-0123456789")
	}
	cmd.Dir = home
	begin := time.Now()
	if err := t.Start(cmd); err != nil {
		t.Close()
		return nil, nil, 0, err
	}
	if !t.UntilCells(20*time.Second, prompt) {
		err = fmt.Errorf("no prompt appeared; the terminal shows\n%s", t.Text())
	}
	took := time.Since(begin)
	if err != nil {
		end(t, cmd)
	}
	return t, cmd, took, err
}

func end(t *tuitest.Terminal, cmd *exec.Cmd) {
	if *look {
		fmt.Println(t.Screen())
	}
	cmd.Process.Kill()
	cmd.Wait()
	t.Close()
}

// prompt reports whether the cursor is behind the prompt.
func prompt(v *vt.Emulator) bool {
	at := v.CursorPosition()
	c := v.CellAt(at.X-2, at.Y)
	return c != nil && (c.Content == ">" || c.Content == "❯" || c.Content == "›")
}

func frames(bin, home, what string, args ...string) ([]figure, error) {
	var took, work []time.Duration
	for range *tries {
		t, cmd, d, err := open(bin, home, "", args...)
		if err != nil {
			return nil, err
		}
		end(t, cmd)
		took, work = append(took, d), append(work, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	return []figure{{what, quantile(took, 0.5), "ms", 80}, {"  of processors' time, until it was seen", quantile(work, 0.5), "ms", 0}}, nil
}

func quantile(ds []time.Duration, q float64) float64 {
	slices.Sort(ds)
	return float64(ds[min(int(q*float64(len(ds))), len(ds)-1)].Microseconds()) / 1000
}

// stream presses keys while an answer streams, in the long session.
func stream(bin, home string) ([]figure, error) {
	quiet := make(chan struct{}) // closed when the answer may end
	model := httptest.NewServer(tuitest.Model(func(q tuitest.Question, a *tuitest.Answer) {
		if q.Said == "short" {
			for i := range 3 * *rate {
				a.Say(token(i))
				time.Sleep(time.Second / time.Duration(*rate))
			}
			a.Say("\n\nThe end.")
			return
		}
		begin := time.Now()
		for i := 0; ; i++ {
			select {
			case <-quiet:
				return
			case <-a.Gone():
				return
			case <-time.After(time.Until(begin.Add(time.Duration(i) * time.Second / time.Duration(*rate)))):
				a.Say(token(i))
			}
		}
	}))
	defer model.Close()
	t, cmd, _, err := open(bin, home, model.URL, "--session", string(storetest.ConversationID(1)))
	if err != nil {
		return nil, err
	}
	defer end(t, cmd)

	before, text := len(t.All()), shown(t)
	t.Send("short\r")
	if !t.Until(time.Minute, func(s string, _, _ int) bool { return strings.Contains(s, "The end.") }) {
		return nil, fmt.Errorf("the answer did not end; the terminal shows\n%s", t.Screen())
	}
	written := float64(len(t.All())-before) / float64(shown(t)-text)
	if !t.UntilCells(20*time.Second, tuitest.Resting) {
		return nil, fmt.Errorf("the chat does not rest; the terminal shows\n%s", t.Screen())
	}

	t.Send("long\r")
	if !t.Until(20*time.Second, func(s string, _, _ int) bool { return strings.Count(s, "word9 ") > 1 }) {
		return nil, fmt.Errorf("no answer; the terminal shows\n%s", t.Screen())
	}
	var took []time.Duration
	size := 0.0
	for i := range *keys {
		for _, key := range []string{string(rune('A' + i%26)), "\x7f"} {
			time.Sleep(time.Duration(11+7*(i%5)) * time.Millisecond)
			begin := time.Now()
			t.Send(key)
			drawn := t.UntilCells(5*time.Second, func(v *vt.Emulator) bool {
				at := v.CursorPosition()
				c := v.CellAt(at.X-1, at.Y)
				return c != nil && (c.Content == string(rune('A'+i%26))) == (key != "\x7f")
			})
			if !drawn {
				return nil, fmt.Errorf("key %q is not drawn; the terminal shows\n%s", key, t.Screen())
			}
			took = append(took, time.Since(begin))
		}
		size = max(size, resident(cmd.Process.Pid))
	}
	close(quiet)
	if !t.UntilCells(20*time.Second, tuitest.Resting) { // an interrupted turn would change the next measurement with -keep
		return nil, fmt.Errorf("the chat does not rest; the terminal shows\n%s", t.Screen())
	}
	return []figure{
		{fmt.Sprintf("a key drawn while %d tokens/s stream, median", *rate), quantile(took, 0.5), "ms", 16},
		{fmt.Sprintf("a key drawn while %d tokens/s stream, 99%%", *rate), quantile(took, 0.99), "ms", 0},
		{"bytes written for each byte of text shown, while it streams", written, "x", 3},
		{fmt.Sprintf("resident size then, in a session of %d records", *records), size, "MB", 100},
	}, nil
}

// token is the i-th of an answer, in the shapes that answers have.
func token(i int) string {
	switch {
	case i%240 == 0:
		return fmt.Sprintf("\n\n## Part %d\n\n", i/240)
	case i%240 == 120:
		return "\n\n```go\n"
	case i%240 == 160:
		return "\n```\n\n"
	case i%240 > 120 && i%240 < 160 && i%8 == 0:
		return "\n\t"
	case i%60 == 59:
		return "\n\n"
	case i%31 == 0:
		return "**bold** "
	}
	return fmt.Sprintf("word%d ", i%10)
}

// shown is how much text the terminal has, without the blanks of its layout.
func shown(t *tuitest.Terminal) int { return len(t.Text()) }

// resident returns the size of a process in MB, 0 if it is not known.
func resident(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0 // not Linux
	}
	for line := range strings.Lines(string(status)) {
		var kb float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kb); err == nil {
			return kb / 1024
		}
	}
	return 0
}
