package goclaw_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// floors is the plan of the house: each package and the floor it stands on. A
// package may import only what stands lower; siblings only as named in beside.
var floors = []struct {
	pkg   string // of module goclaw; "/..." takes in what is below
	floor int
}{
	{"llm/...", 1},
	{"internal/near/...", 1},
	{"internal/sqlx/...", 1},
	{"session/...", 2},
	{"provider/...", 2},
	{"tool/...", 2},
	{"watch/...", 2},
	{"window/...", 3},
	{"codec/...", 3},
	{"compact/...", 4},
	{"recall/...", 4},
	{"store/...", 4},
	{"agent/...", 5},
	{"runner/...", 6},
	{"internal/...", 7},
	{"cmd/...", 8},
}

// beside are the arrows that stay on one floor.
var beside = map[string][]string{
	"compact":                    nil,
	"store/sqlite":               {"store/internal/sqlstore", "store/internal/hold", "store/internal/space"},
	"store/postgres":             {"store/internal/sqlstore"},
	"store/jsonl":                {"store/internal/hold", "store/internal/space"},
	"store/storetest/benchtable": {"store/sqlite", "store/jsonl", "store/storetest"},
}

// outside are the packages that must not reach the public library: it reads
// no environment, no flags, and logs nothing.
var outside = []string{"flag", "log", "log/slog", "os/user", "github.com/spf13/cobra", "github.com/spf13/pflag"}

func floorOf(t *testing.T, pkg string) int {
	for _, f := range floors {
		if base, ok := strings.CutSuffix(f.pkg, "/..."); ok && (pkg == base || strings.HasPrefix(pkg, base+"/")) {
			return f.floor
		}
	}
	t.Errorf("package %s stands on no floor: add it to the table and to docs", pkg)
	return 0
}

func TestNoArrowRunsUp(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		pkg, ok := strings.CutPrefix(p.ImportPath, "goclaw/")
		if !ok {
			continue
		}
		seen++
		check(t, pkg, p.Imports)
	}
	if seen < 3 {
		t.Fatalf("go list named %d packages of goclaw", seen)
	}
}

func check(t *testing.T, pkg string, imports []string) {
	floor := floorOf(t, pkg)
	for _, imp := range imports {
		to, ours := strings.CutPrefix(imp, "goclaw/")
		if !ours {
			for _, o := range outside {
				if floor < 7 && imp == o && !strings.HasPrefix(pkg, "store/storetest") && !command(pkg) {
					t.Errorf("%s (floor %d) imports %s: the library reads no flags and logs nothing", pkg, floor, imp)
				}
			}
			continue
		}
		if down := floorOf(t, to); down > floor || down == floor && !sibling(pkg, to) {
			t.Errorf("%s (floor %d) imports %s (floor %d): an arrow runs up or sideways", pkg, floor, to, down)
		}
	}
}

// command reports whether pkg is a program that measures, not a library.
func command(pkg string) bool {
	_, name, _ := strings.Cut(pkg, "/bench")
	return name != ""
}

// sibling reports whether pkg may import to on its own floor: a part of its
// own room, or an arrow that is named.
func sibling(pkg, to string) bool {
	// A program whose sessions are inherited knows no other one.
	if strings.HasPrefix(pkg, "internal/inherit/") {
		return to == "internal/inherit/source"
	}
	room := func(p string) string { r, _, _ := strings.Cut(p, "/"); return r }
	if room(pkg) == room(to) && room(pkg) != "store" {
		return true
	}
	for _, b := range beside[pkg] {
		if b == to {
			return true
		}
	}
	return false
}
