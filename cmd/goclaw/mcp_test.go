package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// sdkVersion is the client library that `goclaw mcp` is driven with: not from
// the makers of the library that it is written with.
const sdkVersion = "1.32.2"

// TestMCP drives `goclaw mcp` with the client of @modelcontextprotocol/sdk
// from npm, in Node.
func TestMCP(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm here to get the client library with")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sdk := filepath.Join(cache, "goclaw-test", "mcp-sdk-"+sdkVersion)
	if _, err := os.Stat(filepath.Join(sdk, "node_modules", "@modelcontextprotocol", "sdk", "package.json")); err != nil {
		if err := os.MkdirAll(sdk, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(npm, "install", "--no-audit", "--no-fund", "--no-save", "--prefix", sdk, "@modelcontextprotocol/sdk@"+sdkVersion)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("the client library cannot be had: %v\n%s", err, out)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/mcp",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GOCLAW_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("GOCLAW_NO_LOCAL", "1")
			e.Setenv("NO_COLOR", "1")
			e.Setenv("TZ", "UTC")
			e.Setenv("MCP_SDK", sdk)
			return nil
		},
	})
}
