package inherit_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/inherit"
	"goclaw/internal/inherit/doctor"
	"goclaw/internal/pages"
	"goclaw/session"
	"goclaw/store/memory"
)

// events returns the events of a database of OpenClaw, by session and number, and
// the number of those on each page.
func events(t *testing.T, path string) (all map[string]map[int]bool, on map[int]int) {
	t.Helper()
	all, on = map[string]map[int]bool{}, map[int]int{}
	f, err := pages.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = f.Rows(func(rows []pages.Row) error {
		for _, r := range rows {
			if ty := r.Types; len(ty) != 7 || !ty[0].Text() || !ty[1].Int() || !ty[2].Text() && !ty[4].Blob() || !ty[3].Int() || !ty[4].Null() && !ty[4].Blob() {
				continue
			}
			v, err := f.Values(r)
			if err != nil {
				return err
			}
			id := string(v[0].Bytes)
			if all[id] == nil {
				all[id] = map[int]bool{}
			}
			all[id][int(v[1].Int)] = true
			on[int(r.Page)]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, on
}

// TestDamagedPage: whichever page of OpenClaw's database is damaged, only the
// rows on it are lost, in the import as in the repaired copy; of another page,
// nothing is. The finding names the session and the rows.
func TestDamagedPage(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(unpacked(t), "openclaw-2026.9.6/openclaw-agent.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "openclaw-agent.sqlite")
	write(t, path, string(whole))
	all, on := events(t, path)
	total := 0
	for _, rows := range all {
		total += len(rows)
	}
	if total < 150 || len(on) < 20 {
		t.Fatalf("%d events on %d pages", total, len(on))
	}
	roots := map[int]bool{} // of tables and indexes: the pages above the rows
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	stmt, _, err := db.Prepare("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0 AND (tbl_name = 'transcript_events' OR name IN ('session_nodes', 'session_windows'))")
	if err != nil {
		t.Fatal(err)
	}
	for stmt.Step() {
		roots[stmt.ColumnInt(0)] = true
	}
	stmt.Close()
	db.Close()
	for n := 1; n <= len(whole)/4096; n++ {
		index := n >= 230 && n <= 232 // of the events
		schema := n == 1 || n == 275
		if !roots[n] && on[n] == 0 && !index && !schema {
			continue
		}
		if on[n] > 0 && n%3 > 0 {
			continue // one of three is enough
		}
		for _, garbage := range []byte{0, 0xff} {
			b := bytes.Clone(whole)
			copy(b[(n-1)*4096:], bytes.Repeat([]byte{garbage}, 4096))
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			st := memory.New()
			rep, cat := take(t, st, nil, false, path)
			if rep.Count(inherit.Failed) > 0 || cat.Unread() > 0 {
				t.Fatalf("page %d: %v, %v", n, states(rep), cat.Problems)
			}
			got, keys := 0, 0
			var said []string
			for _, o := range rep.Outcomes {
				if o.Listed {
					keys++
				}
				for r, err := range st.Read(t.Context(), o.Log, 0) {
					if err != nil {
						t.Fatal(err)
					}
					if _, title := r.Body.(session.Title); !title && all[string(o.ID)] != nil {
						got++
					}
				}
				for _, d := range o.Damage {
					said = append(said, d.Error())
				}
			}
			// A header that is lost is replaced.
			if lost := total - got; lost > on[n] {
				t.Errorf("page %d has %d rows, and %d of %d are lost: %v %q", n, on[n], lost, total, cat.Problems, said)
			}
			if (schema || index || on[n] > 0) && keys < 8 {
				t.Errorf("page %d: %d sessions have their keys", n, keys)
			}
			if on[n] > 0 != (len(said) > 0) {
				t.Errorf("page %d has %d rows: %q", n, on[n], said)
			}
			for _, s := range said {
				if !strings.Contains(s, "cannot be read: ") || !strings.Contains(s, " page of the database is damaged") || !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(id string) bool { return strings.Contains(s, "#"+id+":") }) {
					t.Errorf("page %d: %s", n, s)
				}
			}
		}
	}
}

// TestDamagedPageIsFound: the doctor names the session and the rows, and a
// repaired copy has the others.
func TestDamagedPageIsFound(t *testing.T) {
	path := filepath.Join(unpacked(t), "openclaw-2026.9.6/openclaw-agent.sqlite")
	all, on := events(t, path)
	bad := slices.Sorted(maps.Keys(on))[len(on)/2]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[(bad-1)*4096 : bad*4096])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	cat, err := inherit.Find(t.Context(), []string{path}, inherit.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cat.Close()
	lost, rows := 0, 0
	for _, tr := range cat.Transcripts {
		if all[string(tr.ID)] == nil {
			continue
		}
		x, err := doctor.Examine(t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range x.Findings {
			var first, last int
			if strings.HasPrefix(f.What, "row ") {
				_, err = fmt.Sscanf(f.What, "row %d cannot", &first)
				last = first
			} else {
				_, err = fmt.Sscanf(f.What, "rows %d to %d cannot", &first, &last)
			}
			if err == nil {
				lost += last - first + 1
				if f.Path != path+"#"+string(tr.ID) || f.Line != first || !strings.Contains(f.Cost, "the rest of the session is read") {
					t.Errorf("%v", f)
				}
			}
		}
		var copied bytes.Buffer
		if err := doctor.Repair(t.Context(), tr, &copied); err != nil {
			t.Fatal(err)
		}
		rows += bytes.Count(copied.Bytes(), []byte("\n")) - strings.Count(copied.String(), `"goclaw.repair"`)
	}
	total := 0
	for _, of := range all {
		total += len(of)
	}
	if lost != on[bad] || rows < total-on[bad] || rows > total {
		t.Errorf("the page has %d rows: %d are named, the copy has %d of %d", on[bad], lost, rows, total)
	}
}
