package config

import (
	"strings"
	"testing"
)

func TestWithoutPassword(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://me:hunter22@db:5432/x?sslmode=require":      "postgres://me@db:5432/x?sslmode=require",
		"postgresql://me@/x?host=/run&password=hunter22&port=1": "postgresql://me@/x?host=%2Frun&port=1",
		"postgres://me:hunter22@a:1,b:2/x":                      "postgres://me@a:1,b:2/x",
		"postgres://me:hun/ter22@db/x":                          "postgres://...",
		"postgres://:hunter22@db/x?SSLPassword=hunter22":        "postgres://@db/x",
		"host=db user=me password=hunter22 dbname=x":            "host=db user=me password=*** dbname=x",
		`host=db sslpassword = 'hunter\'22 x' user=me`:          "host=db sslpassword=*** user=me",
		"postgres://db/x": "postgres://db/x",
	} {
		if got := WithoutPassword(dsn); got != want || strings.Contains(got, "ter22") {
			t.Errorf("%s is shown as %s, want %s", dsn, got, want)
		}
	}
}

func TestLikeDSN(t *testing.T) {
	for path, want := range map[string]bool{
		"postgres://db/x": true, "MYSQL://db": true, "host=db dbname=x": true, " password = 'x'": true, "sslmode=disable host=db": true,
		"/mnt/backup": false, "./host=db": false, "users=all": false, `C:\logs`: false, "": false,
	} {
		if got := LikeDSN(path); got != want {
			t.Errorf("%q: %t", path, got)
		}
	}
}

func TestDigest(t *testing.T) {
	const dsn = "postgres://me:hunter22@a:1,b:2/x?search_path=s"
	for _, same := range []string{
		"postgresql://me@b:2,a:1/x?search_path=s", "postgres://me:other@a:1,b:2/x?sslmode=require&search_path=s&password=hunter22&goclaw_lease=1s",
	} {
		if Digest(same) != Digest(dsn) {
			t.Errorf("%s is another database", same)
		}
	}
	if a, b := Digest("host=a dbname=x password='hun ter'"), Digest("dbname=x host = 'a'"); a != b {
		t.Errorf("in words it is %s and %s", a, b)
	}
	seen := map[string]string{}
	for _, d := range []string{dsn, "postgres://me@a:1/x?search_path=s", "postgres://me@a:1,b:2/y?search_path=s", "postgres://you@a:1,b:2/x?search_path=s",
		"postgres://me@a:1,b:2/x", "postgres://me@/x?host=/run", "host=a dbname=x", "host=a dbname=y"} {
		if name := Digest(d); seen[name] != "" || len(name) != 8 {
			t.Errorf("%s is %q, as is %s", d, name, seen[name])
		}
		seen[Digest(d)] = d
	}
}

func TestPostgres(t *testing.T) {
	const dsn = "postgres://me:hunter22@db/x"
	for _, c := range []struct {
		name, file string
		env        map[string]string
		store, bad string
	}{
		{"both", `{"session": {"store": "postgres", "path": "` + dsn + `"}}`, nil, "postgres", ""},
		{"the address alone", "{}", map[string]string{"GOCLAW_SESSION_PATH": dsn}, "postgres", ""},
		{"words", `{"session": {"store": "postgres", "path": "host=/run dbname=x"}}`, nil, "postgres", ""},
		{"no address", `{"session": {"store": "postgres"}}`, nil, "", `session.store is "postgres", which needs session.path`},
		{"another store", `{"session": {"store": "jsonl", "path": "` + dsn + `"}}`, nil, "", `session.path is the address of a PostgreSQL database, and session.store is "jsonl"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := load(t, c.file, c.env)
			if c.bad != "" {
				if err == nil || !strings.Contains(err.Error(), c.bad) || strings.Contains(err.Error(), "hunter22") {
					t.Fatalf("error is %v, want %q", err, c.bad)
				}
				return
			}
			if err != nil || l.Session.Store != c.store {
				t.Fatalf("the store is %q (%v)", l.Session.Store, err)
			}
			if l.Session.Path != dsn && c.name != "words" {
				t.Errorf("the path is %s", l.Session.Path)
			}
			if c.env != nil && l.Source("session.store") != "$GOCLAW_SESSION_PATH" {
				t.Errorf("the store comes from %s", l.Source("session.store"))
			}
			for _, leaf := range l.Leaves() {
				if s, _ := leaf.Value.(string); strings.Contains(s, "hunter22") {
					t.Errorf("%s shows the password: %s", leaf.Key, s)
				}
			}
		})
	}
}
