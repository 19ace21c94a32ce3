package llm

import "context"

// Progress is told what a running tool does. It travels in the context that the
// tool is run with, so that everything between the turn and the tool passes it
// on. Either function may be nil.
type Progress struct {
	// Begun: the call may run, and begins now. What came before, such as a
	// question to the user, is not part of its time.
	Begun func()
	// Output: the tool has printed bytes in all so far, and tail is the end of
	// it: whole lines as far as possible, without secrets, cleaned like a result.
	Output func(tail string, bytes int64)
}

type progressKey struct{}

// WithProgress returns a context whose tools tell p what they do.
func WithProgress(ctx context.Context, p Progress) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

// ProgressOf returns what WithProgress put into ctx.
func ProgressOf(ctx context.Context) Progress {
	p, _ := ctx.Value(progressKey{}).(Progress)
	return p
}
