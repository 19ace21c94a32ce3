//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Everything can be done with the keys alone.
func pageKeyboard(t *testing.T, in context.Context) {
	model, goOn := slowly(t)
	s := serving(t, t.TempDir(), t.TempDir(), model)
	other := s.begun()
	s.told(other, "something about lighthouses")
	b := browse(t, in, s)
	b.see(".list .name", "lighthouses")
	// tab presses Tab until the focus is on what has this name.
	tab := func(name string) {
		t.Helper()
		for range 60 {
			if value[bool](b, fmt.Sprintf("(e => !!e && ((e.innerText || '').trim() === %q || e.ariaLabel === %[1]q))(document.activeElement)", name)) {
				return
			}
			b.keys(kb.Tab)
		}
		t.Fatalf("no Tab leads to %q", name)
	}
	b.press("?")
	b.see("dialog", "this list")
	b.until("document.querySelector('dialog').contains(document.activeElement)")
	b.keys(kb.Escape)
	b.until("!document.querySelector('dialog')")
	b.press("n")
	b.do(chromedp.WaitVisible(chromedp.CSS("#say")))
	b.press("m")
	b.until("document.activeElement.id === 'say'")
	b.keys("hello")
	b.press("Enter")
	b.see(".item.assistant", "echo: hello")
	b.keys("be slow")
	b.press("Enter")
	goOn <- "one "
	b.see(".item.live", "one")
	b.keys(kb.Escape)
	b.see(".notice-line", "stopped")

	// A question does not take what is being typed.
	b.js("say.focus()")
	b.keys(`call write_file {"path":"k.txt","content":"keys"}`)
	b.press("Enter")
	b.see(".question", "+keys")
	b.until("document.activeElement.matches('.question')")
	b.keys(" \r") // answers nothing
	b.until("document.querySelector('.question button:enabled')")
	tab("No")
	b.keys("\r")
	b.see(".item.tool", "did not allow")
	b.until("document.activeElement.id === 'say'")
	b.keys("typing")
	b.keys(kb.Escape)

	// Rename, branches, window, search, usage, other sessions, the trash.
	tab("Rename")
	b.keys("\r")
	b.until("document.activeElement.name === 'title'")
	b.js("document.activeElement.select()")
	b.keys("By keys\r")
	b.see(".list .name", "By keys")
	b.until("document.activeElement.id === 'rename'")
	tab("Branches")
	b.keys("\r")
	b.until("document.activeElement.matches('.panel h3')")
	tab("Close")
	b.keys("\r")
	b.until("document.activeElement.id === 'branches'")
	b.js("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
	tab("Window")
	b.keys("\r")
	b.see(".window", "The window over time")
	b.press("/")
	b.until("document.activeElement.id === 'search'")
	b.keys("lighthouses\r")
	b.see(".hits", "lighthouses")
	tab("something about lighthouses")
	b.keys("\r")
	b.see(".item.user", "lighthouses")
	b.js("document.activeElement.blur()")
	b.press("k")
	b.see("h2", "By keys")
	b.press("j")
	b.until("location.hash.endsWith('" + other + "')")
	b.do(chromedp.WaitVisible(chromedp.CSS("#say")))
	tab("Delete")
	b.keys("\r")
	b.until("document.activeElement.innerText === 'Undo'")
	b.keys("\r")
	b.see(".list .name", "lighthouses")
	tab("Usage")
	b.keys("\r")
	b.see("main", "Usage")
}

// axe finds nothing serious in any view: in both themes, on a desk and on a
// phone.
func pageAccess(t *testing.T, in context.Context) {
	const file = "../../.cache/npm/node_modules/axe-core/axe.min.js"
	axe, err := os.ReadFile(file)
	if err != nil {
		t.Skip("axe-core is not there: scripts/test fetches it")
	}
	model, _ := slowly(t)
	s := serving(t, t.TempDir(), t.TempDir(), model)
	id := s.begun()
	for i := range 6 {
		s.told(id, fmt.Sprintf("Turn %d with **bold** words, `code`, a [link](https://example.com) and more to fold away", i))
	}
	s.get(200, "POST", "/v1/sessions/"+id+"/compact", `{}`, nil)
	s.told(id, "list the files")
	gone := s.begun()
	s.get(204, "DELETE", "/v1/sessions/"+gone, "", nil)
	b := browse(t, in, s)
	if _, err := chromedp.Call(b.ctx, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true}); err != nil { // axe makes elements of its own
		t.Fatal(err)
	}
	type finding struct{ ID, Impact, Help, Where string }
	check := func(view string) {
		t.Helper()
		for _, theme := range []string{"light", "dark"} {
			for name, width := range map[string]int64{"desk": 1200, "phone": 390} {
				b.theme(theme)
				b.size(width, 844)
				b.until(fmt.Sprintf("innerWidth === %d && matchMedia('(prefers-color-scheme: %s)').matches", width, theme))
				if !value[bool](b, "!!window.axe") {
					b.js(string(axe))
				}
				found := value[[]finding](b, `axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.filter(v => v.impact === 'serious' || v.impact === 'critical').flatMap(v => v.nodes.map(n => ({id: v.id, impact: v.impact, help: v.help, where: n.html.slice(0, 200) + ' ' + (n.any[0]?.message || '')}))))`)
				for i, f := range found {
					if i > 0 && found[i-1].ID == f.ID {
						continue
					}
					t.Errorf("%s, %s, %s: %s (%s): %s", view, theme, name, f.ID, f.Help, f.Where)
				}
				if over := value[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
					t.Errorf("%s is %d pixels wider than a %s", view, over, name)
				}
				b.picture(strings.ReplaceAll(view, " ", "-") + "-" + theme + "-" + name)
			}
		}
	}
	b.see(".list .name", "Turn 0")
	b.click(".filters summary", "Filters")
	check("the list")
	b.click(".filters label", "In the trash")
	b.see(".row button", "Restore")
	check("the trash")
	b.click(".filters label", "In the trash")
	b.open(id)
	b.see(".compacted", "were compacted")
	b.click(".compacted button", "Show what it covers")
	b.see(".covered", "Turn 0")
	b.js("document.querySelectorAll('details').forEach(d => d.open = true)")
	check("a session")
	b.size(1200, 844)
	b.click("#branches", "Branches")
	b.until("document.activeElement.matches('.panel h3')")
	b.say(`call write_file {"path":"a.txt","content":"x"}`)
	b.see(".question", "+x")
	b.do(chromedp.WaitVisible(chromedp.CSS(".question button:enabled")))
	check("a question")
	b.click(".question button:enabled", "No")
	b.see(".item.tool", "did not allow")
	b.js("location.hash += '/window'")
	b.see(".window", "The next request")
	b.do(chromedp.WaitVisible(chromedp.CSS(".plot canvas")))
	b.js("document.querySelectorAll('details').forEach(d => d.open = true)")
	b.do(chromedp.WaitVisible(chromedp.CSS(".figures")))
	check("the window")
	b.js("location.hash = '#/usage'")
	b.do(chromedp.WaitVisible(chromedp.CSS(".days canvas")))
	check("usage")
	b.js("location.hash = '#/search/fold'")
	b.see(".hits", "fold away")
	check("search")
	b.press("?")
	b.do(chromedp.WaitVisible(chromedp.CSS("dialog")))
	check("help")
	b.keys(kb.Escape)

	// Nothing moves for those who do not want it.
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}}); err != nil {
		t.Fatal(err)
	}
	if moves := value[int](b, "document.getAnimations().length + [...document.querySelectorAll('*')].filter(e => getComputedStyle(e).transitionDuration !== '0s').length"); moves > 0 {
		t.Errorf("%d things move", moves)
	}

	// Whoever has a cookie may use an old link; others are told how to get in.
	b.do(chromedp.Navigate(s.login), chromedp.WaitVisible(chromedp.CSS(".list, .page")))
	if _, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.may = "401 (Unauthorized)"
	b.mu.Unlock()
	b.do(chromedp.Navigate(s.url + "/"))
	b.see("main", "login link")
	check("login")
}
