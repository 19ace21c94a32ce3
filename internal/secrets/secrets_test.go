package secrets_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/internal/secrets"
)

// joined keeps other programs that look for keys from finding these.
func joined(parts ...string) string { return strings.Join(parts, "") }

func TestFind(t *testing.T) {
	alnum := "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
	tests := []struct{ rule, text, secret string }{
		{"anthropic-key", "the key is sk-ant-api03-abcdefghijklmnopqrst, keep it", "sk-ant-api03-abcdefghijklmnopqrst"},
		{"openai-key", "use sk-proj-" + alnum + "!", "sk-proj-" + alnum},
		{"openai-key", "sk-or-v1-0123456789abcdef0123", "sk-or-v1-0123456789abcdef0123"},
		{"stripe-key", joined("sk_", "live_") + alnum, joined("sk_", "live_") + alnum},
		{"stripe-webhook", "whsec_" + alnum, "whsec_" + alnum},
		{"github-token", "ghp_0123456789abcdefghij0123456789abcdefgh", "ghp_0123456789abcdefghij0123456789abcdefgh"},
		{"github-token", "github_pat_11ABCDEFG0" + alnum, "github_pat_11ABCDEFG0" + alnum},
		{"gitlab-token", "glpat-" + alnum[:20] + " is it", "glpat-" + alnum[:20]},
		{"aws-key-id", "AKIAIOSFODNN7EXAMPLE in us-east-1", "AKIAIOSFODNN7EXAMPLE"},
		{"named-secret", "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiC", "wJalrXUtnFEMIK7MDENGbPxRfiC"},
		{"google-key", "AIza" + alnum[:35], "AIza" + alnum[:35]},
		{"google-token", "ya29." + alnum, "ya29." + alnum},
		{"slack-token", joined("xox", "b-123456789012-abcdefghij"), joined("xox", "b-123456789012-abcdefghij")},
		{"slack-webhook", "post to https://hooks.slack.com/services/T00000/B00000/abcdefghij", "T00000/B00000/abcdefghij"},
		{"discord-webhook", "https://discord.com/api/webhooks/123456/abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz"},
		{"telegram-token", "123456789:AA" + alnum[:33], "AA" + alnum[:33]},
		{"huggingface-token", "hf_" + alnum, "hf_" + alnum},
		{"npm-token", "//registry.npmjs.org/:_authToken=npm_" + alnum[:36], "npm_" + alnum[:36]},
		{"jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"},
		{"private-key", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\nafter", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----"},
		{"private-key", "cut: -----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq", "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq"},
		{"jwt", "eyJhbGciOiJIUzI1NiJ9." + strings.Repeat("a1", 4000) + ".c2lnbmF0dXJl!", "eyJhbGciOiJIUzI1NiJ9." + strings.Repeat("a1", 4000) + ".c2lnbmF0dXJl"},
		{"private-key", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n" + strings.Repeat("abcd\n", 500) + "-----END RSA PRIVATE KEY-----",
			"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n" + strings.Repeat("abcd\n", 500) + "-----END RSA PRIVATE KEY-----"},
		{"url-password", "postgres://me:s3cretpw@db.example/x", "s3cretpw"},
		{"url-password", "redis://:hunter22@cache:6379", "hunter22"},
		{"url-password", "http://proxy:p@ss:w@proxy.example:3128", "p@ss:w"},
		{"url-key", "GET https://api.example/v1?key=AbCd1234EfGh&x=1", "AbCd1234EfGh"},
		{"url-key", "https://api.example/v1?a=b&access_token=0123456789abcdef", "0123456789abcdef"},
		{"curl-password", "curl -s -u admin:Secr3tPass https://x.example", "Secr3tPass"},
		{"curl-password", "curl --user 'admin:pa55' https://x.example", "pa55"},
		{"auth-header", "Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789abcdef"},
		{"auth-header", `-H "Authorization: token abcdefghijklmn"`, "abcdefghijklmn"},
		{"auth-header", "bearer 0123456789abcdef", "0123456789abcdef"},
		{"password", `password: "hunter22"`, "hunter22"},
		{"password", "password=abcdefgh", "abcdefgh"},
		{"password", "DB_PASSWORD=tr0ub4dor&3", "tr0ub4dor&3"},
		{"password", `{\"password\":\"hunter 22\"}`, "hunter 22"},
		{"password", "db_pass: 'correct-horse'", "correct-horse"},
		{"named-secret", "STRIPE_KEY=a8f5f167f44f4964e6c998dee827110c", "a8f5f167f44f4964e6c998dee827110c"},
		{"named-secret", `"apiKey": "q7Hs02kZp91LmXw"`, "q7Hs02kZp91LmXw"},
		{"named-secret", `client_secret = "q7Hs02kZp91LmXw"`, "q7Hs02kZp91LmXw"},
		{"named-secret", "GITHUB_TOKEN=0123456789abcdef0123", "0123456789abcdef0123"},
	}
	for _, tt := range tests {
		found := secrets.Find(tt.text)
		if len(found) != 1 {
			t.Errorf("Find(%q) = %v, want one secret", tt.text, found)
			continue
		}
		m := found[0]
		if got := tt.text[m.Start:m.End]; got != tt.secret || m.Rule != tt.rule {
			t.Errorf("Find(%q): %s %q, want %s %q", tt.text, m.Rule, got, tt.rule, tt.secret)
		}
		clean, n := secrets.Redact(tt.text)
		if want := strings.Replace(tt.text, tt.secret, secrets.Mark, 1); clean != want || n != 1 {
			t.Errorf("Redact(%q) = %q, %d", tt.text, clean, n)
		}
		if again, n := secrets.Redact(clean); again != clean || n != 0 {
			t.Errorf("redacting %q again gives %q, %d", clean, again, n)
		}
	}
}

