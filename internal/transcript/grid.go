package transcript

import (
	"regexp"
	"strings"

	"goclaw/internal/terminal"
)

// ruled is the second line of a Markdown table.
var ruled = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$`)

// IsGrid reports whether lines, which begin with a bar each, are a Markdown
// table: the second one rules the columns.
func IsGrid(lines []string) bool {
	return len(lines) > 1 && ruled.MatchString(lines[1]) && len(gridCells(lines[0])) == len(gridCells(lines[1]))
}

// Grid draws a Markdown table for a terminal with width columns (0: as wide as
// it must be). paint gives a cell its style. A table that is too wide has its
// cells wrapped; one with too many columns becomes a list of its cells.
func Grid(lines []string, width int, paint func(string) string, st Style) []string {
	rows, align := gridRows(lines, paint, st)
	widths := make([]int, len(align))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], cells.String(c))
		}
	}
	const bar, leastColumn = 3, 5
	room := width - bar*(len(widths)-1)
	for width > 0 && sum(widths) > room {
		i := widest(widths)
		if widths[i] <= leastColumn {
			return gridList(rows, width)
		}
		widths[i]--
	}
	var out []string
	for n, row := range rows {
		out = append(out, gridLines(row, widths, align)...)
		if n == 0 {
			rule := make([]string, len(widths))
			for i, w := range widths {
				rule[i] = strings.Repeat("─", w)
			}
			out = append(out, st.Dim(strings.Join(rule, "─┼─")))
		}
	}
	return out
}

func sum(widths []int) (n int) {
	for _, w := range widths {
		n += w
	}
	return n
}

// gridRows returns the cells of a table, as many in each row, and how the
// columns are aligned: 'l', 'c' or 'r'.
func gridRows(lines []string, paint func(string) string, st Style) (rows [][]string, align []byte) {
	columns := 0
	for i, line := range lines {
		row := gridCells(line)
		if i == 1 {
			for _, c := range row {
				a := byte('l')
				switch left, right := strings.HasPrefix(c, ":"), strings.HasSuffix(c, ":"); {
				case left && right:
					a = 'c'
				case right:
					a = 'r'
				}
				align = append(align, a)
			}
			continue
		}
		for j := range row {
			row[j] = paint(row[j])
			if i == 0 {
				row[j] = st.Bold(row[j])
			}
		}
		rows = append(rows, row)
		columns = max(columns, len(row))
	}
	for len(align) < columns {
		align = append(align, 'l')
	}
	for i := range rows {
		rows[i] = append(rows[i], make([]string, columns-len(rows[i]))...)
	}
	return rows, align
}

// gridCells splits a row at its bars.
func gridCells(line string) (out []string) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "|")
	var cell strings.Builder
	open := false // after the last bar there is more
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteByte('|')
			i++
			open = true
		case line[i] == '|':
			out = append(out, strings.TrimSpace(cell.String()))
			cell.Reset()
			open = false
		default:
			cell.WriteByte(line[i])
			open = true
		}
	}
	if open {
		out = append(out, strings.TrimSpace(cell.String()))
	}
	return out
}

// gridLines draws one row, whose cells may take several lines.
func gridLines(row []string, widths []int, align []byte) (out []string) {
	parts, most := make([][]string, len(row)), 1
	for i, c := range row {
		parts[i] = cellLines(c, widths[i])
		most = max(most, len(parts[i]))
	}
	for n := range most {
		var b strings.Builder
		for i, w := range widths {
			c := ""
			if n < len(parts[i]) {
				c = parts[i][n]
			}
			free := max(w-cells.String(c), 0)
			left := 0
			switch align[i] {
			case 'c':
				left = free / 2
			case 'r':
				left = free
			}
			if i > 0 {
				b.WriteString(" │ ")
			}
			b.WriteString(strings.Repeat(" ", left) + c + strings.Repeat(" ", free-left))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}

// cellLines breaks the text of a cell between words, and words that are longer
// than the cell. Each line has the colours that it needs.
func cellLines(text string, width int) (out []string) {
	colour := ""
	for _, line := range strings.Split(wrapLine(text, width), "\n") {
		for _, piece := range pieces(line, width) {
			piece = colour + piece
			if all := painted.FindAllString(piece, -1); len(all) > 0 {
				colour = all[len(all)-1]
			}
			if colour == terminal.Control("0m") {
				colour = ""
			}
			if colour != "" {
				piece += terminal.Control("0m")
			}
			out = append(out, piece)
		}
	}
	return out
}

// pieces cuts a line into pieces of at most width columns.
func pieces(line string, width int) (out []string) {
	if cells.String(line) <= width {
		return []string{line}
	}
	var b strings.Builder
	n := 0
	for g := cells.StringGraphemes(line); g.Next(); {
		if w := g.Width(); n > 0 && n+w > width {
			out = append(out, b.String())
			b.Reset()
			n = 0
		}
		b.WriteString(g.Value())
		n += g.Width()
	}
	return append(out, b.String())
}

// gridList shows the rows of a table under each other: a line for each cell,
// after the head of its column.
func gridList(rows [][]string, width int) (out []string) {
	for n, row := range rows[1:] {
		if n > 0 {
			out = append(out, "")
		}
		for i, c := range row {
			if c == "" {
				continue
			}
			line := c
			if rows[0][i] != "" {
				line = rows[0][i] + ": " + c
			}
			out = append(out, strings.Split(wrapLine(line, width), "\n")...)
		}
	}
	return out
}
