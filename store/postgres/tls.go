package postgres

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// unsecured returns what to say of an error of TLS, and what to do; "" if err is
// another.
func unsecured(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var remote *net.OpError
	const server = "the certificate of the server "
	switch {
	case errors.As(err, &authority):
		return server + "is signed by an unknown authority: set sslrootcert to the file of the authority"
	case errors.As(err, &host):
		names := host.Certificate.DNSNames
		for _, ip := range host.Certificate.IPAddresses {
			names = append(names, ip.String())
		}
		if len(names) == 0 {
			return server + "names no host: make one that names " + host.Host + ", or set sslmode=verify-ca"
		}
		return fmt.Sprintf("%sis not for %s but for %s: set the host to one of these, or sslmode=verify-ca", server, host.Host, strings.Join(names, ", "))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(invalid.Cert.NotBefore):
		return fmt.Sprintf("%sis valid from %s on: is the clock of this machine right?", server, invalid.Cert.NotBefore.UTC().Format(time.DateTime))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("%shas expired (on %s): renew it", server, invalid.Cert.NotAfter.UTC().Format(time.DateOnly))
	case errors.As(err, &invalid):
		return server + "is not valid: " + invalid.Error()
	case errors.As(err, &remote) && remote.Op == "remote error": // the server ends the handshake
		return refusedBy(strings.TrimPrefix(remote.Err.Error(), "tls: "))
	case strings.HasSuffix(err.Error(), "server refused TLS connection"):
		return "the server does not speak TLS: set ssl = on there, or sslmode=disable where nobody else can read the network"
	}
	return ""
}

// refusedBy returns what to say of an alert of the server.
func refusedBy(alert string) string {
	const refused = "the server does not accept the certificate in sslcert: "
	switch alert {
	case "expired certificate":
		return refused + "it has expired"
	case "unknown certificate authority":
		return refused + "its authority is not known there"
	case "certificate required":
		return wantsCertificate
	}
	return "the server ends the handshake of TLS: " + alert
}

const wantsCertificate = "the server wants a certificate of the client: set sslcert and sslkey to one for this user, signed by the server's authority"

// keptOut returns what to say when the server does not let a user in.
func keptOut(message string) string {
	switch {
	case strings.Contains(message, "client certificate"), strings.HasPrefix(message, "certificate authentication failed"):
		return wantsCertificate
	case strings.HasPrefix(message, "no pg_hba.conf entry") && strings.HasSuffix(message, "no encryption"):
		return "the server does not let this user in without TLS: set sslmode=verify-full, or require (" + message + ")"
	}
	return "the server does not let this user in: " + message
}
