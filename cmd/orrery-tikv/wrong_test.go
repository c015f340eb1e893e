package main

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
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/kv/tikvkv"
	"github.com/orrerydb/orrery/core/kv/tikvkv/tikvtest"
)

// authority signs certificates, which it keeps in files of a directory.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	ca   string // the file of its own certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert = &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key = a.sign(a.cert)
	a.ca = a.file("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

// sign signs a certificate with a new key. The first one is signed with this key itself.
func (a *authority) sign(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	by := a.key
	if by == nil {
		by = key
	}
	c.SerialNumber = big.NewInt(1)
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), by)
	if err != nil {
		a.t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		a.t.Fatal(err)
	}
	return c, key
}

// client makes a certificate for clients, and returns the names of its file and of that of its key.
func (a *authority) client() (cert, key string) {
	c, k := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "client"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.file("client.pem", "CERTIFICATE", c.Raw), a.file("client-key.pem", "EC PRIVATE KEY", der)
}

func (a *authority) file(name, kind string, der []byte) string {
	name = filepath.Join(a.dir, name)
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return name
}

// encrypted starts a server that speaks TLS. With clients it asks for certificates that this authority has signed.
func encrypted(t *testing.T, clients *authority) *httptest.Server {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if clients != nil {
		all := x509.NewCertPool()
		all.AddCert(clients.cert)
		s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: all}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// source makes a store in a directory. When the test ends it must be as it was.
func source(t *testing.T) (data string) {
	data = filepath.Join(t.TempDir(), "from")
	open := func(readOnly bool) *pebblekv.Engine {
		e, err := pebblekv.Open(server.StoreDir(data), pebblekv.Options{CacheMB: 16, Scanned: core.OnlyScanned,
			ReadOnly: readOnly})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e, err := core.Open(bg, open(false), core.Options{})
	if err == nil {
		_, err = e.EnsureDatabase(bg, "db")
		err = errors.Join(err, e.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	keys := func() string {
		e := open(true)
		s, err := e.Snapshot(bg)
		if err != nil {
			t.Fatal(err)
		}
		it, err := s.Iter([]byte{0}, []byte{0xff, 0xff})
		if err != nil {
			t.Fatal(err)
		}
		var all bytes.Buffer
		for on := it.First(); on; on = it.Next() {
			fmt.Fprintf(&all, "%q %q\n", it.Key(), it.Value())
		}
		if err := errors.Join(it.Err(), it.Close(), s.Close(), e.Close()); err != nil {
			t.Fatal(err)
		}
		return all.String()
	}
	was := keys()
	t.Cleanup(func() {
		if now := keys(); now != was {
			t.Errorf("the store at %s has\n%swant\n%s", data, now, was)
		}
	})
	return data
}

// planted writes one key to a new keyspace of a cluster; none if key is empty. It returns the keyspace's name. When the
// test ends the keyspace must hold nothing else; then the key is removed.
func planted(t *testing.T, members, key, value string) (keyspace string) {
	keyspace = fmt.Sprintf("wrong-%d", time.Now().UnixNano())
	prefix := "or/" + keyspace + "/"
	// It fails, and from now on the client's log is ours.
	if e, err := tikvkv.Open(bg, address(members, keyspace), tikvkv.Options{ReadOnly: true}); err == nil {
		t.Fatal("an empty keyspace has a store", e.Close())
	}
	store := tikvtest.Dial(t, strings.Split(members, ",")...)
	if key != "" {
		tx, err := store.Begin()
		if err == nil {
			err = errors.Join(tx.Set([]byte(prefix+key), []byte(value)), tx.Commit(bg))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		tx, err := store.Begin()
		if err != nil {
			t.Fatal(err)
		}
		all, err := tx.Iter([]byte(prefix), []byte("or/"+keyspace+"0"))
		n := 0
		for ; err == nil && all.Valid(); n++ {
			if k := string(all.Key()); k != prefix+key || string(all.Value()) != value {
				t.Errorf("the cluster has %q: %q", k, all.Value())
			}
			err = errors.Join(tx.Delete(bytes.Clone(all.Key())), all.Next())
		}
		if err == nil {
			err = tx.Commit(bg)
		}
		if want := min(len(key), 1); n != want || err != nil {
			t.Errorf("the keyspace has %d keys, want %d, %v", n, want, err)
		}
	})
	return keyspace
}

// address is that of a store in a cluster.
func address(members, keyspace string) string {
	return "tikv://" + members + "/" + keyspace + "?commit=2pc"
}

// A store that can't be opened is told in one sentence within ten seconds, with status 1, and nothing is written. So is
// a store that can't be moved there. The cluster is simulated. Where ORRERY_TEST_PD has one it is that too.
func TestWhatIsWrongIsTold(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	secure := encrypted(t, nil)
	other := newAuthority(t)
	known := newAuthority(t)
	mutual := encrypted(t, known)
	// It says that it is a Placement Driver, and speaks none of its protocol.
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	t.Cleanup(liar.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and doesn't answer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	host := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	own := other.file("server.pem", "CERTIFICATE", secure.Certificate().Raw) // that of all test servers
	rubbish := other.file("rubbish.pem", "CERTIFICATE", []byte("rubbish"))
	stranger, strangersKey := other.client()
	client, clientsKey := known.client()
	with := func(cert, key string) string { return "?ca=" + own + "&cert=" + cert + "&key=" + key }
	for _, tc := range []struct{ name, what, address, want string }{
		{"nobody is there", "main", "tikv://" + host(gone) + "/main", "No Placement Driver answers at " + host(gone)},
		{"nobody answers (slow)", "main", "tikv://" + silent.Addr().String() + "/main",
			"No Placement Driver answers at"},
		{"another server", "main", "tikv://" + host(web) + "/main", "is no Placement Driver"},
		{"a server of another protocol (slow)", "main", "tikv://" + host(liar) + "/main",
			"is no Placement Driver, or has no leader now."},
		{"encrypted, without ca", "main", "tikv://" + host(secure) + "/main", "needs certificates"},
		{"not encrypted, with ca", "main", "tikv://" + host(web) + "/main?ca=" + own, "isn't accepted"},
		{"another authority", "main", "tikv://" + host(secure) + "/main?ca=" + other.ca,
			"its certificate isn't accepted: tls: failed to verify certificate: x509: "},
		{"no client certificate", "main", "tikv://" + host(mutual) + "/main?ca=" + own,
			"doesn't accept the connection"},
		{"a client certificate of another authority", "main", "tikv://" + host(mutual) + "/main" +
			with(stranger, strangersKey), "doesn't accept the connection"},
		// It is accepted, so that the two above fail because of their certificates.
		{"a client certificate of the server's authority", "main", "tikv://" + host(mutual) + "/main" +
			with(client, clientsKey), "is no Placement Driver"},
		{"the key of another certificate", "main", "tikv://" + host(mutual) + "/main" + with(client, strangersKey),
			"can't be used"},
		{"a file that is no certificate", "main", "tikv://" + host(secure) + "/main?ca=" + rubbish, "can't be used"},
		{"no certificate file", "main", "tikv://" + host(web) + "/main?ca=/no/such/file", "can't be used"},
		{"a keyspace that is none", "main", "tikv://" + host(web) + "/Main", `"Main" in the address is not the name`},
		{"no keyspace", "main", "tikv://" + host(web), "is not the name of a keyspace"},
		{"an unknown parameter", "main", "tikv://" + host(web) + "/main?user=me", `has a parameter "user"`},
		{"another scheme", "main", "http://" + host(web) + "/main", "this binary opens tikv:// only"},
		{"keys of another program", "simulation or/main/k v", "tikv://pd:1/main",
			"The keyspace main has keys, but no store"},
		{"a store of another program", "simulation or/main/i rubbish", "tikv://pd:1/main",
			"The keyspace main holds the store of another program"},
		{"a newer format", "simulation " + identity(t, 1), "tikv://pd:1/main", "start a newer version"},
		{"an older format", "simulation " + identity(t, -1), "tikv://pd:1/main", "with --upgrade"},
	} {
		for _, command := range []string{serve, "check", "move"} {
			if strings.Contains(tc.name, "slow") && command != serve {
				continue
			}
			t.Run(tc.name+"/"+strings.Fields(command)[0], func(t *testing.T) {
				t.Parallel()
				fails(t, tc.what, tc.want, arguments(t, command, tc.address)...)
			})
			key, simulated := strings.CutPrefix(tc.what, "simulation or/main/")
			if members := os.Getenv("ORRERY_TEST_PD"); simulated && members != "" {
				t.Run(tc.name+"/"+strings.Fields(command)[0]+"/on a cluster", func(t *testing.T) {
					t.Parallel()
					key, value, _ := strings.Cut(key, " ")
					space := planted(t, members, key, value)
					fails(t, "main", strings.ReplaceAll(tc.want, "space main", "space "+space),
						arguments(t, command, address(members, space))...)
				})
			}
		}
	}
	t.Run("an empty keyspace/check", func(t *testing.T) {
		t.Parallel()
		fails(t, "simulation x y", "The keyspace main holds no store.", "check", "--engine", "tikv://pd:1/main")
	})
	t.Run("an empty keyspace/check/on a cluster", func(t *testing.T) {
		members := os.Getenv("ORRERY_TEST_PD")
		if members == "" {
			t.Skip("there is no cluster: ORRERY_TEST_PD")
		}
		t.Parallel()
		space := planted(t, members, "", "")
		fails(t, "main", "The keyspace "+space+" holds no store.", "check", "--engine", address(members, space))
	})
}

const serve = "serve --nosql-addr 127.0.0.1:0 --table-addr off --gremlin-addr off --mongo-addr off --admin-addr off"

// arguments are those of a command about the store at an address. A move has a store of its own to move there.
func arguments(t *testing.T, command, address string) []string {
	if command == "move" {
		return []string{"move", "--from", source(t), "--to", address}
	}
	return append(strings.Fields(command), "--engine", address)
}

// A Placement Driver whose cluster has no stores is told in a sentence too. ORRERY_TEST_CLUSTER has a program that
// starts one (core/kv/tikvkv/chaos/doc.go).
func TestClusterWithoutStores(t *testing.T) {
	program, dir := os.Getenv("ORRERY_TEST_CLUSTER"), filepath.Join(t.TempDir(), "cluster")
	if program == "" {
		t.Skip("there is no program that controls a cluster: ORRERY_TEST_CLUSTER")
	}
	t.Cleanup(func() {
		if out, err := exec.Command(program, "stop", dir).CombinedOutput(); err != nil {
			t.Errorf("stop: %v %s", err, out)
		}
	})
	out, err := exec.Command(program, "start", dir, "0").Output()
	said := strings.Fields(string(out))
	if err != nil || len(said) == 0 {
		t.Fatalf("start: %v %s", err, out)
	}
	members := said[len(said)-1]
	fails(t, "main", "The stores of the cluster at "+members+" don't answer, or it has none.",
		arguments(t, serve, address(members, "main"))...)
}
