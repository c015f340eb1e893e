// Package certs provides the server's certificate: the user's own, or a self-signed one that it creates and keeps.
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
	renewal  = 30 * 24 * time.Hour // a kept certificate is replaced when it expires within this time
	fileName = "orrery.pem"        // private key and certificate

	organization = "Orrery" // of certificates that this package creates
)

// Pair is a certificate for TLS, and the same certificate as PEM for clients that want to trust it.
type Pair struct {
	TLS tls.Certificate
	PEM []byte // the certificate and its chain, without the key
}

// Names returns the names that a created certificate is valid for: the usual names of this machine.
func Names() []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if h, err := os.Hostname(); err == nil && h != "" && !slices.Contains(names, h) {
		names = append(names, h)
	}
	return names
}

// Load returns the user's own certificate. Names and validity aren't checked.
func Load(certFile, keyFile string) (Pair, error) {
	c, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return Pair{}, fmt.Errorf("the certificate %s with the key %s can't be used: %w", certFile, keyFile, err)
	}
	return pair(c), nil
}

// Doubts returns a reason why clients may reject the certificate for names at present, or "".
func (p Pair) Doubts(names []string, clk *clock.Clock) string {
	now, leaf := clk.Now(), p.TLS.Leaf
	if now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return fmt.Sprintf("it is good from %s to %s",
			leaf.NotBefore.Format(time.DateOnly), leaf.NotAfter.Format(time.DateOnly))
	}
	for _, n := range names {
		if leaf.VerifyHostname(n) != nil {
			return "it is not for " + n
		}
	}
	return ""
}

// LoadOrCreate returns the certificate in dir. If there is none, it creates one and stores it there, readable only by
// the owner, so that clients have to trust it only once. With an empty dir it is created in memory. A certificate that
// this package created is replaced when it is about to expire or isn't valid for names. Any other certificate in the
// file belongs to the user and is used unchanged; any other content is an error.
func LoadOrCreate(dir string, names []string, clk *clock.Clock) (Pair, error) {
	if dir == "" {
		_, p, err := create(names, clk)
		return p, err
	}
	file := filepath.Join(dir, fileName)
	raw, err := os.ReadFile(file)
	if err == nil {
		kept, err := tls.X509KeyPair(raw, raw)
		if err != nil {
			return Pair{}, fmt.Errorf("%s holds no certificate with its key (%w): repair it, or remove it to have one "+
				"made",
				file, err)
		}
		if p := pair(kept); !made(kept.Leaf) || good(p, names, clk) {
			return p, nil
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return Pair{}, fmt.Errorf("read certificate: %w", err)
	}
	raw, p, err := create(names, clk)
	if err != nil {
		return Pair{}, err
	}
	if err := keep(dir, file, raw); err != nil {
		return p, fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	return p, nil
}

// ErrNotKept is returned by LoadOrCreate with a usable certificate that could not be stored: the next start creates
// another one.
var ErrNotKept = errors.New("the certificate can't be kept")

// keep writes the file atomically, also if the power fails.
func keep(dir, file string, raw []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// made reports whether a certificate was made by create.
func made(leaf *x509.Certificate) bool {
	return leaf.IsCA && bytes.Equal(leaf.RawSubject, leaf.RawIssuer) &&
		slices.Equal(leaf.Subject.Organization, []string{organization})
}

// good reports whether a certificate is valid for names and doesn't expire soon.
func good(p Pair, names []string, clk *clock.Clock) bool {
	return p.Doubts(names, clk) == "" && clk.Now().Add(renewal).Before(p.TLS.Leaf.NotAfter)
}

func pair(c tls.Certificate) Pair {
	var text []byte
	for _, der := range c.Certificate {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return Pair{TLS: c, PEM: text}
}

// create makes a P-256 key and a certificate that is its own certificate authority, so that clients can trust it as a
// root.
func create(names []string, clk *clock.Clock) ([]byte, Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, Pair{}, fmt.Errorf("make key: %w", err)
	}
	now := clk.Now()
	tmpl := &x509.Certificate{
		SerialNumber:          big.NewInt(clk.Int63()),
		Subject:               pkix.Name{CommonName: "localhost", Organization: []string{organization}},
		NotBefore:             now.Add(-time.Hour), // clients' clocks may be slow
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
	c, err := tls.X509KeyPair(file.Bytes(), file.Bytes())
	if err != nil {
		return nil, Pair{}, fmt.Errorf("make certificate: %w", err)
	}
	return file.Bytes(), pair(c), nil
}
