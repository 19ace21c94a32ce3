package fetch

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// notPublic are the addresses that do not belong to a server on the internet,
// besides those that netip knows: the registries of special addresses (IANA), and
// the services that clouds answer machines at.
var notPublic = prefixes(`
0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4
168.63.129.16/32
::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 3fff::/20 5f00::/16 fec0::/10
`)

// The last 32 bits of nat64, and those after the prefix of sixToFour, are an
// address of version 4 that is meant.
var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

func prefixes(text string) (out []netip.Prefix) {
	for _, p := range strings.Fields(text) {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// public reports whether a is the address of a server on the internet.
func public(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return public(netip.AddrFrom4([4]byte(b[12:])))
	case sixToFour.Contains(a):
		return public(netip.AddrFrom4([4]byte(b[2:6])))
	case !a.IsGlobalUnicast() || a.IsPrivate(): // loopback, link-local, multicast, unspecified
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// privateError says that a host has an address that is not fetched from.
type privateError struct{ host, address string }

func (e *privateError) Error() string {
	if e.host == e.address {
		return fmt.Sprintf("%s is a private address, and nothing is fetched from it unless the user has allowed the host", e.host)
	}
	return fmt.Sprintf("%s has the private address %s, and nothing is fetched from it unless the user has allowed the host", e.host, e.address)
}

// dial connects to an address that a host has at this moment. It is judged where
// the connection is made: a name that has another address every time it is looked
// up, and a redirection, make no difference.
func (t *Tool) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: t.o.Timeout, Resolver: t.o.Resolver}
	if !t.mayBePrivate(host) {
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err == nil && public(at.Addr()) {
				return nil
			}
			return &privateError{host, at.Addr().String()}
		}
	}
	return d.DialContext(ctx, network, addr)
}

// checkBehindProxy refuses what can be seen to be private before a proxy is
// asked for it. Where a proxy connects to is up to the proxy.
func (t *Tool) checkBehindProxy(ctx context.Context, host string) error {
	if t.mayBePrivate(host) {
		return nil
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if !public(a) {
			return &privateError{host, a.String()}
		}
		return nil
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return &privateError{host, "127.0.0.1"}
	}
	r := t.o.Resolver
	if r == nil {
		r = net.DefaultResolver
	}
	found, err := r.LookupNetIP(ctx, "ip", host)
	if err != nil { // only the proxy knows
		return nil
	}
	for _, a := range found {
		if !public(a) {
			return &privateError{host, a.Unmap().String()}
		}
	}
	return nil
}

// mayBePrivate reports whether the user has allowed private addresses of a host.
func (t *Tool) mayBePrivate(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, p := range t.o.Private {
		p = strings.ToLower(p)
		rest, sub := strings.CutPrefix(p, "*.")
		if p == "*" || p == host || sub && strings.HasSuffix(host, "."+rest) {
			return true
		}
	}
	return false
}
