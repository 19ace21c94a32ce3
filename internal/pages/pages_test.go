package pages

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// database makes a database with a table t of n rows, of all kinds of values and
// many lengths. Half of it is in the write-ahead log if wal.
func database(t testing.TB, path string, pageSize, n int, wal bool) *sqlite3.Conn {
	t.Helper()
	c, err := sqlite3.Open(path)
	must(t, err)
	must(t, c.Exec(fmt.Sprintf("PRAGMA page_size = %d; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (n INTEGER PRIMARY KEY, i, s, b)", pageSize)))
	rng := rand.New(rand.NewPCG(uint64(pageSize), uint64(n)))
	for i := range n {
		if wal && i == n/2 {
			must(t, c.Exec("PRAGMA wal_checkpoint(TRUNCATE)"))
		}
		if i%20 == 0 {
			must(t, c.Exec("BEGIN"))
		}
		size := rng.IntN(200)
		if i%17 == 0 && pageSize <= 4096 || i%97 == 0 {
			size = rng.IntN(5 * pageSize)
		}
		must(t, c.Exec(fmt.Sprintf("INSERT INTO t VALUES (%d, %d, printf('%%.*c', %d, 'x') || %d, randomblob(%d))",
			1+i*i, rng.Int64()>>rng.IntN(64), size, i, size/2)))
		if i%20 == 19 {
			must(t, c.Exec("COMMIT"))
		}
	}
	if !wal {
		must(t, c.Exec("PRAGMA wal_checkpoint(TRUNCATE)"))
	}
	return c
}

// all returns the rows of the table t by number.
func all(t testing.TB, path string) map[int64][]Value {
	t.Helper()
	f, err := Open(path)
	must(t, err)
	defer f.Close()
	got := map[int64][]Value{}
	must(t, f.Rows(func(rows []Row) error {
		for _, r := range rows {
			if len(r.Types) != 4 || !r.Types[0].Null() || !r.Types[1].Int() || !r.Types[2].Text() || !r.Types[3].Blob() {
				continue
			}
			if r.Apart || r.Later {
				t.Errorf("row %d is doubted in a file that is whole", r.ID)
			}
			v, err := f.Values(r)
			must(t, err)
			got[r.ID] = v
		}
		return nil
	}))
	return got
}

// Every row that SQLite reads is found, with its values, in files of all page
// sizes, whether it is in the write-ahead log or not.
func TestRowsAreSQLites(t *testing.T) {
	for _, wal := range []bool{false, true} {
		for _, size := range []int{512, 4096, 65536} {
			t.Run(fmt.Sprint(size, " wal=", wal), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "t.db")
				c := database(t, path, size, 120, wal)
				defer c.Close()
				must(t, c.Exec("DELETE FROM t WHERE n % 7 = 3"))
				if !wal {
					must(t, c.Exec("PRAGMA wal_checkpoint(TRUNCATE)"))
				}
				got := all(t, path)
				stmt, _, err := c.Prepare("SELECT n, i, s, b FROM t")
				must(t, err)
				defer stmt.Close()
				rows := 0
				for stmt.Step() {
					rows++
					v := got[stmt.ColumnInt64(0)]
					if len(v) != 4 || v[1].Int != stmt.ColumnInt64(1) || string(v[2].Bytes) != stmt.ColumnText(2) || !bytes.Equal(v[3].Bytes, stmt.ColumnRawBlob(3)) {
						t.Fatalf("row %d is %v", stmt.ColumnInt64(0), v)
					}
				}
				if rows != len(got) || rows < 60 {
					t.Errorf("%d rows are found, want %d", len(got), rows)
				}
			})
		}
	}
}

// The size of a page is found without the header.
func TestPageSizeWithoutHeader(t *testing.T) {
	for _, size := range []int{512, 4096, 8192, 65536} {
		path := filepath.Join(t.TempDir(), "t.db")
		must(t, database(t, path, size, 120, false).Close())
		want := len(all(t, path))
		b, err := os.ReadFile(path)
		must(t, err)
		clear(b[:min(size, 4096)])
		must(t, os.WriteFile(path, b, 0o600))
		f, err := Open(path)
		must(t, err)
		if f.Close(); f.size != int64(size) {
			t.Errorf("pages of %d bytes are taken for %d", size, f.size)
			continue
		}
		if got := len(all(t, path)); got != want {
			t.Errorf("pages of %d bytes: %d rows are found, want %d", size, got, want)
		}
	}
}

