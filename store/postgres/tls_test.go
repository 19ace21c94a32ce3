package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"goclaw/internal/pgtest"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T, name string) authority {
	a := authority{}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.pem, _, a.key = a.sign(t, a.cert)
	return a
}

// sign returns a certificate and its key, signed by a, or by itself if a has no
// key yet.
func (a authority) sign(t *testing.T, c *x509.Certificate) (cert, key string, private *ecdsa.PrivateKey) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	by := a.key
	if by == nil {
		by = private
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &private.PublicKey, by)
	must(t, err)
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes})), private
}

// leaf returns a certificate for 127.0.0.1 or, as a client, for name, which is
// valid until the given time.
func (a authority) leaf(t *testing.T, name string, until time.Time) (cert, key string) {
	c := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"db.example"}}
	cert, key, _ = a.sign(t, c)
	return cert, key
}

// Every mode of TLS, with and without what it needs.
func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	soon := time.Now().Add(time.Hour)
	files := map[string]string{"ca.crt": ours.pem}
	for name, until := range map[string]time.Time{"good": soon, "old": time.Now().Add(-time.Hour)} {
		files[name+".crt"], files[name+".key"] = ours.leaf(t, "server", until)
	}
	files["pg_hba.conf"] = `local all all trust
hostssl all certain all scram-sha-256 clientcert=verify-full
hostssl all bare all cert
hostssl all goclaw all scram-sha-256
`
	s, err := pgtest.Options{Files: files, Settings: []string{"fsync=off", "ssl=on", "ssl_cert_file=good.crt", "ssl_key_file=good.key", "ssl_ca_file=ca.crt"}}.Start()
	must(t, err)
	defer s.Stop()
	admin, err := pgx.Connect(bg, s.DSN("postgres"))
	must(t, err)
	defer admin.Close(bg)
	_, err = admin.Exec(bg, "CREATE ROLE certain SUPERUSER LOGIN PASSWORD 'certain-secret'; CREATE ROLE bare SUPERUSER LOGIN")
	must(t, err)

	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	ca, other := file("ca.pem", ours.pem), file("other.pem", theirs.pem)
	client := func(a authority, user string, until time.Time) string {
		cert, key := a.leaf(t, user, until)
		name := fmt.Sprint(user, until.Unix(), a.cert.Subject.CommonName)
		return "&sslcert=" + file(name+".crt", cert) + "&sslkey=" + file(name+".key", key)
	}
	dsn := func(user, password, host, query string) string {
		return fmt.Sprintf("postgres://%s@%s:%d/postgres?%s", url.UserPassword(user, password), host, s.Port, query)
	}
	plain := func(query string) string { return dsn(pgtest.User, pgtest.Password, "127.0.0.1", query) }
	certain := func(query string) string {
		return dsn("certain", "certain-secret", "127.0.0.1", "sslmode=verify-full&sslrootcert="+ca+query)
	}
	byCert := func(query string) string {
		return strings.Replace(certain(query), "certain:certain-secret", "bare", 1)
	}
	checkTLS(t, []tlsCase{
		{"not used", plain("sslmode=disable"), "the server does not let this user in without TLS: set sslmode=verify-full, or require"},
		{"by default", plain(""), ""},
		{"required", plain("sslmode=require"), ""},
		{"required, a known authority", plain("sslmode=require&sslrootcert=" + ca), ""},
		{"required, an unknown authority", plain("sslmode=require&sslrootcert=" + other), "the certificate of the server is signed by an unknown authority"},
		{"a known authority", plain("sslmode=verify-ca&sslrootcert=" + ca), ""},
		{"an unknown authority", plain("sslmode=verify-ca&sslrootcert=" + other), "the certificate of the server is signed by an unknown authority: set sslrootcert to the file of the authority"},
		{"no authority", plain("sslmode=verify-full"), "the certificate of the server is signed by an unknown authority"},
		{"a host that the certificate names", plain("sslmode=verify-full&sslrootcert=" + ca), ""},
		{"another host", dsn(pgtest.User, pgtest.Password, "localhost", "sslmode=verify-full&sslrootcert="+ca), "the certificate of the server is not for localhost but for db.example, 127.0.0.1: set the host to one of these"},
		{"another host, not compared", dsn(pgtest.User, pgtest.Password, "localhost", "sslmode=verify-ca&sslrootcert="+ca), ""},
		{"no file of the authority", plain("sslmode=verify-full&sslrootcert=/nowhere/ca.pem"), "/nowhere/ca.pem"},
		{"a client's certificate", certain(client(ours, "certain", soon)), ""},
		{"no certificate of the client", certain(""), "set sslcert and sslkey"},
		{"another client's", certain(client(ours, "someone", soon)), "the password is wrong"},
		{"a client's of an unknown authority", certain(client(theirs, "certain", soon)), "set sslcert and sslkey"},
		{"a client's that has expired", certain(client(ours, "certain", time.Now().Add(-time.Hour))), "the server does not accept the certificate in sslcert: it has expired"},
		{"a client's certificate in place of a password", byCert(client(ours, "bare", soon)), ""},
		{"another's in place of a password", byCert(client(ours, "someone", soon)), "set sslcert and sslkey"},
		{"an unknown mode", plain("sslmode=perhaps"), "sslmode"},
	})

	// The same server with a certificate that has expired.
	must(t, os.Rename(filepath.Join(s.Dir, "old.crt"), filepath.Join(s.Dir, "good.crt")))
	must(t, os.Rename(filepath.Join(s.Dir, "old.key"), filepath.Join(s.Dir, "good.key")))
	_, err = admin.Exec(bg, "SELECT pg_reload_conf()")
	must(t, err)
	want := "the certificate of the server has expired"
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(20 * time.Millisecond) {
		c, err := Open(bg, plain("sslmode=verify-full&sslrootcert="+ca), Options{})
		if err != nil {
			break
		}
		c.Close()
	}
	checkTLS(t, []tlsCase{
		{"expired", plain("sslmode=verify-full&sslrootcert=" + ca), want},
		{"expired, only the authority compared", plain("sslmode=verify-ca&sslrootcert=" + ca), want},
		{"expired, not compared", plain("sslmode=require"), ""},
	})
	checkTLS(t, []tlsCase{
		{"a server without TLS", strings.Replace(server.TCP("postgres"), "sslmode=disable", "sslmode=require", 1), "the server does not speak TLS: set ssl = on there"},
	})
}

// tlsCase is a DSN and what opening it says: "" if it works.
type tlsCase struct{ name, dsn, want string }

func checkTLS(t *testing.T, cases []tlsCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(bg, c.dsn, Options{})
			if err == nil {
				defer s.Close()
				_, err = s.Health(bg)
			}
			switch {
			case c.want == "" && err != nil, c.want != "" && err == nil:
				t.Errorf("error is %v, want %q", err, c.want)
			case err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "s3cret")):
				t.Errorf("error is %v, want one line with %q", err, c.want)
			case err != nil:
				t.Log(err)
			}
		})
	}
}
