//go:build linux

package process

import (
	"testing"
)

func TestBlankSecrets(t *testing.T) {
	block := []byte("PATH=/bin\x00OPENAI_API_KEY=abcdef\x00EMPTY_TOKEN=\x00X\x00U=a://b:c@d\x00LAST=x\x00")
	blankSecrets(block)
	if got, want := string(block), "PATH=/bin\x00OPENAI_API_KEY=******\x00EMPTY_TOKEN=\x00X\x00U=*********\x00LAST=x\x00"; got != want {
		t.Errorf("blankSecrets: %q, want %q", got, want)
	}
	blankSecrets(nil)
}
