package fetch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"goclaw/llm"
	"goclaw/tool"
	"goclaw/tool/fetch"
)

func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<h1>Tea</h1><p>Green <em>tea</em>.</p>")
	}))
	defer site.Close()
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	tools, err := tool.New(tool.Options{Workspace: dir, Now: time.Now, Rules: []tool.Rule{{Tool: "fetch"}}})
	if err != nil {
		panic(err)
	}
	defer tools.Close()
	if err := tools.Add(fetch.New(fetch.Options{Private: []string{"127.0.0.1"}})); err != nil {
		panic(err)
	}
	r, err := tools.Run(context.Background(), llm.ToolCall{ID: "1", Name: "fetch", Args: fmt.Appendf(nil, `{"url": %q}`, site.URL)})
	if err != nil {
		panic(err)
	}
	_, page, _ := strings.Cut(r.Text(), "\n")
	fmt.Println(page)
	// Output:
	// # Tea
	//
	// Green *tea*.
}
