package recall

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/session"
)

// The vectors of messages lie in chunks of chunkSize records: for each that
// has one, its place in the chunk and its bits.
const (
	chunkBits = 6
	chunkSize = 1 << chunkBits
	entrySize = 1 + codeBits/8
)

// code returns the vector of a message, nil if there is none yet.
func (ix *Index) code(d doc) (code, error) {
	at := [2]int64{int64(d.group), int64(d.seq >> chunkBits)}
	data, ok := ix.codes[at]
	if !ok {
		var err error
		if data, err = ix.db.blob("SELECT data FROM recall_codes WHERE session = ? AND chunk = ?", at[0], at[1]); err != nil {
			return nil, err
		}
		ix.codes[at] = data
	}
	place := byte(d.seq & (chunkSize - 1))
	for ; len(data) >= entrySize; data = data[entrySize:] {
		if data[0] == place {
			var s signs
			for i := range s {
				s[i] = binary.LittleEndian.Uint64(data[1+8*i:])
			}
			return s, nil
		}
	}
	return nil, nil
}

// maxEmbedded is how many bytes of a text its vector is made of.
const maxEmbedded = 2000

// batch is how many texts are embedded between two looks at the clock.
const batch = 16

// Embed makes vectors that are missing, the latest sessions first, until all
// are made or ctx is done, and returns how many messages and notes got one.
// Searches go on in the meantime.
func (ix *Index) Embed(ctx context.Context) (made int, err error) {
	if ix.o.Embedder == nil {
		return 0, nil
	}
	for {
		n, err := ix.embedNotes(ctx)
		made += n
		if err != nil {
			return made, err
		}
		if n == 0 {
			break
		}
	}
	for {
		more, n, err := ix.embedSome(ctx)
		made += n
		if err != nil || !more {
			return made, err
		}
	}
}

// Background embeds what is missing now, and what comes, until Close.
func (ix *Index) Background() {
	if ix.o.Embedder == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ix.work.Go(func() {
		defer cancel()
		for {
			// A failure is seen by the next search, which says what is missing.
			_, _ = ix.Embed(ctx)
			select {
			case <-ix.shut:
				return
			case <-time.After(backgroundPause):
			}
		}
	})
	ix.work.Go(func() {
		<-ix.shut
		cancel()
	})
}

const backgroundPause = 2 * time.Second

// uncoded returns a session with records without vectors: the one that was
// used last.
func (ix *Index) uncoded(ctx context.Context) (l lag, coded session.Seq, err error) {
	if ix.o.Shared {
		err = ix.db.each(func(s *sqlite3.Stmt) error {
			l = lag{id: session.ID(s.ColumnText(0)), last: session.Seq(s.ColumnInt64(1)), n: s.ColumnInt64(2)}
			coded = session.Seq(s.ColumnInt64(3))
			return nil
		}, `SELECT s.id, s.last, r.n, r.coded FROM sessions s JOIN recall_sessions r ON r.id = s.id
			WHERE s.trashed IS NULL AND s.last > r.coded ORDER BY s.updated DESC LIMIT 1`)
		return l, coded, err
	}
	known := map[session.ID]lag{}
	err = ix.db.each(func(s *sqlite3.Stmt) error {
		known[session.ID(s.ColumnText(1))] = lag{n: s.ColumnInt64(0), have: session.Seq(s.ColumnInt64(2))}
		return nil
	}, "SELECT n, id, coded FROM recall_sessions")
	if err != nil {
		return l, 0, err
	}
	for in, err := range ix.o.Store.List(ctx, session.Query{}) {
		if err != nil {
			return l, 0, err
		}
		if k, ok := known[in.ID]; ok && in.Last > k.have {
			return lag{id: in.ID, n: k.n, last: in.Last}, k.have, nil
		}
	}
	return l, 0, nil
}

