package inherit

import (
	"sync"
	"time"
)

// Progress is how far an import is.
type Progress struct {
	Files, FilesDone  int // a database is one file
	Transcripts, Done int
	Bytes, BytesDone  int64
	Read              int64 // bytes that had to be read
	Records           int   // imported
}

// meter counts the progress of an import, reports it, and saves the memo now
// and then.
type meter struct {
	memo   *Memo
	report func(Progress) // or nil

	mu    sync.Mutex
	now   Progress
	told  time.Time
	saved time.Time
	files map[string]int // how many transcripts of each are left
	gate  chan struct{}  // limits how many transcripts with long lines are in memory
}

func newMeter(c *Catalogue, memo *Memo, report func(Progress)) *meter {
	m := &meter{memo: memo, report: report, files: map[string]int{}, gate: make(chan struct{}, 1)}
	for _, t := range c.Transcripts {
		m.files[t.Path]++
	}
	m.now = Progress{Files: len(m.files), Transcripts: len(c.Transcripts), Bytes: c.Size()}
	return m
}

// tell counts, and reports if it is time, or at once.
func (m *meter) tell(count func(*Progress), once bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count(&m.now)
	t := time.Now()
	if m.report != nil && (once || t.Sub(m.told) > 100*time.Millisecond) {
		m.told = t
		m.report(m.now)
	}
	if t.Sub(m.saved) > 5*time.Second {
		if !m.saved.IsZero() {
			_ = m.memo.save() // it is saved again at the end, and the error seen
		}
		m.saved = t
	}
}

// watch counts what is read of t until done is called.
func (m *meter) watch(t *Transcript) (done func()) {
	var seen int64
	t.Watch(func(n int) {
		fresh := max(min(int64(n), t.Size-seen), 0)
		seen += fresh
		m.tell(func(p *Progress) { p.BytesDone += fresh; p.Read += int64(n) }, false)
	}, m.gate)
	return func() {
		t.Leave()
		m.tell(func(p *Progress) {
			p.Done++
			p.BytesDone += t.Size - seen
			if m.files[t.Path]--; m.files[t.Path] == 0 {
				p.FilesDone++
			}
		}, false)
	}
}
