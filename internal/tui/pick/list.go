package pick

import tea "charm.land/bubbletea/v2"

// list is a place in a list that is longer than the screen.
type list struct {
	n    int // how many there are
	at   int // which is chosen
	top  int // the first on the screen
	page int // how many the screen had last
}

// move goes n further, or back.
func (l *list) move(n int) { l.at = max(min(l.at+n, l.n-1), 0) }

// key moves with the keys of every list.
func (l *list) key(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "up", "ctrl+p":
		l.move(-1)
	case "down", "ctrl+n":
		l.move(1)
	case "pgup":
		l.move(-max(l.page-1, 1))
	case "pgdown":
		l.move(max(l.page-1, 1))
	case "home":
		l.at = 0
	case "end":
		l.move(l.n)
	default:
		return false
	}
	return true
}

// shown returns the part that fits into so many lines, with the chosen one in it.
// size returns how many lines one takes.
func (l *list) shown(height int, size func(i int) int) (from, to int) {
	l.move(0)
	l.top = max(min(l.top, l.at), 0)
	used := 0
	for i := l.at; i >= 0 && i < l.n; i-- { // as far up as the chosen one allows
		if used += size(i); used > height {
			l.top = max(l.top, i+1)
			break
		}
		if i == l.top {
			break
		}
	}
	used = 0
	for to = l.top; to < l.n; to++ {
		if used += size(to); used > height && to > l.at {
			break
		}
	}
	for used < height && l.top > 0 { // the end of the list: no empty lines below it
		if used += size(l.top - 1); used > height {
			break
		}
		l.top--
	}
	l.page = max(to-l.top, 1)
	return l.top, to
}
