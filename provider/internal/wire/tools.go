package wire

import "goclaw/llm"

// Renamed returns yield for the answer to a request whose tools were sent under
// other names, by the name that was sent: calls have the tools' own names.
func Renamed(names map[string]string, yield func(llm.Delta, error) bool) func(llm.Delta, error) bool {
	if len(names) == 0 {
		return yield
	}
	own := func(c llm.ToolCall) llm.ToolCall {
		if name, ok := names[c.Name]; ok {
			c.Name = name
		}
		return c
	}
	return func(d llm.Delta, err error) bool {
		switch {
		case d.Call != nil:
			c := own(*d.Call)
			d.Call = &c
		case d.End != nil:
			end := *d.End
			end.Message.Blocks = append([]llm.Block(nil), end.Message.Blocks...)
			for i, b := range end.Message.Blocks {
				if c, ok := b.(llm.ToolCall); ok {
					end.Message.Blocks[i] = own(c)
				}
			}
			d.End = &end
		}
		return yield(d, err)
	}
}
