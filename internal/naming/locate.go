package naming

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"goclaw/session"
)

// Locate returns the number of the record that ref names in the log of in, whose
// records are recs. ref is the number, as lists and searches show it, the id, or
// the beginning of the id if no other record's id begins so.
func Locate(recs iter.Seq2[session.Record, error], in session.Info, ref string) (session.Seq, error) {
	ref = strings.TrimPrefix(ref, "#")
	if n, err := strconv.ParseInt(ref, 10, 64); err == nil && n >= 1 && session.Seq(n) <= in.Last {
		return session.Seq(n), nil
	}
	var found []session.Seq
	for r, err := range recs {
		var d *session.Damage
		if errors.As(err, &d) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if r.ID == ref && ref != "" {
			return r.Seq, nil
		}
		if ref != "" && strings.HasPrefix(r.ID, ref) {
			found = append(found, r.Seq)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return 0, session.NotFound("session %s has no record %q, the last one is %d", in.Key, ref, in.Last)
	}
	return 0, fmt.Errorf("%q fits %d records of session %s: type more of the id, or the record's number", ref, len(found), in.Key)
}
