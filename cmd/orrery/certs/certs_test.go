package certs

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

func mustPair(t *testing.T, dir string, names []string, clk *clock.Clock) Pair {
	t.Helper()
	p, err := LoadOrCreate(dir, names, clk)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A client that trusts the PEM and nothing else accepts the server under each of its names.
func TestCertificateIsTrustedUnderItsNames(t *testing.T) {
	clk := clock.New()
	names := append(Names(), "orrery.test")
	p := mustPair(t, "", names, clk)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(p.PEM) {
		t.Fatal("the PEM holds no certificate")
	}
	for _, n := range names {
		if _, err := p.TLS.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: n}); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
	if _, err := p.TLS.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "example.com"}); err == nil {
		t.Error("good for a foreign name")
	}
	if bytes.Contains(p.PEM, []byte("PRIVATE")) {
		t.Error("the key is in the public PEM")
	}
}

func TestCertificateIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	clk := clock.Fake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	names := []string{"localhost"}
	first := mustPair(t, dir, names, clk)
	if again := mustPair(t, dir, names, clk); !bytes.Equal(first.PEM, again.PEM) {
		t.Fatal("made anew without need")
	}
	info, err := os.Stat(filepath.Join(dir, fileName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("key file: %v %v", info.Mode(), err)
	}
	wider := mustPair(t, dir, []string{"localhost", "other"}, clk)
	if bytes.Equal(first.PEM, wider.PEM) {
		t.Fatal("kept although a name is missing")
	}
	clk.Advance(lifetime - renewal + time.Hour)
	if late := mustPair(t, dir, names, clk); bytes.Equal(late.PEM, wider.PEM) {
		t.Fatal("kept although near its end")
	}
	if err := os.WriteFile(filepath.Join(dir, fileName), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustPair(t, dir, names, clk)
}
