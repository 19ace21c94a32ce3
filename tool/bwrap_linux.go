//go:build amd64 || arm64

package tool

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"time"
)

// Where the kernel's Landlock is missing or too old, bubblewrap does the same
// with namespaces, if it is installed and may make them.

// bubblewrap returns the program bwrap; "" if there is none that works.
func (b *bash) bubblewrap() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bwrap == nil {
		found := ""
		for _, dir := range filepath.SplitList(variable(b.env, "PATH")) {
			file := filepath.Join(dir, "bwrap")
			if info, err := os.Stat(file); err == nil && filepath.IsAbs(file) && executable(info) {
				found = file
				break
			}
		}
		if found != "" {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			args := append(b.wrapping(Confinement{Files: true, NoNetwork: true}), "true")
			if exec.CommandContext(ctx, found, args...).Run() != nil {
				found = ""
			}
		}
		b.bwrap = &found
	}
	return *b.bwrap
}

// wrap makes cmd run in bwrap.
func (b *bash) wrap(cmd *exec.Cmd, bwrap string, c Confinement) {
	cmd.Args = append(append(append([]string{"bwrap"}, b.wrapping(c)...), cmd.Path), cmd.Args[1:]...)
	cmd.Path = bwrap
}

// wrapping returns the arguments of bwrap for a confinement, up to the command.
func (b *bash) wrapping(c Confinement) []string {
	args := []string{"--die-with-parent", "--unshare-pid"}
	if c.NoNetwork {
		args = append(args, "--unshare-net")
	}
	if !c.Files {
		return append(args, "--dev-bind", "/", "/", "--proc", "/proc", "--")
	}
	args = append(args, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
	type place struct{ path, how string }
	a := b.fence.area(b.dir)
	var places []place
	for _, p := range a.hidden {
		places = append(places, place{p, "--tmpfs"})
	}
	for _, p := range a.open {
		places = append(places, place{p, "--ro-bind"})
	}
	for _, p := range b.writable() {
		places = append(places, place{p, "--bind"})
	}
	// What is mounted later covers what was before: the inner after the outer,
	// and of one place what is private at the end.
	order := []string{"--ro-bind", "--bind", "--tmpfs"}
	sort.SliceStable(places, func(i, j int) bool {
		x, y := places[i], places[j]
		return len(x.path) < len(y.path) || len(x.path) == len(y.path) && slices.Index(order, x.how) < slices.Index(order, y.how)
	})
	var after []string
	for _, p := range places {
		info, err := os.Stat(p.path)
		switch {
		case err != nil || p.how == "--tmpfs" && a.hides(filepath.Dir(p.path)) || p.how != "--tmpfs" && a.hides(p.path):
		case p.how != "--tmpfs":
			args = append(args, p.how, p.path, p.path)
		case info.IsDir():
			args = append(args, p.how, p.path)
			after = append(after, "--remount-ro", p.path)
		default:
			args = append(args, "--ro-bind", "/dev/null", p.path)
		}
	}
	return append(append(args, after...), "--")
}