// A frame of the write-ahead log that is damaged costs what is in it and nowhere
// else; SQLite itself drops all that follow it.
func TestDamagedFrame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	c := database(t, path, 4096, 120, true)
	defer c.Close()
	want := len(all(t, path))
	wal, err := os.ReadFile(path + "-wal")
	must(t, err)
	frames := (len(wal) - logHeader) / (frameHeader + 4096)
	for _, damage := range []string{"salts", "checksum", "header"} {
		for k := 0; k < frames-1; k += 9 {
			b := slices.Clone(wal)
			at := logHeader + k*(frameHeader+4096)
			switch damage {
			case "salts":
				b[at+9] ^= 4
			case "checksum":
				b[at+17] ^= 4
			case "header":
				clear(b[:logHeader])
			}
			other := filepath.Join(t.TempDir(), "t.db")
			db, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(other, db, 0o600))
			must(t, os.WriteFile(other+"-wal", b, 0o600))
			f, err := Open(other)
			must(t, err)
			got := map[int64]bool{}
			must(t, f.Rows(func(rows []Row) error {
				for _, r := range rows {
					if len(r.Types) == 4 && r.Types[0].Null() && r.Types[3].Blob() {
						got[r.ID] = true
					}
				}
				return nil
			}))
			must(t, f.Close())
			if len(got) != want {
				t.Fatalf("%s of frame %d: %d rows are found, want %d", damage, k, len(got), want)
			}
			if damage == "header" {
				break
			}
		}
	}
}

// Pages on the list of free pages are left out; a list that is damaged leaves
// nothing out.
func TestFreePages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	c := database(t, path, 1024, 200, false)
	must(t, c.Exec("DELETE FROM t WHERE n > 2500; PRAGMA wal_checkpoint(TRUNCATE)")) // whole pages, which keep their bytes
	must(t, c.Close())
	want := len(all(t, path))
	if want != 50 {
		t.Fatalf("%d rows are found, want 50", want)
	}
	b, err := os.ReadFile(path)
	must(t, err)
	if n := binary.BigEndian.Uint32(b[36:]); n < 10 {
		t.Fatalf("%d pages are free", n)
	}
	binary.BigEndian.PutUint32(b[36:], 1)
	must(t, os.WriteFile(path, b, 0o600))
	if got := len(all(t, path)); got <= want {
		t.Errorf("with a damaged list %d rows are found, want more than %d", got, want)
	}
}

// FuzzPages: no bytes make it panic, or use more memory than they have.
func FuzzPages(f *testing.F) {
	path := filepath.Join(f.TempDir(), "t.db")
	c := database(f, path, 512, 40, true)
	defer c.Close()
	db, err := os.ReadFile(path)
	must(f, err)
	wal, err := os.ReadFile(path + "-wal")
	must(f, err)
	f.Add(db, wal)
	f.Add(db[:len(db)/2], []byte{})
	f.Add(db[100:], wal[30:])
	f.Add([]byte{}, wal)
	f.Fuzz(func(t *testing.T, db, wal []byte) {
		path := filepath.Join(t.TempDir(), "t.db")
		must(t, os.WriteFile(path, db, 0o600))
		must(t, os.WriteFile(path+"-wal", wal, 0o600))
		f, err := Open(path)
		must(t, err)
		defer f.Close()
		must(t, f.Rows(func(rows []Row) error {
			for _, r := range rows {
				v, err := f.Values(r)
				size := 0
				for _, v := range v {
					size += len(v.Bytes)
				}
				if limit := (len(db) + len(wal) + 2*maxPage) * 2; err == nil && size > limit {
					t.Fatalf("a row of %d bytes in a file of %d", size, len(db)+len(wal))
				}
			}
			return nil
		}))
	})
}
