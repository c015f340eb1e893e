// Package certs makes the server's self-signed certificate.
package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

const (
	lifetime = 2 * 365 * 24 * time.Hour
	renewal  = 30 * 24 * time.Hour // a kept certificate with less than this left is made anew
	fileName = "orrery.pem"        // private key and certificate
)

// Pair is a certificate for TLS and the same certificate as PEM, for clients that want to trust it.
type Pair struct {
	TLS tls.Certificate
	PEM []byte // the certificate alone, without the key
}

// Names are what the certificate is good for: this machine by its usual names.
func Names() []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if h, err := os.Hostname(); err == nil && h != "" && !slices.Contains(names, h) {
		names = append(names, h)
	}
	return names
}

// LoadOrCreate returns the certificate kept in dir, or makes one and keeps it there (readable by the owner only), so that
// clients have to trust it once. With an empty dir it is made in memory. A kept one that is near its end, or not for names,
// is replaced.
func LoadOrCreate(dir string, names []string, clk *clock.Clock) (Pair, error) {
	if dir == "" {
		_, p, err := create(names, clk)
		return p, err
	}
	file := filepath.Join(dir, fileName)
	raw, err := os.ReadFile(file)
	if err == nil {
		if p, ok := parse(raw, names, clk); ok {
			return p, nil
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return Pair{}, fmt.Errorf("read certificate: %w", err)
	}
	raw, p, err := create(names, clk)
	if err != nil {
		return Pair{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Pair{}, fmt.Errorf("keep certificate: %w", err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return Pair{}, fmt.Errorf("keep certificate: %w", err)
	}
	return p, nil
}

// parse returns the pair in raw if it is whole, for names, and good for a while.
func parse(raw []byte, names []string, clk *clock.Clock) (Pair, bool) {
	c, err := tls.X509KeyPair(raw, raw)
	if err != nil || c.Leaf == nil || clk.Now().Add(renewal).After(c.Leaf.NotAfter) || clk.Now().Before(c.Leaf.NotBefore) {
		return Pair{}, false
	}
	for _, n := range names {
		if c.Leaf.VerifyHostname(n) != nil {
			return Pair{}, false
		}
	}
	return Pair{TLS: c, PEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})}, true
}

// create makes a P-256 key and a certificate that is its own authority, so that a client can trust it as a root.
func create(names []string, clk *clock.Clock) ([]byte, Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, Pair{}, fmt.Errorf("make key: %w", err)
	}
	now := clk.Now()
	tmpl := &x509.Certificate{
		SerialNumber:          big.NewInt(clk.Int63()),
		Subject:               pkix.Name{CommonName: "localhost", Organization: []string{"Orrery"}},
		NotBefore:             now.Add(-time.Hour), // clients' clocks differ
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		return nil, Pair{}, fmt.Errorf("make certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, Pair{}, fmt.Errorf("make key: %w", err)
	}
	var file bytes.Buffer
	_ = pem.Encode(&file, &pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	_ = pem.Encode(&file, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	p, ok := parse(file.Bytes(), names, clk)
	if !ok {
		return nil, Pair{}, errors.New("made a certificate that does not hold")
	}
	return file.Bytes(), p, nil
}
