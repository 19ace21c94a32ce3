package recall

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"goclaw/internal/sqlx"
	"goclaw/session"
)

// The vectors of messages lie in chunks of chunkSize records: for each that
// has one, its place in the chunk and its bits.
const (
	chunkBits = 5
	chunkSize = 1 << chunkBits
	entrySize = 1 + codeBits/8
)

// chunkOf says which chunk the vector of a record is in.
func chunkOf(n int64, seq session.Seq) int64 { return n<<32 | int64(seq>>chunkBits) }

// code returns the vector of a message, nil if there is none yet.
func (ix *Index) code(d doc) (code, error) {
	at := chunkOf(int64(d.group), session.Seq(d.seq))
	data, ok := ix.codes[at]
	if !ok {
		var err error
		if data, err = ix.db.Blob("SELECT data FROM recall_codes WHERE pos = ?", at); err != nil {
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
const batch = 64

// Embed makes vectors that are missing, the latest sessions first, until all
// are made or ctx is done, and returns how many messages and notes got one.
// Searches go on in the meantime.
func (ix *Index) Embed(ctx context.Context) (made int, err error) {
	if ix.o.Embedder == nil {
		return 0, nil
	}
	notes, err := ix.embedMemory(ctx)
	if err != nil {
		return notes, err
	}
	made, err = ix.embedMessages(ctx)
	if err == nil && ix.noNotes() { // their vectors were dropped with the others
		var more int
		more, err = ix.embedMemory(ctx)
		made += more
	}
	return notes + made, err
}

// noNotes reports whether no vector of a note is known.
func (ix *Index) noNotes() bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.memory.codes == nil
}

// embedMessages embeds all messages that have no vector.
func (ix *Index) embedMessages(ctx context.Context) (made int, err error) {
anew:
	for again := false; ; {
		todo, err := ix.uncoded(ctx)
		if err != nil || len(todo) == 0 {
			return made, err
		}
		// In the order of the table, which then has full pages.
		slices.SortFunc(todo, func(a, b uncoded) int { return cmp.Compare(a.n, b.n) })
		before := made
		for _, l := range todo {
			for l.coded < l.last {
				n, err := ix.embedSome(ctx, &l)
				made += n
				if errors.Is(err, errAnew) && !again {
					again = true
					continue anew
				}
				if err != nil {
					return made, err
				}
				if ix.o.Embedded != nil {
					ix.o.Embedded(made)
				}
			}
		}
		if made == before && len(todo) < uncodedAtOnce { // what is left cannot be read
			return made, nil
		}
	}
}

// uncodedAtOnce is how many sessions are looked for at once.
const uncodedAtOnce = 256

// uncoded is a session with records without vectors.
type uncoded struct {
	id          session.ID
	n           int64
	last, coded session.Seq
}

// uncoded returns sessions with records without vectors, those that were used
// last first.
func (ix *Index) uncoded(ctx context.Context) (out []uncoded, err error) {
	if ix.o.Store == nil {
		return nil, nil
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if err := ix.sync(ctx); err != nil {
		return nil, err
	}
	known := map[session.ID]uncoded{}
	err = ix.db.Each(func(s sqlx.Row) error {
		known[session.ID(s.ColumnText(1))] = uncoded{n: s.ColumnInt64(0), coded: session.Seq(s.ColumnInt64(2))}
		return nil
	}, "SELECT n, id, coded FROM recall_sessions")
	if err != nil {
		return nil, err
	}
	for in, err := range ix.o.Store.List(ctx, session.Query{}) {
		if err != nil {
			return nil, err
		}
		if k, ok := known[in.ID]; ok && in.Last > k.coded {
			out = append(out, uncoded{in.ID, k.n, in.Last, k.coded})
		}
		if len(out) == uncodedAtOnce {
			break
		}
	}
	return out, nil
}

// embedSome embeds the next messages of l, and returns how many.
func (ix *Index) embedSome(ctx context.Context, l *uncoded) (n int, err error) {
	coded := l.coded
	var seqs []session.Seq
	var texts []string
	upto := coded
	for r, err := range ix.o.Store.Read(ctx, l.id, coded) {
		var d *session.Damage
		if errors.As(err, &d) {
			continue
		}
		if errors.Is(err, session.ErrNotFound) { // purged in the meantime
			l.coded = l.last
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		upto = r.Seq
		// What tools put out is found by its words.
		if s, ok := speak(r); ok && s.role != Output {
			seqs, texts = append(seqs, r.Seq), append(texts, clipText(s.text, maxEmbedded))
		}
		if len(texts) == batch || upto-coded >= 4*chunkSize {
			break
		}
	}
	if len(texts) < batch && upto-coded < 4*chunkSize { // the end of it
		upto = max(upto, l.last)
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
	if err := ix.measure(vs); err != nil {
		return 0, err
	}
	byChunk := map[int64][]byte{}
	for i, v := range vs {
		chunk := chunkOf(l.n, seqs[i])
		entry := append(byChunk[chunk], byte(seqs[i]&(chunkSize-1)))
		for _, w := range signsOf(fold(v)) {
			entry = binary.LittleEndian.AppendUint64(entry, w)
		}
		byChunk[chunk] = entry
	}
	err = ix.db.Within(func() error {
		if n, err := ix.db.Int("SELECT count(*) FROM recall_sessions WHERE n = ? AND coded = ?", l.n, int64(coded)); err != nil || n == 0 {
			return err // deleted, or done by another
		}
		for chunk, entries := range byChunk {
			data, err := ix.db.Blob("SELECT data FROM recall_codes WHERE pos = ?", chunk)
			if err != nil {
				return err
			}
			if err := ix.db.Run("INSERT OR REPLACE INTO recall_codes VALUES (?, ?)", chunk, append(data, entries...)); err != nil {
				return err
			}
		}
		return ix.db.Run("UPDATE recall_sessions SET coded = ? WHERE n = ?", int64(upto), l.n)
	})
	l.coded = upto
	return len(texts), err
}

// errAnew says that all vectors there were have been dropped.
var errAnew = errors.New("recall: the model gives vectors of another length than before")

// measure takes the length of vectors that the model gives. A model that gives
// others than before is another one by the same name: what it cannot be
// compared with is dropped, and errAnew says so.
func (ix *Index) measure(vs [][]float32) error {
	if len(vs) == 0 {
		return nil
	}
	have, err := ix.db.meta("length")
	now := strconv.Itoa(len(vs[0]))
	if err != nil || have == now {
		return err
	}
	err = ix.db.Within(func() error {
		if have != "" {
			if err := ix.db.dropVectors(); err != nil {
				return err
			}
		}
		return ix.db.Run("INSERT OR REPLACE INTO recall_meta VALUES ('length', ?)", now)
	})
	if err != nil || have == "" {
		return err
	}
	ix.memory.codes = nil
	return errAnew
}

// compares checks that v can be compared with what there is; what cannot is
// dropped, and res says so.
func (ix *Index) compares(m *meaning, res *Result) {
	if m.v == nil {
		return
	}
	have, err := ix.db.meta("length")
	if err == nil && (have == "" || have == strconv.Itoa(len(m.v))) {
		return
	}
	if err == nil {
		err = ix.measure([][]float32{m.v})
	}
	if errors.Is(err, errAnew) {
		res.Incomplete = append(res.Incomplete, fmt.Sprintf("%s gives vectors of %d numbers now, and gave %s before: those were dropped, and are made anew", m.e.Name(), len(m.v), have))
		return
	}
	m.v, m.bad = nil, true
	res.Incomplete = append(res.Incomplete, fmt.Sprintf("words only: the vectors cannot be compared: %v", err))
}

// dropVectors drops all vectors. It is part of a transaction.
func (d *db) dropVectors() error {
	for _, sql := range []string{"DELETE FROM recall_codes", "DELETE FROM recall_notes", "UPDATE recall_sessions SET coded = 0", "DELETE FROM recall_meta WHERE name = 'length'"} {
		if err := d.Run(sql); err != nil {
			return err
		}
	}
	return nil
}

// loadNotes reads the vectors of the memory files that are there, and drops
// those of what is no longer there.
func (ix *Index) loadNotes() error {
	m := &ix.memory
	if m.codes == nil {
		m.codes = map[[16]byte]floats{}
		err := ix.db.Each(func(s sqlx.Row) error {
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
	there := map[[16]byte]bool{}
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
	return ix.db.Within(func() error {
		for _, h := range gone {
			if err := ix.db.Run("DELETE FROM recall_notes WHERE hash = ?", h[:]); err != nil {
				return err
			}
			delete(m.codes, h)
		}
		return nil
	})
}

// embedNotes embeds the next notes that have no vector.
func (ix *Index) embedNotes(ctx context.Context) (int, error) {
	ix.mu.Lock()
	if ix.db == nil {
		ix.mu.Unlock()
		return 0, session.ErrClosed
	}
	m := &ix.memory
	_, err := m.sync(ix.o.Workspace, ix.o.Memory, nil)
	if err == nil {
		err = ix.loadNotes()
	}
	var hashes [][16]byte
	var texts []string
	for _, f := range m.order {
		for i, h := range f.hashes {
			if _, ok := m.codes[h]; !ok && len(texts) < batch && err == nil && !contains(hashes, h) {
				hashes, texts = append(hashes, h), append(texts, clipText(itemLine.ReplaceAllString(f.notes[i].text, ""), maxEmbedded))
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
	if err := ix.measure(vs); err != nil && !errors.Is(err, errAnew) {
		return 0, err
	}
	if m.codes == nil {
		m.codes = map[[16]byte]floats{}
	}
	return len(texts), ix.db.Within(func() error {
		for i, v := range vs {
			data := encodeFloats(unit(v))
			if err := ix.db.Run("INSERT OR REPLACE INTO recall_notes VALUES (?, ?)", hashes[i][:], data); err != nil {
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
