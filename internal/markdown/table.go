package markdown

import (
	"slices"
	"strings"

	extast "github.com/yuin/goldmark/extension/ast"
)

const (
	bar         = " │ "
	barWidth    = 3
	leastColumn = 5
)

// table draws a table. One that is too wide has its cells wrapped; one with too
// many columns becomes a list of its cells.
func (p *page) table(n *extast.Table, width int) (out [][]run) {
	rows := p.rows(n)
	widths := columns(rows, len(n.Alignments), width)
	if widths == nil {
		return cellList(rows, width)
	}
	for i, row := range rows {
		out = append(out, drawRow(row, widths, n.Alignments)...)
		if i == 0 {
			rule := make([]string, len(widths))
			for i, w := range widths {
				rule[i] = strings.Repeat("─", w)
			}
			out = append(out, []run{{strings.Join(rule, "─┼─"), look{attr: dim}}})
		}
	}
	return out
}

// rows returns the cells of a table, as many in each row. The first row is its
// head.
func (p *page) rows(n *extast.Table) (out [][][]run) {
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		var l look
		if r.Kind() == extast.KindTableHeader {
			l.attr = bold
		}
		row := make([][]run, len(n.Alignments))
		i := 0
		for c := r.FirstChild(); c != nil && i < len(row); c = c.NextSibling() {
			row[i] = p.inline(c, l)
			i++
		}
		out = append(out, row)
	}
	return out
}

// columns returns how wide the n columns of a table are in a terminal of that
// width; nil if there are too many.
func columns(rows [][][]run, n, width int) []int {
	room := width - barWidth*(n-1)
	widths := make([]int, n)
	for _, row := range rows {
		for i, cell := range row {
			for _, line := range breaks(cell) {
				widths[i] = max(widths[i], min(widthOf(line), width))
			}
		}
	}
	for sum(widths) > room {
		i := slices.Index(widths, slices.Max(widths))
		if widths[i] <= leastColumn {
			return nil
		}
		widths[i]--
	}
	return widths
}

func sum(widths []int) (n int) {
	for _, w := range widths {
		n += w
	}
	return n
}

// breaks splits a cell at its line breaks.
func breaks(cell []run) (out [][]run) {
	from := 0
	for i, r := range cell {
		if r.text == "\n" {
			out = append(out, cell[from:i])
			from = i + 1
		}
	}
	return append(out, cell[from:])
}

// drawRow draws one row, whose cells may take several lines.
func drawRow(row [][]run, widths []int, align []extast.Alignment) (out [][]run) {
	cells, most := make([][][]run, len(row)), 1
	for i, c := range row {
		cells[i] = wrap(c, max(widths[i], 1))
		most = max(most, len(cells[i]))
	}
	for n := range most {
		var line []run
		for i, w := range widths {
			var cell []run
			if n < len(cells[i]) {
				cell = cells[i][n]
			}
			free := max(w-widthOf(cell), 0)
			left := 0
			switch align[i] {
			case extast.AlignCenter:
				left = free / 2
			case extast.AlignRight:
				left = free
			}
			if i > 0 {
				line = append(line, run{bar, look{attr: dim}})
			}
			line = append(line, run{text: strings.Repeat(" ", left)})
			line = append(line, cell...)
			line = append(line, run{text: strings.Repeat(" ", free-left)})
		}
		out = append(out, line)
	}
	return out
}

// cellList shows the rows of a table under each other: each cell after the head
// of its column.
func cellList(rows [][][]run, width int) (out [][]run) {
	for n, row := range rows[1:] {
		if n > 0 {
			out = append(out, nil)
		}
		for i, cell := range row {
			if len(cell) == 0 {
				continue
			}
			line := cell
			if len(rows[0][i]) > 0 {
				line = slices.Concat(rows[0][i], []run{{text: ": "}}, cell)
			}
			out = append(out, wrap(line, width)...)
		}
	}
	if len(rows) == 1 {
		out = wrap(slices.Concat(slices.Concat(rows[0]...)), width)
	}
	return out
}
