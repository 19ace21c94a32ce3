package naming

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"goclaw/internal/mirrors"
	"goclaw/internal/near"
	"goclaw/session"
)

// AmbiguousError says that Ref fits several sessions.
type AmbiguousError struct {
	Ref        string
	Candidates []session.Info
}

// Brief is Error without the sessions.
func (e *AmbiguousError) Brief() string {
	return fmt.Sprintf("session %q is ambiguous: %d sessions fit", e.Ref, len(e.Candidates))
}

func (e *AmbiguousError) Error() string {
	names := called(e.Candidates[:min(len(e.Candidates), 8)])
	if n := len(e.Candidates) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	return fmt.Sprintf("session %q is ambiguous: %s", e.Ref, strings.Join(names, ", "))
}

// NoneError is a session.ErrNotFound with the sessions that may have been meant.
type NoneError struct {
	Ref  string
	Near []session.Info // the nearest first; nil if none is near
	Why  string         // why Ref is no number of a list either; "": it is no number
}

func (e *NoneError) Error() string {
	text := fmt.Sprintf("there is no session %q", e.Ref)
	if e.Why != "" {
		text += ": " + e.Why
	} else if len(e.Near) > 0 {
		text += "; did you mean " + strings.Join(called(e.Near), ", or ") + "?"
	}
	return text
}

func (e *NoneError) Unwrap() error { return session.ErrNotFound }

// called returns names of sessions that differ and can be typed.
func called(infos []session.Info) []string {
	var out []string
	for _, in := range infos {
		title := ""
		if in.Title != "" {
			r := []rune(in.Title)
			title = fmt.Sprintf(" %q", string(r[:min(len(r), 40)]))
		}
		out = append(out, fmt.Sprintf("%s%s (%s)", in.Key, title, in.ID))
	}
	return out
}

// Listed are the sessions of the list that the user saw last, by number: the
// first is number 1. A number stands for the session that was listed, also if
// the order has changed since.
type Listed struct {
	IDs []session.ID
	Why string // why there are none: there was no list, or it is too old
}

// number returns the session that ref is the number of. typed is false if ref is
// no number; sure is true if it can be nothing else: #3.
func (l Listed) number(ref string) (id session.ID, typed, sure bool) {
	digits, sure := strings.CutPrefix(strings.TrimSpace(ref), "#")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || strconv.Itoa(n) != digits {
		return "", false, false
	}
	if n <= len(l.IDs) {
		id = l.IDs[n-1]
	}
	return id, true, sure
}

// without says why a number is not in the list.
func (l Listed) without() string {
	if len(l.IDs) == 0 {
		return cmp.Or(l.Why, "no list of sessions was printed here yet")
	}
	return fmt.Sprintf("the last list ends with number %d", len(l.IDs))
}

// Numbered returns the id of the session that ref is the number of, or ref itself
// if it is not a number.
func Numbered(ctx context.Context, st session.Store, ref string, last Listed) string {
	if _, typed, _ := last.number(ref); typed {
		if in, err := Find(ctx, st, ref, false, last); err == nil {
			return string(in.ID)
		}
	}
	return ref
}

// Find resolves what a person typed for a session. It is, in this order:
//
//   - its id, or its key (which means the newest log of the key);
//   - its number in the list that was shown last;
//   - the whole of its title, or of the last part of its key;
//   - the beginning of its key or its id;
//   - the beginning of a word in its key or title: "my-p" is "main:cli:my-project";
//   - any other part of its key, title or id, of at least three characters.
//
// The first of these that fits any session decides; case does not matter. If it
// fits several, or a number is another session's name as well, the error is an
// *AmbiguousError; if nothing fits, it is a *NoneError. A subagent's session is
// meant only if nothing else fits. Only ids and whole keys are found without listing all sessions.
//
// A whole key does not stand for the beginning of another: "main:telegram:4"
// and "main:telegram:42" are two people. It does
//
//   - in the terminal's channel, where peers are names that the user gave,
//     unless that would cut a number;
//   - if the other key ends in a UUID or another id of 16 hex digits or more,
//     and ref has at least 8 characters of that id;
//   - if the other key is that of an agent's main session, agent:ID:main.
func Find(ctx context.Context, st session.Store, ref string, trash bool, last Listed) (session.Info, error) {
	if strings.TrimSpace(ref) == "" {
		return session.Info{}, &NoneError{Ref: ref}
	}
	for in, err := range st.List(ctx, session.Query{ID: session.ID(ref), Trash: trash}) {
		return in, err
	}
	keyed, err := collect(st.List(ctx, session.Query{Key: session.Key(ref), Trash: trash}))
	if err != nil {
		return session.Info{}, err
	}
	if keyed = newest(keyed); len(keyed) > 0 {
		return keyed[0], nil
	}
	numbered, typed, sure := last.number(ref)
	if sure {
		return listed(ctx, st, ref, numbered, trash, last)
	}
	all, err := collect(st.List(ctx, session.Query{Trash: trash}))
	if err != nil {
		return session.Info{}, err
	}
	cands, best := fitting(all, ref)
	if numbered != "" && best != named {
		return listed(ctx, st, ref, numbered, trash, last)
	}
	if len(cands) == 0 && !session.Key(ref).Complete() { // perhaps the title is one that is made when it is shown
		for i := range all {
			all[i].Title = Title(ctx, st, all[i])
		}
		if cands, _ = fitting(all, ref); len(cands) == 1 {
			return session.Stat(ctx, st, cands[0].ID)
		}
	}
	if numbered != "" { // the name of another session is a number
		in, err := listed(ctx, st, ref, numbered, trash, last)
		if err != nil {
			return in, err
		}
		if !slices.ContainsFunc(cands, func(c session.Info) bool { return c.ID == in.ID }) {
			cands = append([]session.Info{in}, cands...)
		}
	}
	switch len(cands) {
	case 0:
		none := &NoneError{Ref: ref, Near: nearest(all, ref)}
		if typed {
			none.Why = last.without()
		}
		return session.Info{}, none
	case 1:
		return cands[0], nil
	default:
		for i := range cands {
			cands[i].Title = Title(ctx, st, cands[i])
		}
		return session.Info{}, &AmbiguousError{Ref: ref, Candidates: cands}
	}
}

