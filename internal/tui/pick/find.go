package pick

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/query"
	"goclaw/recall"
)

// wait returns due for a search when nothing more was typed for a while.
func wait(of any, search int) tea.Cmd {
	return tea.Tick(pause, func(time.Time) tea.Msg { return due{of, search} })
}

// find searches.
func find(ctx context.Context, of any, search int, s query.Searcher, q recall.Query) tea.Cmd {
	return func() tea.Msg {
		res, err := s.Search(ctx, q)
		return found{of, search, res, err}
	}
}
