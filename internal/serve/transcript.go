package serve

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"goclaw/internal/handover"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/session"
)

// viewAPI answers with sessions as people read them: Markdown as HTML, long
// texts cut, and the branches.
type viewAPI struct{ *Server }

// item is a record as people read it.
type item struct {
	Seq      session.Seq `json:"seq"`
	Time     string      `json:"time,omitempty"`
	Kind     string      `json:"kind"` // user, assistant, tool, notice, compaction, checkpoint, undo, model, title, shell, custom, reset, branch
	HTML     string      `json:"html,omitempty"`
	Text     string      `json:"text,omitempty"`
	Thinking string      `json:"thinking,omitempty"`
	Calls    []call      `json:"calls,omitempty"`
	Results  []result    `json:"results,omitempty"`
	Images   []image     `json:"images,omitempty"`
	Error    string      `json:"error,omitempty"`
	Stop     llm.Stop    `json:"stop,omitempty"` // why an answer ended
	Model    string      `json:"model,omitempty"`
	Percent  int         `json:"percent,omitempty"`
	Tokens   int         `json:"tokens,omitempty"`
	After    int         `json:"tokensAfter,omitempty"`
	Cut      int         `json:"cut,omitempty"`  // bytes of the text that are not shown
	Dead     bool        `json:"dead,omitempty"` // on a branch that is not the live one
}

type call struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Line  string          `json:"line"` // the call in one line
	Input json.RawMessage `json:"input"`
}

type result struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Text    string `json:"text"`
	Cut     int    `json:"cut,omitempty"`
	IsError bool   `json:"isError"`
}

// image is the path of a picture in the API.
type image struct {
	Path string `json:"path"`
}

// Texts beyond these sizes are cut: whole ones are in the records.
const (
	mostText   = 100 << 10
	mostResult = 16 << 10
)

// colours are the sequences that colour text in a terminal.
var colours = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

// visible returns text as a page may show it: nothing in it is hidden, and
// nothing changes the direction of what comes after it.
func visible(text string) string {
	if strings.IndexFunc(text, terminal.Hidden) < 0 {
		return text
	}
	return transcript.Printable(strings.ReplaceAll(colours.ReplaceAllString(text, ""), "\r\n", "\n"))
}

// cut returns the beginning of text, and how many bytes are missing.
func cut(text string, most int) (string, int) {
	if len(text) <= most {
		return text, 0
	}
	n := most
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n], len(text) - n
}

// itemOf returns a record of a session as people read it; ok is false if they
// do not.
func itemOf(id session.ID, rec session.Record) (it item, ok bool) {
	it = item{Seq: rec.Seq, Time: transcript.Stamp(rec.Time)}
	text := ""
	switch b := rec.Body.(type) {
	case session.Message:
		it.fill(id, b)
		text = b.Text()
	case session.Compaction:
		it.Kind, it.Tokens, it.After, text = "compaction", b.TokensBefore, b.TokensAfter, b.Summary
	case session.Checkpoint:
		it.Kind, it.Tokens, it.Model, text = "checkpoint", b.Tokens, b.Model, b.Summary
	case session.Notice:
		it.Kind, it.Percent, it.Text = "notice", b.Percent, b.Text
	case session.Undo:
		it.Kind, it.Text = "undo", "The compaction was undone: what it covered is sent again."
	case session.ModelChange:
		it.Kind, it.Text = "model", b.Name()
	case session.Title:
		it.Kind, it.Text = "title", b.Title
	case session.Shell:
		it.Kind, it.Text = "shell", "$ "+b.Command+"\n"+b.Output
	case session.CustomMessage:
		it.Kind, text = "custom", llm.Message{Blocks: b.Blocks}.Text()
	case session.Reset:
		it.Kind, it.Text = "reset", b.Reason
	case session.BranchSummary:
		it.Kind, text = "branch", b.Summary
	default:
		return it, false
	}
	if text != "" {
		text, it.Cut = cut(text, mostText)
		it.HTML = handover.HTML(visible(text))
	}
	if it.Text != "" {
		it.Text, it.Cut = cut(it.Text, mostText)
		it.Text = visible(it.Text)
	}
	it.Model = transcript.Name(it.Model)
	return it, true
}

