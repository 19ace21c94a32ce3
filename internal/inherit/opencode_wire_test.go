package inherit_test

import (
	"strings"
	"testing"
)

func init() {
	differences["opencode's summary"] = difference{
		theirs: func(items []string) []string {
			if len(items) > 1 && items[0] == "user What did we do so far?" {
				return append([]string{strings.Replace(items[1], "assistant ", "user ", 1)}, items[2:]...)
			}
			return items
		},
		ours: func(items []string) []string {
			_, summary, ok := strings.Cut(items[0], "<summary>\n")
			if !ok {
				return items
			}
			return append([]string{"user " + strings.TrimSuffix(summary, "\n</summary>")}, items[1:]...)
		},
	}
}

func TestOpenCodeSends(t *testing.T) {
	heldToWire(t, "opencode/1.18.33",
		wired{session: "ses_e2096af40ffefQccsDbPRikwX5", line: 24},
		wired{session: "ses_e2096657bffee728eX874s4O31", line: 21},
		wired{session: "ses_e2094f359ffeLl2OzYXCFIozYz", line: 28, differs: []string{"opencode's summary"}},
	)
}
