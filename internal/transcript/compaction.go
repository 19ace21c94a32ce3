package transcript

import (
	"fmt"
	"strings"

	"goclaw/compact"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// Compacted says what a compaction did.
func Compacted(c session.Compaction, cut compact.Cut) string {
	d := compact.DetailsOf(c)
	by := ""
	switch {
	case d.Extract:
		by = " (an extract: no model wrote a summary)"
	case !cut.Asks:
		by = " (with the summary of a checkpoint)"
	case d.By != "":
		by = fmt.Sprintf(" (by %s)", d.By)
	}
	return fmt.Sprintf("compacted %s, kept %s: %s tokens before, about %s now%s", Count(cut.Compacted, "message"), Count(cut.Kept, "message"),
		window.Short(c.TokensBefore), window.Short(cut.After), by)
}

// Price says what a call of a model will probably use and cost; "" if it uses
// nothing.
func Price(u llm.Usage) string {
	if u.Total() == 0 {
		return ""
	}
	text := fmt.Sprintf("about %s tokens in, %s out", window.Short(u.Prompt()), window.Short(u.Output))
	if u.Cost.Total > 0 {
		text += ", " + Dollars(u.Cost.Total)
	}
	return text
}

// maxLost is how many identifiers a dry run names.
const maxLost = 20

// WouldCompact says what a compaction would do.
func WouldCompact(r compact.Report) []string {
	if r.After >= r.Before {
		return []string{(&compact.LargerError{Before: r.Before, After: r.After}).Error()}
	}
	out := []string{
		fmt.Sprintf("would compact %s and keep %s, from record %s on", Count(r.Compacted, "message"), Count(r.Kept, "message"), r.Keep),
		fmt.Sprintf("tokens: %s now, about %s afterwards", window.Short(r.Before), window.Short(r.After)),
	}
	switch price := Price(r.Cost); {
	case !r.Asks:
		out = append(out, "no model call: checkpoint "+r.From+" has the summary")
	case price == "":
		out = append(out, "no model call: the summary is an extract of what was said")
	default:
		out = append(out, "for the summary: "+price)
	}
	if r.Pinned > 0 {
		out = append(out, Count(r.Pinned, "pinned message")+" would be kept word for word")
	}
	for _, q := range r.Open {
		out = append(out, "open request kept: "+OneLine(Printable(q), 100))
	}
	if len(r.Lost) == 0 {
		return append(out, "no identifier would be lost")
	}
	lost, more := r.Lost, ""
	if len(lost) > maxLost {
		more = fmt.Sprintf(" and %d more", len(lost)-maxLost)
		lost = lost[:maxLost]
	}
	how := "identifiers that a summary may lose"
	if !r.Asks {
		how = "identifiers that would be lost"
	}
	return append(out, fmt.Sprintf("%s (they stay searchable): %s%s", how, Printable(strings.Join(lost, ", ")), more))
}
