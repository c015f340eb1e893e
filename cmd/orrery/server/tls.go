package server

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/certs"
)

// tlsName is the directory of the server's certificate in a data directory.
const tlsName = "tls"

// certificate returns the user's certificate, or the one kept in the data directory.
func (s *Server) certificate() (certs.Pair, error) {
	if s.cfg.parent != nil {
		return s.cfg.parent.cert, nil
	}
	if s.cfg.TLSCert != "" {
		p, err := certs.Load(s.cfg.TLSCert, s.cfg.TLSKey)
		if err == nil {
			if d := p.Doubts(nil, wall); d != "" {
				s.log.Warn("Clients may refuse the certificate", "file", s.cfg.TLSCert, "reason", d)
			}
		}
		return p, err
	}
	dir := ""
	if s.cfg.directory() != "" {
		dir = filepath.Join(s.cfg.directory(), tlsName)
	}
	p, err := certs.LoadOrCreate(dir, certs.Names(), wall)
	if errors.Is(err, certs.ErrNotKept) {
		s.log.Warn("The certificate is good for this run only", "error", err)
		return p, nil
	}
	if err == nil {
		if d := p.Doubts(certs.Names(), wall); d != "" {
			s.log.Warn("Clients may refuse the certificate in the data directory", "reason", d)
		}
	}
	return p, err
}

// certificatePath is the path on the NoSQL port that returns the certificate, the same as in the vendor's emulator.
const certificatePath = "/_explorer/emulator.pem"

// withCertificate serves certificatePath, and passes all other requests to h.
func (s *Server) withCertificate(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != certificatePath {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-pem-file")
		w.Header().Set("Content-Disposition", `attachment; filename="emulator.pem"`)
		_, _ = w.Write(s.cert.PEM)
	})
}

// privateEnds are the ends of names that no public DNS has (RFC 6761, 6762, 8375 and ICANN's "internal").
var privateEnds = []string{".localhost", ".local", ".internal", ".test", ".home.arpa"}

// certifies reports whether a certificate may be made for a name: those that requests without credentials may use, and
// names within private networks, such as that of a service of compose, which has no dot. Other names belong to somebody
// else: clients that trust this server's certificate would trust whoever has its key to be them. --public-host adds
// one.
func (s *Server) certifies(name string) bool {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return false
	}
	if net.ParseIP(name) != nil { // clients don't ask for addresses by name
		return false
	}
	private := func(end string) bool { return strings.HasSuffix(name, end) }
	return !strings.Contains(name, ".") || slices.ContainsFunc(privateEnds, private) || ownHost(name, s.hostNames())
}
