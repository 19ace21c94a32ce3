//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// browser is a real Chromium that looks at a server's page. It keeps what must
// never happen: errors of scripts, violations of the content policy, dialogs,
// and requests to elsewhere.
type browser struct {
	t   *testing.T
	ctx context.Context
	s   *server

	mu  sync.Mutex
	bad []string
	may string // what the console may say
}

// chromium starts the browser that the tests share.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1200, 800),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// browse opens the page of s with its login link, in a window that knows no
// other.
func browse(t *testing.T, in context.Context, s *server) *browser {
	t.Helper()
	ctx, cancel := chromedp.NewContext(in, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, s: s}
	watch(b, chromedp.Console(ctx), func(m chromedp.ConsoleMessage) string {
		text := fmt.Sprint(m)
		if strings.Contains(text, "Failed to load resource: the server responded with a status of 4") {
			return "" // the page asked about what another has just removed, and says so itself
		}
		if strings.Contains(strings.ToLower(text), "error") || strings.Contains(text, "Content Security Policy") {
			return "the console says " + text
		}
		return ""
	})
	never(b, page.JavascriptDialogOpening, func(ev page.EventJavascriptDialogOpening) string { return "a dialog opened: " + ev.Message })
	never(b, network.RequestWillBeSent, func(ev network.EventRequestWillBeSent) string {
		if u := ev.Request.URL; !strings.HasPrefix(u, s.url) && !strings.HasPrefix(u, "data:") {
			return "a request went to " + u
		}
		return ""
	})
	never(b, audits.IssueAdded, func(ev audits.EventIssueAdded) string {
		if ev.Issue.Code == audits.InspectorIssueCodeContentSecurityPolicyIssue {
			return fmt.Sprintf("the content policy was violated: %+v", ev.Issue.Details.ContentSecurityPolicyIssueDetails)
		}
		return ""
	})
	if _, err := chromedp.Call(ctx, audits.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(s.login), chromedp.WaitVisible(chromedp.CSS(".list")))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, what := range b.bad {
			t.Error(what)
		}
	})
	return b
}

// never watches for events that are wrong: wrong says why, or "".
func never[E any](b *browser, ev cdp.Event[E], wrong func(E) string) {
	watch(b, chromedp.Events(b.ctx, ev), wrong)
}

func watch[E any](b *browser, events iter.Seq2[E, error], wrong func(E) string) {
	go func() {
		for ev, err := range events {
			if err != nil {
				return
			}
			if why := wrong(ev); why != "" {
				b.mu.Lock()
				if b.may == "" || !strings.Contains(why, b.may) {
					b.bad = append(b.bad, why)
				}
				b.mu.Unlock()
			}
		}
	}()
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.activeElement?.outerHTML.slice(0, 200) + '\\n' + document.getElementById('say')?.value + '\\n' + document.body.innerText"))
		b.t.Fatalf("%v; the focus, the draft and the page:\n%s", err, text)
	}
}

// see waits until the page shows text in what the selector selects.
func (b *browser) see(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.innerText.includes(%q))", selector, text))
}

// until waits until an expression is true in the page.
func (b *browser) until(js string) {
	b.t.Helper()
	b.do(chromedp.Poll[chromedp.Void]("!!("+js+")", chromedp.WithPollingTimeout(testPatience)))
}

// js runs a script in the page.
func (b *browser) js(script string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](script))
}

// value returns what an expression is in the page.
func value[T any](b *browser, js string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// press presses one key that means something to the page: what it does is not
// typed as well.
func (b *browser) press(key string) {
	b.t.Helper()
	down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key}
	if key == "Enter" {
		down.Text, down.WindowsVirtualKeyCode = "\r", 13
	}
	for _, ev := range []input.DispatchKeyEventParams{down, {Type: input.DispatchKeyEventTypeKeyUp, Key: key}} {
		if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, ev); err != nil {
			b.t.Fatal(err)
		}
	}
}

