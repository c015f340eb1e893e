package server

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
)

// A client that trusts the certificate reaches every API under a name of its network, and under no foreign one.
func TestCertificateForTheNameAskedFor(t *testing.T) {
	c := Ephemeral()
	c.PublicHosts = []string{"shop.example"}
	s := start1(t, c)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CertificatePEM()) {
		t.Fatal("no certificate")
	}
	reached := func(door, name string) error {
		conn, err := net.Dial("tcp", s.Addr(door))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return tls.Client(conn, &tls.Config{RootCAs: pool, ServerName: name}).Handshake()
	}
	for _, door := range []string{NoSQL, Table, Gremlin, Mongo, Admin} {
		for _, name := range []string{"localhost", "orrery", "db.svc.cluster.local", "shop.example", "x.localhost"} {
			if err := reached(door, name); err != nil {
				t.Errorf("%s as %s: %v", door, name, err)
			}
		}
		for _, name := range []string{"bank.example", "localhost.example.com", "documents.azure.com"} {
			if reached(door, name) == nil {
				t.Errorf("%s as %s: accepted", door, name)
			}
		}
	}
}
