package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// The doctor finds a running server well, and its archive has no key.
func TestDoctor(t *testing.T) {
	dir := t.TempDir()
	serverFor(t, func(c *server.Config) { c.Memory, c.Data, c.Key = false, dir, canary })
	t.Setenv("ORRERY_KEY", canary)
	file := filepath.Join(dir, "..", "report.tar.gz")
	out, errOut := ran(t, 0, "doctor", "--data", dir, "--archive", file)
	for _, want := range []string{"ok    server", "is ready", "ok    certificate", "set: ORRERY_KEY", "ok    clock"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	names, packed := unpacked(t, file)
	all := out + errOut + packed
	if names != "orrery-doctor/findings.json orrery-doctor/status orrery-doctor/metrics " {
		t.Errorf("the archive has %s", names)
	}
	if strings.Contains(all, canary[:20]) {
		t.Error("the key is in the archive")
	}
	key := `{"Key":"` + canary + `"}`
	if got := string(hideKey([]byte(key), &server.Connections{Key: canary})); got != `{"Key":"<key>"}` {
		t.Errorf("hidden: %s", got)
	}
}

// unpacked returns the names of the files of an archive, and their content.
func unpacked(t *testing.T, file string) (names, all string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names, all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names, all = names+h.Name+" ", all+string(text)
	}
}

// Whatever answers in the place of the server, the doctor ends soon, asks nobody else, and tells no key.
func TestDoctorOfOddServers(t *testing.T) {
	was := doctorPatience
	defer func() { doctorPatience = was }()
	doctorPatience = time.Second
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	over := make(chan struct{})
	defer close(over)
	web := func(f http.HandlerFunc) string {
		s := httptest.NewServer(f)
		t.Cleanup(s.CloseClientConnections)
		return s.URL
	}
	wait := func() {
		select {
		case <-over:
		case <-time.After(time.Minute):
		}
	}
	expired := httptest.NewUnstartedServer(http.NotFoundHandler())
	expired.TLS = &tls.Config{Certificates: []tls.Certificate{expiredCert(t)}}
	expired.Config.ErrorLog = log.New(io.Discard, "", 0)
	expired.StartTLS()
	defer expired.Close()
	for _, c := range []struct{ name, url, says string }{
		{"redirect", web(http.RedirectHandler(other.URL, http.StatusFound).ServeHTTP),
			"sends the client to another address"},
		{"stall", web(func(http.ResponseWriter, *http.Request) { wait() }),
			"bad   server       the admin port doesn't answer"},
		{"stall in the body", web(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = http.NewResponseController(w).Flush()
			wait()
		}), "bad   server       the admin port doesn't answer"},
		{"slow", web(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(300 * time.Millisecond)
			w.WriteHeader(http.StatusServiceUnavailable)
		}), "bad   server"},
		{"garbage", raw(t, "\x1b[2J garbage "+canary+"\r\n\r\n"), "malformed HTTP"},
		{"garbage in the body", web(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, "\x1b[2J%s%s", strings.Repeat("x", 290), canary)
		}), "the server is not ready: .[2Jxxx"},
		{"silence", raw(t, ""), "the admin port doesn't answer"},
		{"expired", expired.URL, "certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			conns, err := json.Marshal(server.Connections{Key: canary, Admin: &server.AdminConn{Endpoint: c.url + "/"},
				NoSQL: &server.NoSQLConn{Endpoint: c.url + "/"}})
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, "connect.json", string(conns))
			file := filepath.Join(t.TempDir(), "report.tar.gz")
			began := time.Now()
			out, errOut := ran(t, 1, "doctor", "--data", dir, "--archive", file)
			if took := time.Since(began); took > doctorPatience+5*time.Second {
				t.Errorf("took %v", took)
			}
			if !strings.Contains(out, c.says) || strings.Contains(out, "\x1b") {
				t.Errorf("%q says\n%q", c.says, out)
			}
			if _, packed := unpacked(t, file); strings.Contains(out+errOut+packed, canary[:10]) {
				t.Errorf("the key is told: %s%s%s", out, errOut, packed)
			}
		})
	}
	if asked.Load() > 0 {
		t.Errorf("the other server got %d requests", asked.Load())
	}
}

// raw returns the URL of a server that answers each connection with the same bytes, once a request has begun: a client
// that reads them before it has asked calls them unsolicited.
func raw(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = io.ReadFull(c, make([]byte, 1))
			_, _ = io.WriteString(c, text)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

// expiredCert returns a certificate of yesterday.
func expiredCert(t *testing.T) tls.Certificate {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-48 * time.Hour),
		NotAfter: time.Now().Add(-24 * time.Hour)}
	der, err := x509.CreateCertificate(nil, of, of, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

// cert show and cert trust give the certificate of a data directory or of a server, and never its private key.
func TestCert(t *testing.T) {
	dir := t.TempDir()
	s := serverFor(t, func(c *server.Config) { c.Memory, c.Data = false, dir })
	for _, from := range [][]string{{"--data", dir}, {"--endpoint", "http://" + s.Addr(server.NoSQL)},
		{"--endpoint", "https://" + s.Addr(server.NoSQL)}} {
		out, _ := ran(t, 0, append([]string{"cert", "show"}, from...)...)
		if !strings.Contains(out, "localhost") || !strings.Contains(out, "SHA-256") {
			t.Errorf("show: %s", out)
		}
		file := filepath.Join(t.TempDir(), "orrery.crt")
		out, _ = ran(t, 0, append([]string{"cert", "trust", "--to", file}, from...)...)
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "BEGIN CERTIFICATE") || strings.Contains(string(text), "KEY") {
			t.Errorf("trust: %s %v", text, err)
		}
		for _, way := range []string{"SSL_CERT_FILE=", "NODE_EXTRA_CA_CERTS=", "--cacert ", "-file "} {
			if !strings.Contains(out, way+file) {
				t.Errorf("trust doesn't say %s%s: %s", way, file, out)
			}
		}
		docs, err := os.ReadFile("../../../docs/operations.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runtimes {
			if !strings.Contains(out, strings.ReplaceAll(r[1], "{file}", file)) {
				t.Errorf("trust says nothing of %s", r[0])
			}
			if !strings.Contains(string(docs), "| "+r[0]+" | `") {
				t.Errorf("docs/operations.md says nothing of %s", r[0])
			}
		}
	}
	if _, errOut := ran(t, 1, "cert", "show", "--data", t.TempDir()); !strings.Contains(errOut, "has no certificate") {
		t.Errorf("no certificate: %s", errOut)
	}
}

// A server of other data, such as one in memory, isn't another program that must be stopped.
func TestDoctorKnowsOtherServers(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(context.Background()) }()
	c := server.Config{NoSQLAddr: s.Addr(server.NoSQL), GremlinAddr: s.Addr(server.Gremlin),
		TableAddr: s.Addr(server.Table), MongoAddr: s.Addr(server.Mongo), AdminAddr: s.Addr(server.Admin)}
	d := doctorCmd{until: time.Now().Add(doctorPatience)}
	if state, says := d.free(c); state != noted || !strings.Contains(says, "of other data (memory) has "+c.NoSQLAddr) {
		t.Errorf("%s: %s", state, says)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other, free := l.Addr().String(), "127.0.0.1:0"
	c = server.Config{NoSQLAddr: other, GremlinAddr: free, TableAddr: free, MongoAddr: free, AdminAddr: free}
	if state, says := d.free(c); state != bad || !strings.Contains(says, "another program has "+other+": stop") {
		t.Errorf("%s: %s", state, says)
	}
}
