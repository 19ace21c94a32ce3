package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/config"
	"goclaw/internal/serve"
	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
)

// serveFlags say how goclaw is served.
type serveFlags struct {
	addr   string
	hosts  []string
	remote bool
	asJSON bool
	link   bool

	advertise string
	grace     time.Duration
}

func serveCmd(a *app) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve your sessions in a browser, and an API for programs",
		Long: `Serves the sessions over HTTP: a page for people, and an API for programs
(docs/api.md). The first line on standard output is the address. The login link
that follows opens the page; it works once. Programs send the token in the file
serve-token of goclaw's home.

Only this machine can reach the server, unless --addr names another address and
--remote confirms it. There is no encryption: put a proxy with TLS
in front, and name it with --host.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.link {
				return loginLink(cmd.Context(), a)
			}
			return serveSessions(cmd.Context(), a, f)
		},
	}
	cmd.Flags().StringVar(&f.addr, "addr", "127.0.0.1:7331", "the address to listen on; port 0 picks a free port")
	cmd.Flags().StringArrayVar(&f.hosts, "host", nil, "another host name to accept requests for, such as a proxy's (can be repeated)")
	cmd.Flags().BoolVar(&f.remote, "remote", false, "let other machines reach the server; --addr must name an address they can reach")
	cmd.Flags().DurationVar(&f.grace, "grace", 10*time.Second, "how long running turns may continue after SIGTERM")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, `print {"url","tokenFile","loginUrl"}`)
	cmd.Flags().StringVar(&f.advertise, "advertise", "", "the address at which other servers with the same store and token reach this one (default: where it listens)")
	cmd.Flags().BoolVar(&f.link, "link", false, "print a new login link for the running server")
	a.given.flags(cmd.Flags())
	return cmd
}

func serveSessions(ctx context.Context, a *app, f serveFlags) error {
	host, _, err := net.SplitHostPort(f.addr)
	if err != nil {
		return usage("--addr %q: write ADDRESS:PORT, such as 127.0.0.1:7331", f.addr)
	}
	if ip := net.ParseIP(host); !f.remote && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usage("--addr %s can be reached from other machines: add --remote to allow that", f.addr)
	}
	st, err := a.stores.Imported(ctx)
	if err != nil {
		return err
	}
	if _, err := a.search.index(); err != nil {
		return err
	}
	a.stores.LookSoon(ctx)
	defer a.stores.Follow(ctx, st, func(string) {})()
	file := filepath.Join(a.conf.Home, "serve-token")
	token, err := serve.Token(file)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", f.addr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", f.addr, err)
	}
	back := newBackend(a)
	defer back.close()
	if host != "" && net.ParseIP(host) == nil || f.remote {
		f.hosts = append(f.hosts, host)
	}
	address := "http://" + l.Addr().String()
	a.who = serve.Who(cmp.Or(f.advertise, address))
	srv := serve.New(serve.Options{Backend: back, Token: token, Hosts: f.hosts, Address: cmp.Or(f.advertise, address), Version: version()})
	login := address + srv.LoginPath()
	if err := wholefile.Write(addressFile(a.conf), []byte(address+"\n")); err != nil {
		a.warn("goclaw serve --link will not find this server: %s", transcript.Problem(err))
	}
	if f.asJSON {
		line, err := json.Marshal(map[string]string{"url": address, "tokenFile": file, "loginUrl": login})
		if err != nil {
			return err
		}
		if err := a.print(string(line)); err != nil {
			return err
		}
	} else if err := a.print(address, "Open "+login, "(the link works once; programs use the token in "+file+")"); err != nil {
		return err
	}
	a.grace.Store(int64(f.grace + 15*time.Second)) // what Shutdown takes at most
	ctx, stop := a.interruptible(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	a.note("stopping")
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.grace)
	defer cancel()
	if err := srv.Shutdown(soon); err != nil {
		return err
	}
	return <-failed
}

// addressFile holds the address of the server that began last.
func addressFile(c *config.Loaded) string { return filepath.Join(c.Home, "serve-address") }

// loginLink prints a new login link of the server that runs.
func loginLink(ctx context.Context, a *app) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	address, err := wholefile.Read(addressFile(c), wholefile.Small)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("no server is running: goclaw serve starts one")
	}
	if err != nil {
		return err
	}
	token, err := serve.Token(filepath.Join(c.Home, "serve-token"))
	if err != nil {
		return err
	}
	at := strings.TrimSpace(string(address))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/v1/login-links", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Timeout: 5 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no server answers at %s: goclaw serve starts one", at)
	}
	defer resp.Body.Close()
	var made struct{ URL string }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || made.URL == "" {
		return fmt.Errorf("the server at %s gives no login link (%s)", at, resp.Status)
	}
	return a.print(made.URL)
}
