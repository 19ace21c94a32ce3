package main

import (
	"io"
	"strings"
	"testing"

	"goclaw/internal/stores"
	"goclaw/session/storekit"
)

// The search gets a store that finds redactions through its index. Wrapped a
// second time it would read every log that has a hit.
func TestRedactedOnce(t *testing.T) {
	home := t.TempDir()
	a := newApp(strings.NewReader(""), io.Discard, io.Discard, func(name string) string { return map[string]string{"GOCLAW_HOME": home}[name] })
	defer a.close()
	st, err := a.stores.Open()
	if err != nil {
		t.Fatal(err)
	}
	if view := stores.Redacted(st); storekit.Redacted(view) != view {
		t.Errorf("recall wraps %T again", view)
	}
	if _, ok := stores.Whole(st).(storekit.Redactions); !ok {
		t.Errorf("%T finds redactions by reading logs", stores.Whole(st))
	}
}