// keys types, wherever the focus is.
func (b *browser) keys(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// size looks at the page in a window of another size.
func (b *browser) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// click presses the first button or link in what the selector selects that has
// this name.
func (b *browser) click(selector, name string) {
	b.t.Helper()
	js := fmt.Sprintf("[...document.querySelectorAll(%q)].find(e => e.innerText.trim() === %q || e.innerText.includes(%[2]q))", selector, name)
	b.until(js)
	b.js(js + ".click()")
}

// say types a message, in place of what is there, and sends it.
func (b *browser) say(text string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS("#say")))
	b.js("say.value = ''; say.dispatchEvent(new Event('input', {bubbles: true}))")
	b.do(chromedp.SendKeys(chromedp.CSS("#say"), text))
	b.press("Enter")
}

// picture saves a screenshot in the folder GOCLAW_SCREENSHOTS, if that is set.
func (b *browser) picture(name string) {
	dir := os.Getenv("GOCLAW_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// theme looks at the page with a dark or a light background.
func (b *browser) theme(name string) {
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestPage uses the page in a real browser, as a person does.
func TestPage(t *testing.T) {
	t.Parallel()
	in := chromium(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, context.Context)
	}{
		{"day", pageDay}, {"talk", pageTalk}, {"past", pagePast}, {"list", pageList}, {"long", pageLong}, {"hostile", pageHostile}, {"keyboard", pageKeyboard}, {"access", pageAccess}, {"pictures", pagePictures},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, in)
		})
	}
}

// pageDay is a person's day in the browser.
func pageDay(t *testing.T, in context.Context) {
	model, goOn := slowly(t)
	folder := t.TempDir()
	s := serving(t, t.TempDir(), folder, model)
	b := browse(t, in, s)

	b.click(".new", "New")
	b.do(chromedp.WaitVisible(chromedp.CSS("#say")))
	b.say("hello **there**")
	b.see(".item.assistant", "echo: hello there")
	b.picture("chat")

	// A streamed answer, and a reload in the middle of it.
	b.say("be slow")
	goOn <- "one "
	b.see(".item.live", "one")
	goOn <- "two "
	b.see(".item.live", "one two")
	b.do(chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS("#say")))
	b.see(".item.live", "one two")
	b.say("queued words")
	b.see(".queued", "queued words")
	goOn <- "three"
	goOn <- ""
	b.see(".item.assistant", "one two three")
	b.see(".item.assistant", "echo: queued words")

	// A question with a diff.
	b.say(`call write_file {"path":"a.txt","content":"from the page"}`)
	b.see(".question", "+from the page")
	b.picture("question")
	b.click(".question button:enabled", "Once")
	b.see(".item.tool", "a.txt")
	if data, _ := os.ReadFile(filepath.Join(folder, "a.txt")); string(data) != "from the page" {
		t.Errorf("the file is %q", data)
	}
	b.see(".item.assistant", "echo: call write_file")

	// The window.
	b.click(".tools a", "Window")
	b.do(chromedp.WaitVisible(chromedp.CSS(".plot canvas")))
	b.see(".window", "The next request")
	b.picture("window")
	b.click(".tools a", "Conversation")

	// Rename, search, delete, undo.
	b.click(".tools button", "Rename")
	b.do(chromedp.WaitVisible(chromedp.CSS("input[name=title]")), chromedp.Evaluate[chromedp.Void]("document.querySelector('input[name=title]').select()"), chromedp.SendKeys(chromedp.CSS("input[name=title]"), "My day\r"))
	b.see(".list .name", "My day")
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), "queued words\r"))
	b.see(".hits", "My day")
	b.click(".hits a", "My day")
	b.do(chromedp.WaitVisible(chromedp.CSS(".item.found")))
	b.click(".tools button", "Delete")
	b.see(".toast", "is in the trash")
	b.click(".toast button", "Undo")
	b.see(".list .name", "My day")
	b.theme("dark")
	b.picture("dark")
}
