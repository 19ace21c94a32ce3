package storekit_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/session/storekit"
	"goclaw/store/memory"
)

func TestCopy(t *testing.T) {
	src, dst := memory.New(), memory.New()
	recs := Log(User("1"), Answer("2"), User("3"))
	if err := src.Append(t.Context(), ID, recs...); err != nil {
		t.Fatal(err)
	}
	if err := dst.Append(t.Context(), ID, recs[:2]...); err != nil { // an interrupted copy
		t.Fatal(err)
	}
	if n, err := storekit.Copy(t.Context(), dst, src, ID); n != 2 || err != nil {
		t.Fatalf("copy of the rest = %d, %v, want 2", n, err)
	}
	got, err := Collect(dst.Read(t.Context(), ID, 0))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(recs, got, Same); d != "" {
		t.Errorf("copy (-want +got):\n%s", d)
	}
	if n, err := storekit.Copy(t.Context(), dst, src, ID); n != 0 || err != nil {
		t.Errorf("copy again = %d, %v, want 0", n, err)
	}
	other := memory.New()
	alien := recs[1]
	alien.ID = "x"
	if err := other.Append(t.Context(), ID, recs[0], alien); err != nil {
		t.Fatal(err)
	}
	if n, err := storekit.Copy(t.Context(), other, src, ID); n != 0 || !errors.Is(err, session.ErrConflict) {
		t.Errorf("copy over another history = %d, %v", n, err)
	}
	if err := dst.Append(t.Context(), ID, session.Record{Seq: 5, ID: "e4", Parent: "e3", Body: Answer("4")}); err != nil {
		t.Fatal(err)
	}
	if n, err := storekit.Copy(t.Context(), dst, src, ID); n != 0 || !errors.Is(err, session.ErrConflict) {
		t.Errorf("copy over a longer history = %d, %v", n, err)
	}
	if n, err := storekit.Copy(t.Context(), dst, src, "nobody"); n != 0 || !errors.Is(err, session.ErrNotFound) {
		t.Errorf("copy of nothing = %d, %v", n, err)
	}
	broken := memory.New()
	n, err := storekit.Copy(t.Context(), broken, damaged{src}, ID)
	var d *session.Damage
	if n != 4 || !errors.As(err, &d) || d.Line != 9 {
		t.Errorf("copy around damage = %d, %v, want 4 and the damage", n, err)
	}
}

// damaged is a store whose logs have a line that cannot be read.
type damaged struct{ session.Store }

func (s damaged) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		for r, err := range s.Store.Read(ctx, id, after) {
			if !yield(r, err) {
				return
			}
		}
		yield(session.Record{}, &session.Damage{File: "f", Line: 9, Reason: "cut off"})
	}
}