func (it *item) fill(id session.ID, m session.Message) {
	it.Kind, it.Error = string(m.Role), visible(m.Error)
	if m.Role == llm.Assistant {
		it.Stop = m.Stop
		it.Model = strings.TrimPrefix(m.Provider+"/"+m.Model, "/")
		it.Tokens = m.Usage.Prompt() + m.Usage.Output
	}
	for _, block := range m.Blocks {
		switch b := block.(type) {
		case llm.Thinking:
			more, _ := cut(b.Text, mostText)
			it.Thinking += visible(more)
		case llm.ToolCall:
			c := call{b.ID, transcript.Name(b.Name), transcript.CallLine(b), b.Args}
			if len(c.Input) > mostResult || !json.Valid(c.Input) {
				text, _ := cut(string(c.Input), mostResult)
				c.Input, _ = json.Marshal(text)
			}
			it.Calls = append(it.Calls, c)
		case llm.ToolResult:
			it.Kind = "tool"
			text, n := cut(b.Text(), mostResult)
			it.Results = append(it.Results, result{b.CallID, transcript.Name(b.Name), visible(text), n, b.IsError})
		}
	}
	for i := range picturesOf(m) {
		it.Images = append(it.Images, image{fmt.Sprintf("/v1/sessions/%s/images/%d/%d", url.PathEscape(string(id)), it.Seq, i)})
	}
}

// pictures are the types of images that browsers show and that hold nothing but
// a picture.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// picture is an image that a page can show.
type picture struct {
	mime string
	data []byte
}

// picturesOf returns the pictures of a message.
func picturesOf(m session.Message) (out []picture) {
	add := func(block llm.Block) {
		if img, ok := block.(llm.Image); ok && slices.Contains(pictures, img.MIME) {
			if data, err := base64.StdEncoding.DecodeString(img.Data); err == nil {
				out = append(out, picture{img.MIME, data})
			}
		}
	}
	for _, block := range m.Blocks {
		add(block)
		if r, ok := block.(llm.ToolResult); ok {
			for _, in := range r.Blocks {
				add(in)
			}
		}
	}
	return out
}

// image answers with a picture in a record.
func (s viewAPI) image(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	n, err2 := strconv.Atoi(r.PathValue("n"))
	if err != nil || err2 != nil || seq < 1 || n < 0 {
		return wrong(http.StatusBadRequest, "write the number of a record, and that of a picture in it")
	}
	for rec, err := range s.b.Store().Read(r.Context(), in.ID, session.Seq(seq)-1) {
		if err != nil {
			return err
		}
		m, _ := rec.Body.(session.Message)
		found := picturesOf(m)
		if int64(rec.Seq) != seq || n >= len(found) {
			break
		}
		w.Header().Set("Content-Type", found[n].mime)
		_, err = w.Write(found[n].data)
		return err
	}
	return wrong(http.StatusNotFound, "record %d has no picture %d", seq, n)
}

// transcript answers with what was said: before a record, after one, or the
// latest.
func (s viewAPI) transcript(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	p, err := pageOf(r, in)
	if err != nil {
		return err
	}
	form, err := s.form(r.Context(), in)
	if err != nil {
		return err
	}
	items, size := []item{}, 0
	var damage *session.Damage
	var parts session.Joiner
	first, last := session.Seq(p.after)+1, session.Seq(p.after)
	take := func(rec session.Record) {
		it, ok := itemOf(in.ID, rec)
		if !ok {
			return
		}
		it.Dead = form.dead[rec.Seq]
		items = append(items, it)
		size += it.size()
		for p.back && size > maxPage && len(items) > 1 { // long ones: the latest of them
			size -= items[0].size()
			items = items[1:]
			first = items[0].Seq
		}
	}
	for rec, err := range s.b.Store().Read(r.Context(), in.ID, session.Seq(p.after)) {
		if errors.As(err, &damage) {
			continue
		}
		if err != nil {
			return err
		}
		if int64(rec.Seq) >= p.before || size > maxPage && !p.back {
			break
		}
		last = rec.Seq
		for _, rec := range parts.Next(rec) {
			take(rec)
		}
	}
	if last == in.Last {
		for _, rec := range parts.End() {
			take(rec)
		}
	}
	return writeJSON(w, http.StatusOK, map[string]any{"items": items, "first": first, "last": last, "end": in.Last, "compaction": form.compaction})
}

// size is about how many bytes an item takes in an answer.
func (it item) size() int {
	n := len(it.HTML) + len(it.Text) + len(it.Thinking)
	for _, c := range it.Calls {
		n += len(c.Input)
	}
	for _, r := range it.Results {
		n += len(r.Text)
	}
	return n
}

// branch is the end of a branch.
type branch struct {
	ID    string      `json:"id"`
	Seq   session.Seq `json:"seq"`
	Live  bool        `json:"live"`
	Own   session.Seq `json:"own"` // where its own records begin; 0: the live branch has them all
	Turns int         `json:"turns"`
	Text  string      `json:"text"` // the first message that no other branch has, or the last one of the live branch
}

