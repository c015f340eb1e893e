package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core/clock"
)

// handshake connects a client that trusts one certificate, and asks for a name, and returns its error.
func handshake(t *testing.T, i *Issuer, root *x509.Certificate, name string) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		c, err := l.Accept()
		if err == nil {
			_ = tls.Server(c, &tls.Config{GetCertificate: i.Get}).Handshake() // the client reports what is wrong
			_ = c.Close()
		}
	})
	pool := x509.NewCertPool()
	pool.AddCert(root)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return tls.Client(c, &tls.Config{RootCAs: pool, ServerName: name}).Handshake()
}

// A client that trusts the server's certificate reaches it under every allowed name, and under no other.
func TestIssuer(t *testing.T) {
	clk := clock.New()
	root := mustPair(t, "", []string{"localhost"}, clk)
	i := NewIssuer(root, func(name string) bool { return !strings.Contains(name, ".") }, clk)
	for _, name := range []string{"localhost", "db", "DB", "orrery-1", "127.0.0.1"} {
		if err := handshake(t, i, root.TLS.Leaf, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"bank.example", "db.example.com", "192.0.2.1"} {
		if handshake(t, i, root.TLS.Leaf, name) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	other := mustPair(t, "", []string{"localhost"}, clk)
	if handshake(t, i, other.TLS.Leaf, "db") == nil {
		t.Error("a client that trusts another server accepts")
	}
	a, err := i.Get(&tls.ClientHelloInfo{ServerName: "db"})
	b, _ := i.Get(&tls.ClientHelloInfo{ServerName: "db."})
	if err != nil || a != b {
		t.Error("a certificate isn't kept", err)
	}
	if a.Leaf.IsCA || len(a.Leaf.DNSNames) != 1 || a.Leaf.NotAfter.After(root.TLS.Leaf.NotAfter) {
		t.Errorf("%+v", a.Leaf)
	}
}

// The number of certificates is bounded, whatever clients ask for.
func TestIssuerIsBounded(t *testing.T) {
	clk := clock.New()
	i := NewIssuer(mustPair(t, "", []string{"localhost"}, clk), func(string) bool { return true }, clk)
	for n := range mostNames + 20 {
		if _, err := i.Get(&tls.ClientHelloInfo{ServerName: fmt.Sprint("n", n)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(i.made) != mostNames || len(i.order) != mostNames || i.made["n0"] != nil {
		t.Errorf("%d certificates", len(i.made))
	}
	if c, err := i.Get(&tls.ClientHelloInfo{ServerName: strings.Repeat("a", 300)}); err != nil || c != &i.root.TLS {
		t.Error("a name that is too long", err)
	}
}

// A user's own certificate vouches for nothing.
func TestIssuerOfAUsersCertificate(t *testing.T) {
	clk := clock.New()
	file := filepath.Join(t.TempDir(), "own.pem")
	if err := os.WriteFile(file, foreignPEM(t, clk), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Load(file, file)
	if err != nil {
		t.Fatal(err)
	}
	if NewIssuer(p, func(string) bool { return true }, clk) != nil {
		t.Error("there is an issuer")
	}
}
