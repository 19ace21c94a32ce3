package tui

import (
	"context"

	"goclaw/internal/tui/ask"
	"goclaw/tool"
)

// Permit asks whether a call may run. What was typed before the question was
// drawn does not answer it.
func (u *UI) Permit(ctx context.Context, req tool.Request) (tool.Decision, error) {
	q := ask.NewPermission(req, u.model.style)
	if err := u.OpenQuestion(ctx, q); err != nil {
		return tool.No, err
	}
	return q.Answer()
}

// Yes asks a question to which the answer is yes or no; enter is what Enter means.
func (u *UI) Yes(ctx context.Context, question string, enter bool) (bool, error) {
	q := ask.NewYes(question, enter, u.model.style)
	if err := u.OpenQuestion(ctx, q); err != nil {
		return false, err
	}
	return q.Answer()
}