// listed returns the session id, which ref is the number of.
func listed(ctx context.Context, st session.Store, ref string, id session.ID, trash bool, last Listed) (session.Info, error) {
	if id == "" {
		return session.Info{}, &NoneError{Ref: ref, Why: last.without()}
	}
	for in, err := range st.List(ctx, session.Query{ID: id, Trash: trash}) {
		return in, err
	}
	in, err := session.Stat(ctx, st, id)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return in, &NoneError{Ref: ref, Why: fmt.Sprintf("that was %s in the last list, which is not there any more", id)}
	case err != nil:
		return in, err
	case trash:
		return in, &NoneError{Ref: ref, Why: fmt.Sprintf("that was %s (%s) in the last list, which is not in the trash", in.Key, id)}
	}
	return in, &NoneError{Ref: ref, Why: fmt.Sprintf("that was %s (%s) in the last list, which is in the trash since", in.Key, id)}
}

// Beginning says whether a reference that fits nothing may begin a session.
type Beginning int

const (
	Never    Beginning = iota
	WholeKey           // a whole key begins one
	Asked              // ref must be a whole key, means that key only, and begins a session if there is none
)

// Address resolves what a person typed for a session to talk in, as Find does.
// An Info without an ID has the key of the session that the first message begins.
func Address(ctx context.Context, st session.Store, ref string, last Listed, begin Beginning) (session.Info, error) {
	key := session.Key(ref)
	if begin == Asked {
		if !key.Complete() {
			return session.Info{}, &KeyError{Text: ref}
		}
		in, err := session.Current(ctx, st, key)
		if errors.Is(err, session.ErrNotFound) {
			return session.Info{Key: key}, nil
		}
		return in, err
	}
	in, err := Find(ctx, st, ref, false, last)
	var none *NoneError
	if errors.As(err, &none) && begin == WholeKey && key.Complete() {
		return session.Info{Key: key}, nil
	}
	return in, err
}

// KeyError says that a text is no key that a session may begin with.
type KeyError struct{ Text string }