func TestFindNothing(t *testing.T) {
	tests := []string{
		"commit 3f786850e387550fdab836ed7e6dc881de23001b",
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"id 123e4567-e89b-12d3-a456-426614174000",
		"the token count was 1234, see https://example.com/a:b",
		"set API_KEY=$MY_KEY before",
		"API_KEY=${{ secrets.API_KEY }}",
		"API_KEY=<your key>, or API_KEY=your-api-key-here",
		"password: ********",
		"passwords must be changed",
		"password: string;",
		"the password is required, and the token: optional",
		"docker run -u 1000:1000 image",
		"Basic authentication, and bearer authentication as well",
		"func login(password string, token string) error {",
		`token := os.Getenv("GITHUB_TOKEN")`,
		"password = request.form.password",
		"login(user, password=password, token=self.token)",
		"const apiKey = config.providers.openai.apiKey;",
		"secretKey := deriveKey(seed, 32)",
		"maxTokens: 200000, inputTokens: 123456789012",
		"nextPageToken: \"CAUQAA1234567890abc\"",
		"primary_key=user_id_12345678 sort_key=2024-01-01T00:00:00",
		"PATH=/usr/local/bin:/usr/bin KEYBOARD=us-layout-1234",
		`if strings.HasPrefix(s, "-----BEGIN PRIVATE KEY-----") {`,
		"class=\"sk-circle-fade-dot sk-folding-cube-item\"",
		"git clone ssh://git@github.com:22/me/repo.git and https://user@host/x",
		"https://example.com/search?key=value&token=abc",
		"https://user:$PASSWORD@host and postgres://user:<password>@host",
		"see ghp_ and sk- and AKIA for the prefixes",
		"mailto:a@b.example 12:30:45 foo::bar@baz",
		"tokens: [1, 2, 3], key: value, \"key\": \"3f786850e387550fdab836ed7e6dc881de23001b\"",
		`env = append(env, "PWD="+dir, "password="+word, "x")`,
		"the key is in the drawer; the secret is out",
	}
	for _, text := range tests {
		for _, m := range secrets.Find(text) {
			t.Errorf("%q: %s found %q", text, m.Rule, text[m.Start:m.End])
		}
	}
}

