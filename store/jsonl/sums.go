package jsonl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"

	"goclaw/internal/codec/native"
	"goclaw/session"
)

// A native line of ours ends in its checksum. Lines of others, which must stay
// as they are, have theirs in a file: one line for each, in the order in which
// they were appended, with the CRC-32C in hex. The file is written after the
// log and not synced: what is missing in it after a crash is not checked, and it
// never has more than the log. Records are numbered without damaged lines, and
// people edit files, so the two are compared by order and not by number.

func (r *root) sumsPath(id session.ID) string { return r.own(lockName(id) + ".sums") }

// addSums notes the checksums of the lines of buf that have none in them. fresh
// says that they begin the log.
func (l *log) addSums(buf []byte, fresh bool) error {
	var sums []byte
	for line := range bytes.SplitSeq(buf, []byte("\n")) {
		if sealed, _ := native.Check(line); len(line) > 0 && !sealed {
			sums = fmt.Appendf(sums, "%08x\n", checksum(line))
		}
	}
	name, flag := l.sumsPath(l.id), os.O_WRONLY|os.O_CREATE|os.O_APPEND
	switch {
	case fresh && sums == nil:
		return l.disk.remove(name) // of an earlier log
	case sums == nil:
		return nil
	case fresh:
		flag |= os.O_TRUNC
	}
	f, err := l.disk.open(name, flag)
	if err != nil {
		return err
	}
	_, err = f.Write(sums)
	return cmp.Or(err, f.Close())
}

// readSums returns the checksums of the log id's lines of others, and nothing
// for what cannot be read.
func (r *root) readSums(id session.ID) (sums []uint32) {
	b, _, err := readFile(r.disk, r.sumsPath(id))
	if err != nil {
		return nil
	}
	for line := range bytes.SplitSeq(b, []byte("\n")) {
		if n, err := strconv.ParseUint(string(line), 16, 32); err == nil && len(line) == 8 {
			sums = append(sums, uint32(n))
		}
	}
	return sums
}

// checked yields what in reads, then damage for each record that differs from
// its checksum. known are the checksums of lines of others.
func (r *root) checked(ctx context.Context, in reader, known []uint32) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		c := comparison{name: in.name}
		sc := r.scanEach(in.name, in.file, in.from, in.size, c.line)
		for rec, err := range records(ctx, sc, in.key) {
			var d *session.Damage
			if errors.As(err, &d) {
				c.broken = append(c.broken, d.Line)
			} else if err == nil {
				c.records = append(c.records, sc.Line())
			}
			if !yield(rec, err) {
				return
			}
		}
		for _, d := range c.differences(known) {
			if !yield(session.Record{}, d) {
				return
			}
		}
	}
}

// comparison is a log that is compared with its checksums.
type comparison struct {
	name    string
	records []int // the line of each record
	broken  []int // lines that cannot be read

	sealed []summed // lines that differ from the checksum in them
	others []summed // lines without one
}

// summed is a line and its checksum.
type summed struct {
	line, size int
	sum        uint32
	err        error
}

// line takes in a line of the log.
func (c *comparison) line(n int, line []byte) {
	sealed, err := native.Check(line)
	switch {
	case err != nil:
		c.sealed = append(c.sealed, summed{line: n, size: len(line), err: err})
	case !sealed:
		c.others = append(c.others, summed{line: n, size: len(line), sum: checksum(line)})
	}
}

// differences returns damage for the lines that are not what was written. known
// are the checksums of lines of others, in order; lines between them may have
// been written by older versions or by other programs.
func (c *comparison) differences(known []uint32) (out []*session.Damage) {
	for _, l := range c.sealed {
		out = c.changed(out, l)
	}
	places := map[uint32][]int{}
	for i, sum := range known {
		places[sum] = append(places[sum], i)
	}
	at := 0               // the first of known that no line was found for
	var strange []summed  // lines since then that are not known
	upTo := func(i int) { // known[at:i] are not there
		n := min(i-at, len(strange))
		first := 0
		if at == 0 {
			first = len(strange) - n // an older version wrote those before
		}
		for j, l := range strange[first : first+n] {
			l.err = fmt.Errorf("its line has the CRC-32C %08x, its checksum is %08x", l.sum, known[at+j])
			out = c.changed(out, l)
		}
		if lost := i - at - n; lost > 0 {
			out = append(out, c.lost(lost, i, len(known)))
		}
	}
	for _, l := range c.others {
		i, _ := slices.BinarySearch(places[l.sum], at)
		if i == len(places[l.sum]) {
			strange = append(strange, l)
			continue
		}
		i = places[l.sum][i]
		upTo(i)
		at, strange = i+1, nil
	}
	upTo(len(known))
	return out
}

// changed adds damage for l, unless it cannot be read: that is reported already.
func (c *comparison) changed(out []*session.Damage, l summed) []*session.Damage {
	if _, broken := slices.BinarySearch(c.broken, l.line); broken {
		return out
	}
	i, _ := slices.BinarySearch(c.records, l.line)
	seq := session.Seq(i + 1)
	return append(out, &session.Damage{
		File: c.name, Line: l.line, After: seq - 1, Size: int64(l.size), Changed: seq,
		Reason: fmt.Sprintf("record %d has changed since it was written: %v", seq, l.err),
	})
}

// lost is damage for lines that are gone, which came before the i'th of all
// known lines of others.
func (c *comparison) lost(lines, i, all int) *session.Damage {
	return &session.Damage{
		File: c.name, After: session.Seq(len(c.records)),
		Reason: fmt.Sprintf("%d of the %d lines that other programs wrote are gone, the last of them is number %d", lines, all, i),
	}
}
