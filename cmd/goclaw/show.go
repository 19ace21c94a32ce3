package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"goclaw/internal/asjson"
	"goclaw/internal/naming"
	"goclaw/internal/transcript"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/window"
)

// showFlags say what of a session is shown, and how.
type showFlags struct {
	asJSON, full, records, checkpoints, notices bool
	last                                        int
	around                                      string
	opened                                      string // what is shown of the record in the middle; "": as others are
}

func showCmd(a *app) *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Read a session",
		Args:  exactly("KEY"),
		RunE:  func(cmd *cobra.Command, args []string) error { return showSession(cmd.Context(), a, args[0], f) },
	}
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print the session and its records as one object")
	cmd.Flags().BoolVar(&f.full, "full", false, "tool output and thinking in full")
	cmd.Flags().BoolVar(&f.records, "records", false, "every record of the live branch, one per line")
	cmd.Flags().BoolVar(&f.checkpoints, "checkpoints", false, "the summaries that were made in advance")
	cmd.Flags().BoolVar(&f.notices, "notices", false, "the warnings that the model was given about its window, and whether it then wrote to memory/")
	cmd.Flags().IntVarP(&f.last, "last", "n", 0, "only the last N records")
	cmd.Flags().StringVar(&f.around, "around", "", "only around this record, which is marked: its number, its id, or the beginning of its id")
	return cmd
}

func showSession(ctx context.Context, a *app, ref string, f showFlags) error {
	st, s, err := a.stores.Replay(ctx, ref, &f.around)
	if err != nil {
		return err
	}
	s.Title = naming.Title(ctx, st, s.Info)
	recs, at := s.Branch, session.Seq(0)
	if f.around != "" {
		if recs, at, err = around(ctx, st, s.ID, f.around, f.last); err != nil {
			return noRecord(err, s.ID)
		}
	} else if f.last > 0 && f.last < len(recs) {
		recs = recs[len(recs)-f.last:]
	}
	switch {
	case f.checkpoints && f.asJSON:
		err = a.printJSON(checkpointsJSON(s))
	case f.checkpoints:
		err = a.print(transcript.Checkpoints(s, a.style())...)
	case f.notices && f.asJSON:
		err = a.printJSON(noticesJSON(s))
	case f.notices:
		err = a.print(transcript.Notices(window.Notices(s), a.style())...)
	case f.asJSON:
		var v any
		if v, err = sessionJSON(s, recs); err == nil {
			err = a.printJSON(v)
		}
	default:
		printSession(a.env, s, recs, at, f)
	}
	if err != nil {
		return err
	}
	return a.damage(s.Damage...)
}

// printSession prints records of s for people. The one with number at is marked.
func printSession(e *env, s *session.Session, recs []session.Record, at session.Seq, f showFlags) {
	st := e.style()
	fmt.Fprintln(e.out, transcript.Wrap(st.Bold(transcript.Name(s.Key))+"  "+transcript.Name(cmp.Or(s.Title, naming.Topic(s))), e.columns()))
	about := fmt.Sprintf("%s, %s, %s, %s", transcript.Name(s.ID), transcript.Count(s.Turns, "turn"), transcript.Count(s.Records, "record"), transcript.Source(s.Info))
	fmt.Fprintln(e.out, st.Dim(transcript.Wrap(about, e.columns())))
	fmt.Fprintln(e.out)
	for i, r := range recs {
		switch {
		case f.records && r.Seq == at:
			fmt.Fprintf(e.out, ">%4d  %s\n", r.Seq, transcript.Line(r, st, e.width()-7))
		case f.records:
			fmt.Fprintf(e.out, " %4d  %s\n", r.Seq, transcript.Line(r, st, e.width()-7))
		default:
			if r.Seq == at {
				fmt.Fprintln(e.out, st.Yellow(fmt.Sprintf("> record %d", at)))
				if f.opened != "" {
					fmt.Fprintln(e.out, f.opened)
					continue
				}
			}
			transcript.Plain(e.out, recs[i:i+1], st, f.full, e.columns())
		}
	}
}

type checkpointJSON struct {
	ID        string   `json:"id"`
	Seq       int64    `json:"seq"`
	Time      string   `json:"timestamp"`
	Summary   string   `json:"summary"`
	Topics    []string `json:"topics"`
	Decisions []string `json:"keyDecisions"`
	Questions []string `json:"openQuestions"`
	Covers    string   `json:"covers"`
	Tokens    int      `json:"tokensAtCheckpoint"`
	Messages  int      `json:"messageCountAtCheckpoint"`
	Model     string   `json:"model"`
}

func checkpointsJSON(s *session.Session) []checkpointJSON {
	out := []checkpointJSON{}
	for _, r := range s.Branch {
		if cp, ok := r.Body.(session.Checkpoint); ok {
			out = append(out, checkpointJSON{r.ID, int64(r.Seq), transcript.Stamp(r.Time), cp.Summary, append([]string{}, cp.Topics...), append([]string{}, cp.Decisions...), append([]string{}, cp.Questions...), cp.Covers, cp.Tokens, cp.Messages, cp.Model})
		}
	}
	return out
}

type noticeRow struct {
	ID       string `json:"id"`
	Seq      int64  `json:"seq"`
	Time     string `json:"timestamp"`
	Percent  int    `json:"percent"`
	Delivery string `json:"delivery"`
	Once     bool   `json:"once"`
	Text     string `json:"text"`
	Actioned bool   `json:"actioned"`
}

func noticesJSON(s *session.Session) []noticeRow {
	out := []noticeRow{}
	for _, n := range window.Notices(s) {
		out = append(out, noticeRow{n.Record.ID, int64(n.Record.Seq), transcript.Stamp(n.Record.Time), n.Percent, n.As, n.Once, n.Text, n.Actioned})
	}
	return out
}

func sessionJSON(s *session.Session, recs []session.Record) (any, error) {
	lines := []json.RawMessage{}
	for _, r := range recs {
		line, err := asjson.Record(r)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return struct {
		asjson.Session
		Warned bool              `json:"flushWarned"`
		Saved  bool              `json:"flushActioned"`
		Branch []json.RawMessage `json:"branch"`
	}{asjson.SessionOf(s.Info), window.Warned(s), window.Saved(s), lines}, nil
}

// nearby is how many records are shown before and after one, unless --last says
// otherwise.
const nearby = 4

// around returns the records of the session id around one, which need not be on
// the live branch: a search finds what was said on others, too. at is the number
// of that record.
func around(ctx context.Context, st session.Store, id session.ID, record string, n int) (recs []session.Record, at session.Seq, err error) {
	if _, at, err = recall.Place(ctx, st, string(id), record); err != nil {
		return nil, 0, err
	}
	if n <= 0 {
		n = nearby
	}
	for r, err := range session.Joined(session.Undamaged(st.Read(ctx, id, max(0, at-1-session.Seq(n))), func(*session.Damage) {})) {
		if err != nil {
			return nil, 0, err
		}
		if r.Seq > at+session.Seq(n) {
			break
		}
		recs = append(recs, r)
	}
	return recs, at, nil
}
