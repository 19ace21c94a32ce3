package recall

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"goclaw/internal/naming"
	"goclaw/session"
)

// Within narrows q to the sessions that ref names. A key, or a part of one, is
// everything that was ever said under it; an id, a title, a part of either, or
// a citation is one log.
func (q *Query) Within(ctx context.Context, st session.Store, ref string) error {
	in, err := naming.Find(ctx, st, ref, false, naming.Listed{})
	if id, _, ok := Cited(ref); ok && errors.Is(err, session.ErrNotFound) {
		ref = id
		in, err = naming.Find(ctx, st, ref, false, naming.Listed{})
	}
	if err != nil {
		return err
	}
	q.Session, q.Key = in.ID, ""
	if string(in.ID) != ref && strings.Contains(strings.ToLower(string(in.Key)), strings.ToLower(ref)) {
		q.Session, q.Key = "", in.Key
	}
	return nil
}

// Cited splits a citation of a message, as Hit.Cite writes it, into its session
// and the number of the record; ok is false if ref is not one.
func Cited(ref string) (id, seq string, ok bool) {
	i := strings.LastIndexByte(ref, '#')
	if i <= 0 {
		return "", "", false
	}
	_, err := strconv.ParseInt(ref[i+1:], 10, 64)
	return ref[:i], ref[i+1:], err == nil
}

var (
	momentForms = []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly, "2006-01", "2006",
	}
	agoForm = regexp.MustCompile(`^(\d{1,5}) ?(m|min|minutes?|h|hours?|d|days?|w|weeks?|months?|y|years?)(?: ago)?$`)
)

// Moment reads a point in time: a date, a time, or how long before now. If it
// names no zone, it is in that of now.
func Moment(text string, now time.Time) (time.Time, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch text {
	case "today":
		return day, nil
	case "yesterday":
		return day.AddDate(0, 0, -1), nil
	}
	for _, form := range momentForms {
		if t, err := time.ParseInLocation(form, strings.ToUpper(text), now.Location()); err == nil {
			return t, nil
		}
	}
	if m := agoForm.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // at most five digits
		switch unit := m[2]; {
		case strings.HasPrefix(unit, "mo"):
			return now.AddDate(0, -n, 0), nil
		case unit[0] == 'm':
			return now.Add(-time.Duration(n) * time.Minute), nil
		case unit[0] == 'h':
			return now.Add(-time.Duration(n) * time.Hour), nil
		case unit[0] == 'd':
			return now.AddDate(0, 0, -n), nil
		case unit[0] == 'w':
			return now.AddDate(0, 0, -7*n), nil
		default:
			return now.AddDate(-n, 0, 0), nil
		}
	}
	return time.Time{}, fmt.Errorf("takes a date like 2026-08-01, a time like 2026-08-01 15:04, or how long ago like 12h, 7d or 3w, not %q", text)
}

// momentEnd is Moment for the end of a span: of a day, a month or a year it
// returns the end.
func momentEnd(text string, now time.Time) (time.Time, error) {
	t, err := Moment(text, now)
	switch text = strings.ToLower(strings.TrimSpace(text)); {
	case err != nil:
		return t, err
	case text == "today" || text == "yesterday" || len(text) == len(time.DateOnly) && text[4] == '-':
		return t.AddDate(0, 0, 1), nil
	case len(text) == len("2006-01") && text[4] == '-':
		return t.AddDate(0, 1, 0), nil
	case len(text) == len("2006") && text[0] <= '9' && text[3] <= '9':
		return t.AddDate(1, 0, 0), nil
	}
	return t, nil
}
