package naming

import (
	"context"
	"sync"

	"goclaw/session"
)

// Memo remembers titles that were made from logs, for a program that lists
// sessions again and again.
type Memo struct {
	mu sync.Mutex
	of map[session.ID]made
}

// made is the title of a log that ended with the record last.
type made struct {
	last  session.Seq
	title string
}

// mostMade is how many titles are remembered.
const mostMade = 50_000

// Title is the function Title, with what was made before.
func (m *Memo) Title(ctx context.Context, st session.Store, in session.Info) string {
	m.mu.Lock()
	known, ok := m.of[in.ID]
	m.mu.Unlock()
	if ok && known.last == in.Last {
		return known.title
	}
	title := Title(ctx, st, in)
	if ctx.Err() != nil {
		return title // perhaps not the whole of it was read
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil || len(m.of) >= mostMade {
		m.of = map[session.ID]made{}
	}
	m.of[in.ID] = made{in.Last, title}
	return title
}
