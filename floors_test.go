package goclaw_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// floors lists each room (a package and the packages below it), its floor and
// the rooms that it may import, which are never on a higher floor. internal/ and
// cmd/ may import every room that is not higher.
var floors = []struct {
	room  string
	floor int
	may   string
}{
	{"llm", 1, "internal/text"},
	{"internal/near", 1, ""},
	{"internal/text", 1, ""},
	{"internal/memoryfiles", 1, ""},
	{"internal/sqlx", 1, ""},
	{"internal/rawjson", 1, ""},
	{"internal/json5", 1, ""},
	{"internal/watch", 1, ""},
	{"internal/wholefile", 1, ""},
	{"internal/secrets", 1, ""},
	{"internal/parts", 1, ""},
	{"internal/shell", 1, ""},
	{"session", 2, "llm"},
	{"provider", 2, "llm internal/memoryfiles internal/rawjson internal/secrets internal/text"},
	{"tool", 2, "llm internal/memoryfiles internal/near internal/secrets internal/shell internal/text"},
	{"internal/pages", 2, "internal/wholefile"},
	{"internal/mirrors", 3, "llm session"},
	{"internal/naming", 3, "llm session internal/mirrors internal/near"},
	{"window", 3, "llm session internal/memoryfiles internal/text"},
	{"internal/codec", 3, "llm session internal/rawjson"},
	{"compact", 4, "llm session window internal/text"},
	{"recall", 4, "llm session internal/near internal/parts internal/watch internal/sqlx internal/memoryfiles internal/naming internal/secrets internal/text"},
	{"store/internal", 4, "session internal/codec internal/sqlx internal/wholefile"},
	{"store/sqlite", 4, "session store/internal internal/pages internal/sqlx internal/wholefile"},
	{"store/postgres", 4, "session store/internal"},
	{"store/memory", 4, "session"},
	{"store/jsonl", 4, "session internal/codec internal/rawjson internal/json5 internal/text internal/wholefile store/internal"},
	{"store/storetest", 4, "llm session store/memory"},
	{"agent", 5, "llm session window compact"},
	{"runner", 6, "llm session window compact agent internal/mirrors internal/naming"},
	{"internal", 7, "..."},
	{"cmd", 8, "..."},
}

// outside are the packages that must not reach the public library: it reads
// no environment, no flags, and logs nothing.
var outside = []string{"flag", "log", "log/slog", "os/user", "github.com/spf13/cobra", "github.com/spf13/pflag"}

// roomOf returns the place in floors of the room that pkg belongs to: the one
// with the longest name, -1 if there is none.
func roomOf(t *testing.T, pkg string) int {
	best := -1
	for i, f := range floors {
		if (pkg == f.room || strings.HasPrefix(pkg, f.room+"/")) && (best < 0 || len(f.room) > len(floors[best].room)) {
			best = i
		}
	}
	if best < 0 {
		t.Errorf("package %s stands on no floor: add it to the table and to docs", pkg)
	}
	return best
}

func TestNoArrowRunsUp(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen, top := 0, map[string][]string{}
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
		if from := topRoom(t, pkg); from != "" {
			for _, imp := range p.Imports {
				if to, ours := strings.CutPrefix(imp, "goclaw/"); ours && topRoom(t, to) != from {
					top[from] = append(top[from], topRoom(t, to))
				}
			}
		}
	}
	for room := range top {
		if way := path(top, room, room, map[string]bool{}); way != nil {
			t.Errorf("rooms import each other in a circle: %s", strings.Join(way, " -> "))
			break
		}
	}
	if seen < 3 {
		t.Fatalf("go list named %d packages of goclaw", seen)
	}
}

// topRoom returns the room below internal/ that pkg is part of, if it is on
// the highest floor there; "" if not.
func topRoom(t *testing.T, pkg string) string {
	if i := roomOf(t, pkg); i < 0 || floors[i].room != "internal" {
		return ""
	}
	return strings.Join(strings.SplitN(pkg, "/", 3)[:2], "/")
}

// path returns the rooms on a way from one room to another, nil if there is none.
func path(imports map[string][]string, from, to string, tried map[string]bool) []string {
	for _, next := range imports[from] {
		if next == to {
			return []string{from, to}
		}
		if next == "" || tried[next] {
			continue
		}
		tried[next] = true
		if way := path(imports, next, to, tried); way != nil {
			return append([]string{from}, way...)
		}
	}
	return nil
}

func check(t *testing.T, pkg string, imports []string) {
	i := roomOf(t, pkg)
	if i < 0 {
		return
	}
	from := floors[i]
	for _, imp := range imports {
		to, ours := strings.CutPrefix(imp, "goclaw/")
		if !ours {
			if from.floor < 7 && slices.Contains(outside, imp) && !strings.HasPrefix(pkg, "store/storetest") {
				t.Errorf("%s (floor %d) imports %s: the library reads no flags and logs nothing", pkg, from.floor, imp)
			}
			continue
		}
		j := roomOf(t, to)
		if strings.HasPrefix(pkg, "internal/inherit/") && j == i && to != "internal/inherit/source" {
			t.Errorf("%s imports %s: a program whose sessions are inherited knows no other", pkg, to)
		}
		if j < 0 || i == j {
			continue
		}
		switch down := floors[j]; {
		case down.floor > from.floor:
			t.Errorf("%s (floor %d) imports %s (floor %d): an arrow runs up", pkg, from.floor, to, down.floor)
		case from.may != "..." && !slices.Contains(strings.Fields(from.may), down.room):
			t.Errorf("%s imports %s: %s may import %q only", pkg, to, from.room, from.may)
		}
	}
}
