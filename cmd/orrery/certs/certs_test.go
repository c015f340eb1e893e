package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
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

// A client that trusts only the PEM accepts the server under each of its names.
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
}

// A file that the user has put into the directory is used or refused, and never overwritten.
func TestAUsersCertificateIsKept(t *testing.T) {
	clk := clock.Fake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	foreign := foreignPEM(t, clk)
	for name, content := range map[string][]byte{
		"a certificate for other names, near its end": foreign,
		"a certificate without its key":               foreign[bytes.LastIndex(foreign, []byte("-----BEGIN")):],
		"rubbish":                                     []byte("rubbish"),
		"nothing":                                     nil,
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, fileName)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := LoadOrCreate(dir, Names(), clk)
		if usable := bytes.Equal(content, foreign); usable != (err == nil) {
			t.Errorf("%s: %v", name, err)
		} else if usable && (p.TLS.Leaf.Subject.CommonName != "db.example" || p.Doubts(Names(), clk) == "") {
			t.Errorf("%s: %v serves, doubts %q", name, p.TLS.Leaf.Subject, p.Doubts(Names(), clk))
		} else if !usable && !strings.Contains(err.Error(), file) {
			t.Errorf("%s: the file isn't named: %v", name, err)
		}
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, content) {
			t.Errorf("%s: written over (%v)", name, err)
		}
	}
}

func TestLoad(t *testing.T) {
	clk := clock.Fake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	file := filepath.Join(t.TempDir(), "both.pem")
	if err := os.WriteFile(file, foreignPEM(t, clk), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Load(file, file)
	if err != nil || p.Doubts([]string{"db.example"}, clk) != "" || bytes.Contains(p.PEM, []byte("PRIVATE")) {
		t.Fatal(err, p.Doubts([]string{"db.example"}, clk))
	}
	clk.Advance(48 * time.Hour)
	if d := p.Doubts([]string{"db.example"}, clk); !strings.Contains(d, "2026-01-03") {
		t.Errorf("past its end: %q", d)
	}
	if _, err := Load(file, file+"x"); err == nil || !strings.Contains(err.Error(), file+"x") {
		t.Error(err)
	}
}

// foreignPEM is a certificate for db.example with its key. It expires after a day.
func foreignPEM(t *testing.T, clk *clock.Clock) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "db.example"},
		DNSNames:  []string{"db.example"},
		NotBefore: clk.Now().Add(-time.Hour), NotAfter: clk.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
}
