package vectors

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"

	"goclaw/internal/sqlx"
	"goclaw/recall/internal/postings"
	"goclaw/session"
)

// Table is the vectors in the file of the index. Those of messages are in
// chunks of chunkSize records: for each that has one, its place in the chunk
// and its bits, all 0 for a message that the model gives none.
type Table struct {
	DB    *postings.DB
	Codes *Codes // what is written is noted there; nil: nowhere
}

const (
	chunkBits = 5
	chunkSize = 1 << chunkBits
	entrySize = 1 + codeBits/8
)

// Hash is what the vector of a note is found by.
type Hash [16]byte

// chunkOf says which chunk the vector of a record is in.
func chunkOf(n int64, seq session.Seq) int64 { return n<<32 | int64(seq>>chunkBits) }

// Made is the vector of a record of session N; nil: the model gives it none.
type Made struct {
	N   int64
	Seq session.Seq
	V   []float32
}

// Put writes vectors of messages. What another process wrote before stays, and
// of a session that is gone nothing is written. A message without a vector is
// written as one without signs, so that it is not tried again.
func (t Table) Put(made []Made) error {
	chunks, of := map[int64][]byte{}, map[int64]*coded{}
	for _, m := range made {
		chunk, signs := chunkOf(m.N, m.Seq), signsOf(Reduce(m.V))
		entry := append(chunks[chunk], byte(m.Seq&(chunkSize-1)))
		for _, w := range signs {
			entry = binary.LittleEndian.AppendUint64(entry, w)
		}
		chunks[chunk] = entry
		if of[m.N] == nil {
			of[m.N] = &coded{}
		}
		of[m.N].put(uint32(m.Seq), signs)
	}
	added, counts := map[int64]int64{}, map[int64]int64{}
	err := t.DB.Within(func() error {
		for n := range of {
			there, err := t.DB.Int("SELECT count(*) FROM recall_sessions WHERE n = ?", n)
			if err != nil {
				return err
			}
			if there == 0 {
				delete(of, n)
			}
		}
		for _, chunk := range slices.Sorted(maps.Keys(chunks)) {
			n := chunk >> 32
			if of[n] == nil {
				continue
			}
			data, err := t.DB.Blob("SELECT data FROM recall_codes WHERE pos = ?", chunk)
			if err != nil {
				return err
			}
			all := merged(data, chunks[chunk])
			if err := t.DB.Run("INSERT OR REPLACE INTO recall_codes VALUES (?, ?)", chunk, all); err != nil {
				return err
			}
			added[n] += int64(len(all)-len(data)) / entrySize
		}
		for n := range of {
			err := t.DB.Run("UPDATE recall_sessions SET coded = coded + ? WHERE n = ?", added[n], n)
			if err != nil {
				return err
			}
			if counts[n], err = t.DB.Int("SELECT coded FROM recall_sessions WHERE n = ?", n); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && t.Codes != nil {
		for n, made := range of {
			t.Codes.put(n, added[n], counts[n], made)
		}
	}
	return err
}

// merged returns the entries of a chunk with those of more that it does not
// have.
func merged(data, more []byte) []byte {
	have := [chunkSize]bool{}
	for d := data; len(d) >= entrySize; d = d[entrySize:] {
		have[d[0]%chunkSize] = true
	}
	for ; len(more) >= entrySize; more = more[entrySize:] {
		if !have[more[0]] {
			data = append(data, more[:entrySize]...)
		}
	}
	return data
}

// owner says whose vectors the file holds: the model and their length.
func (t Table) owner() (string, error) {
	model, err := t.DB.Meta("model")
	if err != nil {
		return "", err
	}
	length, err := t.DB.Meta("length")
	return model + " " + length, err
}

// Notes returns the vectors of all notes.
func (t Table) Notes() (map[Hash]Vector, error) {
	notes := map[Hash]Vector{}
	err := t.DB.Each(func(r sqlx.Row) error {
		if h := r.Bytes(0); len(h) == len(Hash{}) {
			notes[Hash(h)] = decode(r.Bytes(1))
		}
		return nil
	}, "SELECT hash, data FROM recall_notes")
	return notes, err
}

// PutNotes writes vectors of notes, and adds them to known as they are kept.
func (t Table) PutNotes(hashes []Hash, vs [][]float32, known map[Hash]Vector) error {
	return t.DB.Within(func() error {
		for i, v := range vs {
			data := encode(Unit(v))
			if err := t.DB.Run("INSERT OR REPLACE INTO recall_notes VALUES (?, ?)", hashes[i][:], data); err != nil {
				return err
			}
			known[hashes[i]] = decode(data)
		}
		return nil
	})
}

// DropNotes removes vectors of notes, also from known.
func (t Table) DropNotes(hashes []Hash, known map[Hash]Vector) error {
	if len(hashes) == 0 {
		return nil
	}
	return t.DB.Within(func() error {
		for _, h := range hashes {
			if err := t.DB.Run("DELETE FROM recall_notes WHERE hash = ?", h[:]); err != nil {
				return err
			}
			delete(known, h)
		}
		return nil
	})
}

// Use drops all vectors that are not of the model with this name.
func (t Table) Use(model string) error {
	if have, err := t.DB.Meta("model"); err != nil || have == model {
		return err
	}
	return t.DB.Within(func() error {
		if err := t.drop(); err != nil {
			return err
		}
		return t.DB.SetMeta("model", model)
	})
}

// Length returns how many numbers the model's vectors have, 0 if there are
// none yet.
func (t Table) Length() (int, error) {
	have, err := t.DB.Meta("length")
	n, _ := strconv.Atoi(have)
	return n, err
}

// SetLength notes how many numbers the model's vectors have. A model that
// gives others than before is another one by the same name: the vectors that
// there are cannot be compared with its own and are dropped.
func (t Table) SetLength(n int) (dropped bool, err error) {
	have, err := t.Length()
	if err != nil || have == n {
		return false, err
	}
	err = t.DB.Within(func() error {
		if have != 0 {
			if err := t.drop(); err != nil {
				return err
			}
		}
		return t.DB.SetMeta("length", strconv.Itoa(n))
	})
	return have != 0 && err == nil, err
}

// drop drops all vectors. It is part of a transaction.
func (t Table) drop() error {
	for _, sql := range []string{"DELETE FROM recall_codes", "DELETE FROM recall_notes", "UPDATE recall_sessions SET coded = coded + 1", "DELETE FROM recall_meta WHERE name = 'length'"} {
		if err := t.DB.Run(sql); err != nil {
			return err
		}
	}
	return nil
}