// embedSome embeds the next messages of one session.
func (ix *Index) embedSome(ctx context.Context) (more bool, n int, err error) {
	if ix.o.Store == nil {
		return false, 0, nil
	}
	ix.mu.Lock()
	if ix.db == nil {
		ix.mu.Unlock()
		return false, 0, session.ErrClosed
	}
	err = ix.sync(ctx)
	var l lag
	var coded session.Seq
	if err == nil {
		l, coded, err = ix.uncoded(ctx)
	}
	ix.mu.Unlock()
	if err != nil || l.n == 0 {
		return false, 0, err
	}
	var seqs []session.Seq
	var texts []string
	upto := coded
	for r, err := range ix.o.Store.Read(ctx, l.id, coded) {
		var d *session.Damage
		if errors.As(err, &d) {
			continue
		}
		if err != nil {
			return false, 0, err
		}
		upto = r.Seq
		// What tools put out is found by its words.
		if s, ok := speak(r); ok && s.role != Tool {
			seqs, texts = append(seqs, r.Seq), append(texts, clipText(s.text, maxEmbedded))
		}
		if len(texts) == batch || upto-coded >= 4*chunkSize {
			break
		}
	}
	upto = max(upto, min(l.last, coded+1)) // records that cannot be read have none
	vs, err := ix.o.Embedder.Vectors(ctx, texts)
	if err != nil {
		return false, 0, err
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.db == nil {
		return false, 0, session.ErrClosed
	}
	err = ix.db.within(func() error {
		if n, err := ix.db.int("SELECT count(*) FROM recall_sessions WHERE n = ? AND coded = ?", l.n, int64(coded)); err != nil || n == 0 {
			return err // deleted, or done by another
		}
		for i, v := range vs {
			if err := ix.putCode(l.n, seqs[i], signsOf(fold(v))); err != nil {
				return err
			}
		}
		return ix.db.exec("UPDATE recall_sessions SET coded = ? WHERE n = ?", int64(upto), l.n)
	})
	return true, len(texts), err
}

func (ix *Index) putCode(n int64, seq session.Seq, s signs) error {
	chunk := int64(seq >> chunkBits)
	data, err := ix.db.blob("SELECT data FROM recall_codes WHERE session = ? AND chunk = ?", n, chunk)
	if err != nil {
		return err
	}
	data = append(data, byte(seq&(chunkSize-1)))
	for _, w := range s {
		data = binary.LittleEndian.AppendUint64(data, w)
	}
	return ix.db.exec("INSERT OR REPLACE INTO recall_codes VALUES (?, ?, ?)", n, chunk, data)
}

// loadNotes reads the vectors of the memory files that are there, and drops
// those of what is no longer there.
func (ix *Index) loadNotes() error {
	m := &ix.memory
	if m.codes == nil {
		m.codes = map[[16]byte]floats{}
		err := ix.db.each(func(s *sqlite3.Stmt) error {
			if h := s.ColumnRawBlob(0); len(h) == 16 {
				m.codes[[16]byte(h)] = decodeFloats(s.ColumnRawBlob(1))
			}
			return nil
		}, "SELECT hash, data FROM recall_notes")
		if err != nil {
			m.codes = nil
			return err
		}
	}
	there := make(map[[16]byte]bool, len(m.at))
	for _, f := range m.order {
		for _, h := range f.hashes {
			there[h] = true
		}
	}
	var gone [][16]byte
	for h := range m.codes {
		if !there[h] {
			gone = append(gone, h)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return ix.db.within(func() error {
		for _, h := range gone {
			if err := ix.db.exec("DELETE FROM recall_notes WHERE hash = ?", h[:]); err != nil {
				return err
			}
			delete(m.codes, h)
		}
		return nil
	})
}

// embedNotes embeds the next notes that have no vector.
func (ix *Index) embedNotes(ctx context.Context) (int, error) {
	if ix.o.Workspace == "" {
		return 0, nil
	}
	ix.mu.Lock()
	if ix.db == nil {
		ix.mu.Unlock()
		return 0, session.ErrClosed
	}
	m := &ix.memory
	_, err := m.sync(ix.o.Workspace, ix.o.Memory)
	if err == nil {
		err = ix.loadNotes()
	}
	var hashes [][16]byte
	var texts []string
	for _, f := range m.order {
		for i, h := range f.hashes {
			if _, ok := m.codes[h]; !ok && len(texts) < batch && err == nil && !contains(hashes, h) {
				hashes, texts = append(hashes, h), append(texts, clipText(f.notes[i].text, maxEmbedded))
			}
		}
	}
	ix.mu.Unlock()
	if err != nil || len(texts) == 0 {
		return 0, err
	}
	vs, err := ix.o.Embedder.Vectors(ctx, texts)
	if err != nil {
		return 0, err
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.db == nil {
		return 0, session.ErrClosed
	}
	return len(texts), ix.db.within(func() error {
		for i, v := range vs {
			data := encodeFloats(unit(v))
			if err := ix.db.exec("INSERT OR REPLACE INTO recall_notes VALUES (?, ?)", hashes[i][:], data); err != nil {
				return err
			}
			m.codes[hashes[i]] = decodeFloats(data)
		}
		return nil
	})
}

func contains(hs [][16]byte, h [16]byte) bool {
	for _, o := range hs {
		if o == h {
			return true
		}
	}
	return false
}

// encodeFloats writes a vector with one byte for each number.
func encodeFloats(v floats) []byte {
	top := float32(0)
	for _, x := range v {
		top = max(top, x, -x)
	}
	b := binary.LittleEndian.AppendUint32(nil, math.Float32bits(top))
	for _, x := range v {
		if top > 0 {
			x = x / top * 127
		}
		b = append(b, byte(int8(math.Round(float64(x)))))
	}
	return b
}

func decodeFloats(b []byte) floats {
	if len(b) < 4 {
		return nil
	}
	top := math.Float32frombits(binary.LittleEndian.Uint32(b))
	v := make(floats, 0, len(b)-4)
	for _, x := range b[4:] {
		v = append(v, float32(int8(x))/127*top)
	}
	return unit(v)
}
