// Package shell understands command lines as far as a permission needs it: it
// says which words a shell would run, if that can be said without running it.
package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Words returns the words of a simple command as its program gets them: `git
// "status"` is git and status. ok is false for everything else, since a rule for
// the first word says nothing about it: lists, pipes, subshells, loops,
// redirections, substitutions, variables, assignments, several lines, and
// what is no command at all.
//
// A pattern (*.go) and a beginning ~ are left as written: what they expand to
// are arguments, and a rule names them as written or not at all.
func Words(command string) (words []string, ok bool) {
	odd := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r == '\uFFFD' }
	if strings.ContainsFunc(command, odd) || strings.HasSuffix(command, `\`) {
		return nil, false
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(command), "")
	if err != nil || len(f.Stmts) != 1 || len(f.Last) > 0 {
		return nil, false
	}
	s := f.Stmts[0]
	call, isCall := s.Cmd.(*syntax.CallExpr)
	if !isCall || s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Redirs) > 0 || len(s.Comments) > 0 || s.Semicolon.IsValid() || len(call.Assigns) > 0 {
		return nil, false
	}
	for _, arg := range call.Args {
		w, ok := literal(arg)
		if !ok {
			return nil, false
		}
		words = append(words, w)
	}
	return words, len(words) > 0
}

// Parts takes a command line apart for a person to read: the commands of a list
// or a pipe one by one, each with the operator before it, in the text as it is.
// Together they are the whole command. What cannot be read is one part, and so is
// what is inside of a loop, a subshell or a substitution.
func Parts(command string) []string {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return []string{command}
	}
	var cuts []int
	var split func(s *syntax.Stmt)
	split = func(s *syntax.Stmt) {
		if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && !s.Negated && len(s.Redirs) == 0 {
			split(b.X)
			cuts = append(cuts, int(b.OpPos.Offset()))
			split(b.Y)
		}
	}
	for i, s := range f.Stmts {
		if i > 0 {
			cuts = append(cuts, int(s.Pos().Offset()))
		}
		split(s)
	}
	var parts []string
	from := 0
	for _, at := range append(cuts, len(command)) {
		if at < from || at > len(command) {
			return []string{command}
		}
		if part := strings.TrimSpace(command[from:at]); part != "" {
			parts = append(parts, part)
		}
		from = at
	}
	return parts
}

// literal returns the text of a word in which nothing is expanded.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value, ""))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false
			}
			for _, in := range p.Parts {
				lit, ok := in.(*syntax.Lit)
				if !ok {
					return "", false
				}
				b.WriteString(unescape(lit.Value, "$`\"\\"))
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescape removes the backslashes that a shell removes: those before one of
// special, or before anything if special is empty.
func unescape(s, special string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (special == "" || strings.IndexByte(special, s[i+1]) >= 0) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Quote writes words as a command that Words reads as the same words.
func Quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; w == "" || strings.ContainsAny(w, " \t\n\"'`$&|;<>()*?[]{}#~!\\=@+") {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