// Images and other binary data in base64 hold no secrets.
func TestFindNothingInRandomBytes(t *testing.T) {
	r := rand.NewChaCha8([32]byte{1})
	data := make([]byte, 1<<20)
	r.Read(data)
	for _, m := range secrets.Find("data:image/png;base64," + base64.StdEncoding.EncodeToString(data)) {
		t.Errorf("%s found %d bytes in random ones", m.Rule, m.End-m.Start)
	}
}

// The program's own source is a large sample of code and prose about keys. Its
// tests hold keys; the rest does not.
func TestFindNothingInCode(t *testing.T) {
	files, found := 0, 0
	for _, dir := range []string{"../../cmd", "../../provider", "../../tool", "../../internal/config", "../../llm"} {
		filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			files++
			for _, m := range secrets.Find(string(data)) {
				found++
				t.Errorf("%s: %s found %q", path, m.Rule, data[m.Start:m.End])
			}
			return err
		})
	}
	if files < 50 {
		t.Fatalf("read %d files", files)
	}
}

func TestWithout(t *testing.T) {
	got := secrets.Without("the server says: key local-key-of-mine is wrong, at http://me:pw1234@h/", "local-key-of-mine", "is", "")
	if want := "the server says: key [redacted] is wrong, at http://me:[redacted]@h/"; got != want {
		t.Errorf("Without: %q, want %q", got, want)
	}
}

func TestMask(t *testing.T) {
	for in, want := range map[string]string{"": "", "short": "****", "sk-ant-api03-abcdWXYZ": "****WXYZ", "a private key\n\n\n\n": "****"} {
		if got := secrets.Mask(in); got != want {
			t.Errorf("Mask(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestVariable(t *testing.T) {
	for kv, want := range map[string]bool{
		"OPENAI_API_KEY=x": true, "GITHUB_TOKEN=x": true, "MY_SECRET_THING=x": true, "DATABASE_URL=postgres://u:p@h/x": true, "HTTPS_PROXY=http://u:p@h:1": true,
		"GIT_CONFIG_VALUE_0=Authorization: Bearer abcdef0123456789": true,
		"PATH=/bin": false, "HOME=/root": false, "DATABASE_URL=postgres://u@h/x": false, "KEYBOARD=us": false, "PATTERN=x": false,
	} {
		name, value, _ := strings.Cut(kv, "=")
		if got := secrets.Variable(name, value); got != want {
			t.Errorf("Variable(%s) = %v", kv, got)
		}
	}
}

func TestJSON(t *testing.T) {
	got, n := secrets.JSON([]byte(`{"command":"echo sk-ant-api03-abcdefghijklmnopqrst","apiKey":"short","n":12345678901234567890,"list":[{"token":"x"}]}`))
	if want := `{"apiKey":"[redacted]","command":"echo [redacted]","list":[{"token":"[redacted]"}],"n":12345678901234567890}`; string(got) != want || n != 3 {
		t.Errorf("JSON: %s, %d", got, n)
	}
	same := `{ "a" : 1 }`
	if got, n := secrets.JSON([]byte(same)); string(got) != same || n != 0 {
		t.Errorf("JSON without a secret: %s, %d", got, n)
	}
}

// Matches are in order, do not overlap, and lie in the text, whatever it is.
func FuzzFind(f *testing.F) {
	f.Add("password=abc123def sk-ant-api03-abcdefghijklmnopqrst postgres://a:b1234567@c")
	f.Add("Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl")
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		for _, m := range secrets.Find(text) {
			if m.Start < at || m.End <= m.Start || m.End > len(text) || m.Rule == "" {
				t.Fatalf("%q: %+v after %d", text, m, at)
			}
			at = m.End
		}
	})
}

func BenchmarkFind(b *testing.B) {
	var text strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&text, "line %d: the token of the key is in the file, password unknown, see https://example.com/%d\n", i, i)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		secrets.Find(text.String())
	}
}