func (e *KeyError) Error() string {
	example := strings.Trim(strings.Join(strings.FieldsFunc(strings.ToLower(e.Text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), "-"), "-")
	return fmt.Sprintf("%q is not a key: a key is agent:channel:peer without spaces, such as main:cli:%s", e.Text, cmp.Or(example, "trip"))
}

// fit is how well a reference fits a session; higher is better.
type fit int

const (
	unfit  fit = iota
	inside     // it is somewhere in the key, the title or the id
	inWord     // it begins a word of the key or the title
	begins     // it begins the key or the id
	named      // it is the title, or the last part of the key
)

// fitting returns the sessions that ref fits best, and how well. Logs of one key
// are one candidate unless ref fits their ids or titles, and a continuation
// takes the place of its mirror, a session that of its subagents.
func fitting(all []session.Info, ref string) (cands []session.Info, best fit) {
	var byKey, others []session.Info
	ref = normal(ref)
	for _, in := range all {
		key, other := fits(in, ref)
		f := max(key, other)
		if f == unfit || f < best {
			continue
		}
		if f > best {
			best, byKey, others = f, nil, nil
		}
		if key == f {
			byKey = append(byKey, in)
		} else {
			others = append(others, in)
		}
	}
	cands = append(newest(byKey), others...)
	if subs := func(in session.Info) bool { return in.Subagent() }; slices.ContainsFunc(cands, func(in session.Info) bool { return !subs(in) }) {
		cands = slices.DeleteFunc(cands, subs)
	}
	cands = slices.DeleteFunc(cands, func(in session.Info) bool {
		return in.Mirror() && slices.ContainsFunc(cands, func(own session.Info) bool {
			return own.Origin.ID == in.ID && !own.Mirror() && own.Key == mirrors.OwnKey(own.Origin.Key)
		})
	})
	return cands, best
}

// fits says how well ref, which is normal, fits the key of in, and how well it
// fits the title and id.
func fits(in session.Info, ref string) (key, other fit) {
	k := normal(string(in.Key))
	if session.Key(ref).Complete() {
		if rest, ok := strings.CutPrefix(k, ref); ok && goesOn(in.Key, ref, rest) {
			return begins, unfit
		}
		return unfit, unfit
	}
	title := normal(in.Title)
	switch {
	case normal(in.Key.Parts().Peer) == ref:
		key = named
	case strings.HasPrefix(k, ref):
		key = begins
	case beginsWord(k, ref):
		key = inWord
	case isInside(k, ref):
		key = inside
	}
	switch {
	case title == ref:
		other = named
	case strings.HasPrefix(normal(string(in.ID)), ref):
		other = begins
	case beginsWord(title, ref):
		other = inWord
	case isInside(title, ref), isInside(normal(string(in.ID)), ref):
		other = inside
	}
	return key, other
}

// terminal is the channel of sessions in a terminal. The last part of their
// keys is a name that the user gave them; in other channels it is a person.
const terminal = "cli"

// goesOn reports whether the whole key ref may stand for key, which has rest
// after it.
func goesOn(key session.Key, ref, rest string) bool {
	if strings.HasPrefix(rest, ":") { // agent:main:telegram, and a peer there
		return strings.HasPrefix(ref, "agent:") && strings.Count(ref, ":") == 2
	}
	next, _ := utf8.DecodeRuneInString(strings.TrimPrefix(rest, "-"))
	switch p := key.Parts(); {
	case p.Channel == terminal:
		return !unicode.IsDigit(next)
	case p.Channel == "main" && p.Peer == "" && p.Thread == "":
		return true
	}
	typed := ref[strings.LastIndex(ref, ":")+1:]
	return len(typed) >= 8 && hexID(typed+rest)
}

// hexID reports whether text is a UUID or another id with enough hex digits that
// its beginning identifies it.
func hexID(text string) bool {
	digits := strings.ReplaceAll(text, "-", "")
	letters := false
	for _, c := range digits {
		if !strings.ContainsRune("0123456789abcdef", c) {
			return false
		}
		letters = letters || c >= 'a'
	}
	uuid := len(digits) == 32 && len(text) == 36
	return uuid || len(digits) >= 16 && letters
}

// normal is text in lower case, with single spaces.
func normal(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// isInside reports whether ref, if it is not too short to mean anything, is a
// part of text.
func isInside(text, ref string) bool {
	return utf8.RuneCountInString(ref) >= 3 && strings.Contains(text, ref)
}

// beginsWord reports whether ref occurs in text at the beginning of a word. In
// scripts without spaces, every letter begins a word.
func beginsWord(text, ref string) bool {
	first, _ := utf8.DecodeRuneInString(ref)
	apart := unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
	for at := 0; ; {
		i := strings.Index(text[at:], ref)
		if i < 0 {
			return false
		}
		at += i
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		if at == 0 || apart || !unicode.IsLetter(before) && !unicode.IsDigit(before) {
			return true
		}
		_, n := utf8.DecodeRuneInString(text[at:])
		at += n
	}
}

// nearest returns up to three sessions whose names ref may misspell.
func nearest(all []session.Info, ref string) []session.Info {
	type near struct {
		session.Info
		d int
	}
	var found []near
	ref = normal(ref)
	for _, in := range newest(all) {
		if d, ok := distance(in, ref); ok {
			found = append(found, near{in, d})
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].d < found[j].d })
	var out []session.Info
	for _, n := range found[:min(len(found), 3)] {
		out = append(out, n.Info)
	}
	return out
}

// distance says how far ref is from the nearest name of in, or from the beginning
// of one. ok is false if none is near.
func distance(in session.Info, ref string) (best int, ok bool) {
	try := func(name string) {
		name = normal(name)
		r := []rune(name)
		for _, n := range []string{name, string(r[:min(len(r), utf8.RuneCountInString(ref))])} {
			if d, near := near.Distance(ref, n); near && n != "" && (!ok || d < best) {
				best, ok = d, true
			}
		}
	}
	try(string(in.Key))
	try(in.Key.Parts().Peer)
	try(in.Title)
	words := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for _, w := range strings.FieldsFunc(string(in.Key)+" "+in.Title, words) {
		if utf8.RuneCountInString(w) > 3 {
			try(w)
		}
	}
	return best, ok
}

func collect(infos iter.Seq2[session.Info, error]) ([]session.Info, error) {
	var out []session.Info
	for in, err := range infos {
		if err != nil {
			return nil, err
		}
		out = append(out, in)
	}
	return out, nil
}

// newest returns the current log of each key.
func newest(infos []session.Info) []session.Info {
	var out []session.Info
	at := map[session.Key]int{}
	for _, in := range infos {
		i, ok := at[in.Key]
		switch {
		case !ok:
			at[in.Key] = len(out)
			out = append(out, in)
		case in.Newer(out[i]):
			out[i] = in
		}
	}
	return out
}