func (s viewAPI) branches(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	whole, err := session.Replay(in.ID, s.b.Store().Read(r.Context(), in.ID, 0))
	if err != nil {
		return err
	}
	on := map[session.Seq]int{} // how many branches a message of the user is on
	turns := func(tip session.Tip) iter.Seq2[session.Seq, session.Message] {
		return func(yield func(session.Seq, session.Message) bool) {
			for _, rec := range whole.Path(tip.ID) {
				if m, ok := rec.Body.(session.Message); ok && session.IsTurn(m) && !yield(rec.Seq, m) {
					return
				}
			}
		}
	}
	for _, tip := range whole.Tips() {
		for seq := range turns(tip) {
			on[seq]++
		}
	}
	out := []branch{}
	for _, tip := range whole.Tips() {
		b := branch{ID: tip.ID, Seq: tip.Seq, Live: tip.Live, Own: tip.Own}
		for seq, m := range turns(tip) {
			b.Turns++
			if tip.Live || b.Text == "" && on[seq] == 1 {
				b.Text = transcript.OneLine(m.Text(), 120)
			}
		}
		if tip.Live || b.Turns > 0 { // else nothing was said there
			out = append(out, b)
		}
	}
	return writeJSON(w, http.StatusOK, map[string]any{"branches": out})
}

// move goes to the end of another branch, or back to before a message, whose
// text it answers with.
func (s viewAPI) move(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		To     string      `json:"to"`
		Before session.Seq `json:"before"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	if (body.To == "") == (body.Before == 0) {
		return wrong(http.StatusBadRequest, "give either to, the id of a branch, or before, the number of a message")
	}
	in, err := s.session(r)
	if err != nil {
		return err
	}
	if in.Mirror() {
		return wrong(http.StatusConflict, "this session belongs to another program and is read-only: say something first")
	}
	st := s.b.Store()
	release, err := st.Lock(r.Context(), string(in.ID), "goclaw serve")
	if err != nil {
		return err
	}
	defer release()
	whole, err := session.Replay(in.ID, st.Read(r.Context(), in.ID, 0))
	if err != nil {
		return err
	}
	target, text, found := body.To, "", false
	if body.Before > 0 {
		before := "" // the record that the message continues
		for _, rec := range whole.Branch {
			if rec.Seq == body.Before && session.IsTurn(rec.Body) {
				target, text, found = before, rec.Body.(session.Message).Text(), true
				break
			}
			switch rec.Body.(type) {
			case session.Header, session.Unknown, session.Leaf:
			default:
				before = rec.ID
			}
		}
		if !found {
			return wrong(http.StatusBadRequest, "record %d is not a message of the user on this branch", body.Before)
		}
	} else if whole.Path(target) == nil {
		return wrong(http.StatusBadRequest, "there is no branch that ends with %q", target)
	}
	move := whole.Next(session.Leaf{Target: target}, session.System{})
	if target == "" { // before the first message
		move = whole.Restart(session.System{})
	}
	if _, err := session.Keep(r.Context(), st, whole, move, session.System{}); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"session": s.b.Session(whole.Info), "text": text})
}

// inEffect is the compaction in effect.
type inEffect struct {
	First   session.Seq `json:"first"` // what is sent as it is begins here
	Summary item        `json:"summary"`
}

// form is what the records of a log are to each other.
type form struct {
	dead       map[session.Seq]bool // not on the live branch
	compaction *inEffect            // nil: nothing is compacted
}

// forms remembers the form of the session that was read last.
type forms struct {
	mu   sync.Mutex
	id   session.ID
	last session.Seq
	form form
}

// form returns the form of a session. Most logs have no bend and no compaction,
// and are not read for it.
func (s viewAPI) form(ctx context.Context, in session.Info) (form, error) {
	if in.LastBend == 0 && in.Compactions == 0 {
		return form{}, nil
	}
	f := &s.forms
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.id == in.ID && f.last == in.Last {
		return f.form, nil
	}
	var whole *session.Session
	var err error
	if in.LastBend > 0 {
		whole, err = session.Replay(in.ID, s.b.Store().Read(ctx, in.ID, 0))
	} else {
		whole, err = session.Open(ctx, s.b.Store(), in.ID)
	}
	if err != nil {
		return form{}, err
	}
	out := form{}
	if in.LastBend > 0 {
		out.dead = deadIn(whole)
	}
	if at, keep, ok := whole.Compaction(); ok {
		if it, ok := itemOf(in.ID, whole.Branch[at]); ok && it.Kind == "compaction" {
			out.compaction = &inEffect{whole.Branch[keep].Seq, it}
		}
	}
	f.id, f.last, f.form = in.ID, in.Last, out
	return out, nil
}

// deadIn returns the records that are not on the live branch.
func deadIn(whole *session.Session) map[session.Seq]bool {
	live := map[session.Seq]bool{}
	for _, rec := range whole.Branch {
		live[rec.Seq] = true
	}
	dead := map[session.Seq]bool{}
	for _, tip := range whole.Tips() {
		if tip.Live {
			continue
		}
		for _, rec := range whole.Path(tip.ID) {
			if !live[rec.Seq] {
				dead[rec.Seq] = true
			}
		}
	}
	return dead
}
