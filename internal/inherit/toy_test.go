package inherit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/codec"
	"goclaw/internal/inherit"
	"goclaw/internal/inherit/doctor"
	"goclaw/internal/inherit/source"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/memory"
)

// toy is a seventh program: a diary of lines "Q: ..." and "A: ...", which begins
// with a line "toy NAME".
type toy struct{}

func (toy) Program() string { return "toy" }

func (toy) Places(home string, getenv func(string) string) []string {
	return source.Under(home, getenv, "TOY_HOME", ".toy", "diaries")
}

func (toy) Named(name string) bool { return strings.HasSuffix(name, ".toy") }

func (toy) Sniff(source.Line, *source.Sniffed) (mine, done bool) { return false, false }

func (toy) Open(f *source.File) ([]*source.Transcript, error) {
	if !strings.HasSuffix(f.Path, ".toy") {
		return nil, nil
	}
	t := f.Transcript("toy")
	t.Key, t.Listed = session.Key("toy:diary:"+string(t.ID)), true
	t.Stream = func() codec.Stream { return &diary{} }
	return []*source.Transcript{t}, nil
}

// diary reads the lines of a toy.
type diary struct{ last string }

func (d *diary) Line(n int, line []byte, out []session.Record) ([]session.Record, error) {
	role, text, ok := strings.Cut(string(line), ": ")
	if n == 1 {
		return append(out, session.Record{Time: time.Unix(1, 0).UTC(), Body: session.Header{Version: session.Version, ID: session.ID(strings.TrimPrefix(string(line), "toy "))}}), nil
	}
	if !ok {
		return out, errors.New("neither a question nor an answer")
	}
	m := llm.UserText(text)
	if role == "A" {
		m.Role = llm.Assistant
	}
	r := session.Record{ID: fmt.Sprint("line-", n), Parent: d.last, Time: time.Unix(int64(n), 0).UTC(), Body: session.Message{Message: m, Stop: llm.StopEnd}}
	d.last = r.ID
	return append(out, r), nil
}

func (d *diary) End(out []session.Record) []session.Record { return out }

// TestSeventhProgram: a program that nobody knew is found, imported, followed and
// examined by what it says of itself, in one type.
func TestSeventhProgram(t *testing.T) {
	ctx := context.Background()
	home := t.TempDir()
	path := filepath.Join(home, ".toy/diaries/monday.toy")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	add("toy monday\nQ: is it raining?\nA: it is\n")
	find := inherit.FindOptions{Sources: append([]func() source.Source{func() source.Source { return toy{} }}, inherit.Sources...)}
	st := memory.New()
	said := func() (out []string) {
		t.Helper()
		in, err := session.Current(ctx, st, "toy:diary:monday")
		if err != nil {
			t.Fatal(err)
		}
		if in.Origin.Program != "toy" || !in.Mirror() {
			t.Errorf("origin %+v", in.Origin)
		}
		s, err := session.Open(ctx, st, in.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Branch {
			if m, ok := r.Body.(session.Message); ok {
				out = append(out, string(m.Role)+" "+m.Text())
			}
		}
		return out
	}
	take := func() inherit.Report {
		t.Helper()
		cat, err := inherit.Find(ctx, toy{}.Places(home, func(string) string { return "" }), find)
		if err != nil || len(cat.Transcripts) != 1 || len(cat.Problems) > 0 {
			t.Fatalf("%+v, %v", cat, err)
		}
		defer cat.Close()
		rep, err := inherit.Import(ctx, st, cat, inherit.ImportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		x, err := doctor.Examine(ctx, cat.Transcripts[0])
		if err != nil || len(x.Findings) > 0 {
			t.Errorf("examined: %+v, %v", x.Findings, err)
		}
		return rep
	}
	if rep := take(); rep.Count(inherit.New) != 1 {
		t.Errorf("%+v", rep.Outcomes)
	}
	want := []string{"user is it raining?", "assistant it is"}
	if diff := cmp.Diff(want, said()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	add("Q: still?\nA: no\n")
	if rep := take(); rep.Count(inherit.Grown) != 1 || rep.Records() != 2 {
		t.Errorf("%+v", rep.Outcomes)
	}
	if diff := cmp.Diff(append(want, "user still?", "assistant no"), said()); diff != "" {
		t.Errorf("grown (-want +got):\n%s", diff)
	}
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	add("Q: and now?\nA: sun\n")
	got := 0
	err := inherit.Follow(ctx, st, []inherit.Root{{Path: home}}, inherit.FollowOptions{Find: find, Imported: func(rep inherit.Report, err error) {
		got = rep.Records()
		stop()
	}})
	if !errors.Is(err, context.Canceled) || got != 2 {
		t.Errorf("followed: %d records, %v", got, err)
	}
}

// full is a store whose disk is full.
type full struct{ session.Store }

func (f full) Append(context.Context, session.ID, ...session.Record) error {
	return fmt.Errorf("append: %w", session.ErrFull)
}

// TestFullDisk: a store that cannot be written stops the import, and the error
// says why in the words of package session.
func TestFullDisk(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.jsonl"), header("a")+"\n")
	cat, err := inherit.Find(ctx, []string{dir}, inherit.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cat.Close()
	rep, err := inherit.Import(ctx, full{memory.New()}, cat, inherit.ImportOptions{})
	var store *inherit.StoreError
	if !errors.As(err, &store) || !errors.Is(err, session.ErrFull) || rep.Count(inherit.Left) != 1 {
		t.Errorf("%v, %+v", err, rep.Outcomes)
	}
}
