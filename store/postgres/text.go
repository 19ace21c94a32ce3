package postgres

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// quoted marks a text that is not stored as it is: PostgreSQL takes no NUL and
// no invalid UTF-8.
const quoted = "\x01"

// text returns s as it is stored.
func text(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") && !strings.HasPrefix(s, quoted) {
		return s
	}
	return quoted + strconv.QuoteToASCII(s)
}

// untext returns the text that is stored as s.
func untext(s string) string {
	rest, ok := strings.CutPrefix(s, quoted)
	if !ok {
		return s
	}
	if plain, err := strconv.Unquote(rest); err == nil {
		return plain
	}
	return s
}

// stored returns values as they are stored.
func stored(values []any) []any {
	for i, v := range values {
		if s, ok := v.(string); ok {
			values[i] = text(s)
		}
	}
	return values
}

// The columns that List needs beside those of sqlstore.
var listColumns = []string{"minute", "agent", "channel", "words"}

// allColumns and allValues are a whole row of a session, without its number and
// its place in the trash.
func allColumns() []string { return append(sqlstore.Columns(), listColumns...) }

func allValues(in session.Info) []any {
	p := in.Key.Parts()
	return append(stored(sqlstore.Values(in)), minute(in), text(p.Agent), text(p.Channel), words(in))
}

// allTexts are allValues as the texts of a function.
func allTexts(in session.Info) []string {
	values := allValues(in)
	out := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case string:
			out[i] = v
		case int64:
			out[i] = strconv.FormatInt(v, 10)
		}
	}
	return out
}

// minute returns the minute in which a session was updated. It sorts as the time
// does.
func minute(in session.Info) string { return sqlstore.Stamp(in.Updated)[:16] }

// words returns the texts in which Query.Text is looked for. NUL, which
// PostgreSQL does not take, becomes the separator.
func words(in session.Info) string {
	return strings.ReplaceAll(strings.ToLower(string(in.Key)+quoted+string(in.ID)+quoted+in.Title), "\x00", quoted)
}

// wordsOf returns q.Text as it is in words, and whether it finds exactly what q
// asks for.
func wordsOf(q session.Query) (t string, exact bool) {
	t = strings.ToLower(q.Text)
	if strings.ContainsAny(t, "\x00"+quoted) || !utf8.ValidString(t) {
		return "", false
	}
	return t, true
}
