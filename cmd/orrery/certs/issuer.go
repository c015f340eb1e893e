package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"

	"github.com/orrerydb/orrery/core/clock"
)

// Issuer gives each client a certificate for the name that it asks for (SNI): the server's own one, or another one that
// this one vouches for. So a client that trusts the server's certificate reaches it under a name that the server didn't
// know at its start. Safe for concurrent use.
//
// Example: a service of compose is called "db". A client connects to https://db:8081, and its handshake says "db". The
// certificate, made for localhost, isn't good for that name. One for "db" is made, signed, and kept for later clients.
type Issuer struct {
	root    Pair
	allowed func(name string) bool
	clk     *clock.Clock

	mu    sync.Mutex
	made  map[string]*tls.Certificate
	order []string // of the names in made, the oldest first
}

// mostNames is the number of certificates that are kept. Making one takes about as long as a handshake.
const mostNames = 64

// longestName is the length of the longest host name.
const longestName = 253

// NewIssuer returns an issuer of a certificate, and nil for one that wasn't made by this package: that is its user's,
// and vouches for nothing. allowed says for which names certificates may be made, in lower case.
func NewIssuer(root Pair, allowed func(name string) bool, clk *clock.Clock) *Issuer {
	if !made(root.TLS.Leaf) {
		return nil
	}
	return &Issuer{root: root, allowed: allowed, clk: clk, made: map[string]*tls.Certificate{}}
}

// Get is a tls.Config's GetCertificate. A client without a name has an address: it gets a certificate for the one that
// it has reached. If the name isn't allowed, it gets the server's own certificate, and refuses it.
func (i *Issuer) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	allowed := i.allowed
	if name == "" && hello.Conn != nil {
		if host, _, err := net.SplitHostPort(hello.Conn.LocalAddr().String()); err == nil {
			name, allowed = host, func(string) bool { return true } // it is the server's
		}
	}
	if name == "" || len(name) > longestName || i.root.TLS.Leaf.VerifyHostname(name) == nil || !allowed(name) {
		return &i.root.TLS, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if c := i.made[name]; c != nil {
		return c, nil
	}
	c, err := i.issue(name)
	if err != nil {
		return nil, err
	}
	if len(i.order) == mostNames {
		delete(i.made, i.order[0])
		i.order = i.order[1:]
	}
	i.made[name], i.order = c, append(i.order, name)
	return c, nil
}

// issue makes a certificate for one name, as long valid as the server's.
func (i *Issuer) issue(name string) (*tls.Certificate, error) {
	signer, ok := i.root.TLS.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key of the server's certificate can't sign")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	root := i.root.TLS.Leaf
	tmpl := &x509.Certificate{
		SerialNumber:          big.NewInt(i.clk.Int63()),
		Subject:               pkix.Name{CommonName: name[:min(len(name), 64)], Organization: []string{organization}},
		NotBefore:             root.NotBefore,
		NotAfter:              root.NotAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(name); ip != nil {
		tmpl.IPAddresses = []net.IP{ip}
	} else {
		tmpl.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, root, &key.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, root.Raw}, PrivateKey: key, Leaf: leaf}, nil
}
