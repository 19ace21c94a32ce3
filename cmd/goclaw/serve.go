package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/serve"
)

// serveFlags say how goclaw is served.
type serveFlags struct {
	addr   string
	hosts  []string
	remote bool
	asJSON bool
	grace  time.Duration
}

func serveCmd(a *app) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a page and an API for programs, on this machine",
		Long: `Serves the sessions over HTTP: a page for people, and an API for programs
(docs/api.md). The first line on standard output is the address. The login link
that follows opens the page; it works once. Programs send the token in the file
serve-token of goclaw's home.

Only this machine can reach the server, unless --addr names another address and
--remote says that this is meant. There is no encryption: put a proxy with TLS
in front, and name it with --host.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return serveSessions(cmd.Context(), a, f) },
	}
	cmd.Flags().StringVar(&f.addr, "addr", "127.0.0.1:7331", "where to listen; port 0 takes a free one")
	cmd.Flags().StringArrayVar(&f.hosts, "host", nil, "another name that the server is called by, such as that of a proxy (can be repeated)")
	cmd.Flags().BoolVar(&f.remote, "remote", false, "other machines may reach the server, if --addr lets them")
	cmd.Flags().DurationVar(&f.grace, "grace", 10*time.Second, "how long turns may go on after SIGTERM before they are interrupted")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, `print {"url","tokenFile","loginUrl"}`)
	a.given.flags(cmd.Flags())
	return cmd
}

func serveSessions(ctx context.Context, a *app, f serveFlags) error {
	host, _, err := net.SplitHostPort(f.addr)
	if err != nil {
		return usage("--addr %q: write ADDRESS:PORT, such as 127.0.0.1:7331", f.addr)
	}
	if ip := net.ParseIP(host); !f.remote && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usage("--addr %s can be reached from other machines: add --remote if that is meant", f.addr)
	}
	st, err := a.stores.imported(ctx)
	if err != nil {
		return err
	}
	if _, err := a.search.index(); err != nil {
		return err
	}
	a.stores.lookSoon(ctx)
	defer a.stores.follow(ctx, st, func(string) {})()
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
	srv := serve.New(serve.Options{Backend: back, Token: token, Hosts: f.hosts, Version: version()})
	address := "http://" + l.Addr().String()
	login := address + srv.LoginPath()
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
