package asjson

import (
	"goclaw/compact"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// Session is a session in JSON. Other programs rely on its names.
type Session struct {
	Key         session.Key    `json:"key"`
	ID          session.ID     `json:"id"`
	Title       string         `json:"title"`
	Model       string         `json:"model"`
	Source      string         `json:"source"`
	Folder      string         `json:"folder"`
	Mark        string         `json:"mark,omitempty"` // subagent, archived or deleted, where it comes from
	Turns       int            `json:"turns"`
	Records     int            `json:"records"`
	UsedTokens  int            `json:"usedTokens"`
	Compactions int            `json:"compactions"`
	Folds       int            `json:"folds"` // the name of compactions in v0.1, which programs may read
	CreatedAt   string         `json:"createdAt"`
	UpdatedAt   string         `json:"updatedAt"`
	TrashedAt   string         `json:"trashedAt,omitempty"`
	Origin      session.Origin `json:"origin"`
}

// SessionOf returns in as programs get it.
func SessionOf(in session.Info) Session {
	return Session{
		Key: in.Key, ID: in.ID, Title: in.Title, Model: in.ModelName(), Source: transcript.Source(in), Folder: in.CWD, Mark: in.Origin.Mark, Turns: in.Turns, Records: in.Records, UsedTokens: in.Used,
		Compactions: in.Compactions, Folds: in.Compactions, CreatedAt: transcript.Stamp(in.Created), UpdatedAt: transcript.Stamp(in.Updated), TrashedAt: transcript.Stamp(in.Trashed), Origin: in.Origin,
	}
}

// Compaction is what a compaction did, or would do. Other programs read it.
type Compaction struct {
	DryRun         bool     `json:"dryRun"`
	Record         string   `json:"record,omitempty"`
	Compacted      int      `json:"compacted"`
	Folded         int      `json:"folded"` // the name of compacted in v0.1, which programs may read
	Kept           int      `json:"kept"`
	FirstKept      string   `json:"firstKeptEntryId"`
	TokensBefore   int      `json:"tokensBefore"`
	TokensAfter    int      `json:"tokensAfter"`
	FromCheckpoint string   `json:"fromCheckpoint,omitempty"`
	AsksModel      bool     `json:"asksModel"`
	By             string   `json:"by,omitempty"`
	Extract        bool     `json:"extract,omitempty"`
	InputTokens    int      `json:"inputTokens"`
	OutputTokens   int      `json:"outputTokens"`
	Cost           float64  `json:"cost"`
	Pinned         int      `json:"pinned"`
	OpenRequests   []string `json:"openRequests"`
	Lost           []string `json:"lostIdentifiers"`
	Summary        string   `json:"summary"`
}

// Plan is what a compaction would do.
func Plan(r compact.Report) Compaction {
	return Compaction{
		DryRun: true, Compacted: r.Compacted, Folded: r.Compacted, Kept: r.Kept, FirstKept: r.Keep, TokensBefore: r.Before, TokensAfter: r.After, FromCheckpoint: r.From, AsksModel: r.Asks,
		InputTokens: r.Cost.Input, OutputTokens: r.Cost.Output, Cost: r.Cost.Cost.Total, Pinned: r.Pinned, OpenRequests: notNil(r.Open), Lost: notNil(r.Lost), Summary: r.Preview,
	}
}

// Compacted is what the compaction with that id did.
func Compacted(id string, c session.Compaction, cut compact.Cut) Compaction {
	d := compact.DetailsOf(c)
	return Compaction{
		Record: id, Compacted: cut.Compacted, Folded: cut.Compacted, Kept: cut.Kept, FirstKept: c.FirstKept, TokensBefore: c.TokensBefore, TokensAfter: cut.After, FromCheckpoint: c.FromCheckpoint, AsksModel: cut.Asks,
		By: d.By, Extract: d.Extract, InputTokens: c.Usage.Prompt(), OutputTokens: c.Usage.Output, Cost: c.Usage.Cost.Total, OpenRequests: []string{}, Lost: []string{}, Summary: c.Summary,
	}
}

// notNil returns s, or an empty list for nil, which JSON would write as null.
func notNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
