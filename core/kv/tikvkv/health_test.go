package tikvkv

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pingcap/failpoint"
	"github.com/tikv/client-go/v2/config"
	"github.com/tikv/client-go/v2/testutils"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// A store without a health service is used again as soon as it answers, also by calls that have waited for it. Here it
// answers nothing for a second, three times.
func TestStoresWithoutHealth(t *testing.T) {
	m := newMock(t)
	f := &faulty{}
	w := newWatched(f, func(context.Context, string) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.fault != nil {
			return errors.New("there is no answer")
		}
		return errNoHealth
	})
	store := m.Store(func(c tikv.Client) tikv.Client {
		f.Client = c
		return w
	})
	w.of(store)
	e, err := Use(bg, store, "main", Options{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, e, "k", "1")
	sick(t)
	for range 3 {
		f.set(func(context.Context, *tikvrpc.Request) outcome { return lost })
		waiting := make(chan error, 1)
		go func() { // it has the time of a call
			_, err := e.Get(bg, nil, []byte("k"))
			waiting <- err
		}()
		time.Sleep(time.Second)
		f.set(nil)
		well := time.Now()
		if _, err := e.Get(bg, nil, []byte("k")); err != nil {
			t.Error(err)
		}
		if err := <-waiting; err != nil {
			t.Errorf("a call that has waited: %v", err)
		}
		if took := time.Since(well); took > 3*time.Second {
			t.Errorf("the store answers, and calls waited %v more", took)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// healthServer starts a server with a service, and returns its address.
func healthServer(t *testing.T, secure *tls.Config, answer healthpb.HealthCheckResponse_ServingStatus) string {
	t.Helper()
	var options []grpc.ServerOption
	if secure != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(secure)))
	}
	s := grpc.NewServer(options...)
	if answer != healthpb.HealthCheckResponse_UNKNOWN {
		h := health.NewServer()
		h.SetServingStatus("", answer)
		healthpb.RegisterHealthServer(s, h)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// certified returns the settings of a server, and those of its clients in a file.
func certified(t *testing.T) (server *tls.Config, ca string) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS() // it has a certificate for 127.0.0.1
	defer s.Close()
	ca = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: s.TLS.Certificates}, ca
}

func TestHealthOfStores(t *testing.T) {
	server, ca := certified(t)
	security := config.NewSecurity(ca, "", "", nil)
	client, err := security.ToTLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	gone := healthServer(t, nil, healthpb.HealthCheckResponse_UNKNOWN)
	const serves, ill, none = healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING,
		healthpb.HealthCheckResponse_UNKNOWN
	for _, tc := range []struct {
		name     string
		address  string
		secure   *tls.Config
		ok, none bool
	}{
		{"well", healthServer(t, nil, serves), nil, true, false},
		{"ill", healthServer(t, nil, ill), nil, false, false},
		{"without the service", healthServer(t, nil, none), nil, false, true},
		{"well, with a certificate", healthServer(t, server, serves), client, true, false},
		{"without the service, with a certificate", healthServer(t, server, none), client, false, true},
		{"no certificate is given", healthServer(t, server, none), nil, false, false},
		{"no certificate is there", gone, client, false, false},
		{"nobody", "127.0.0.1:1", nil, false, false},
	} {
		begun := time.Now()
		err := askHealth(bg, tc.address, tc.secure)
		if (err == nil) != tc.ok || errors.Is(err, errNoHealth) != tc.none {
			t.Errorf("%s: %v", tc.name, err)
		}
		if took := time.Since(begun); took > 2*healthTime {
			t.Errorf("%s: took %v", tc.name, took)
		}
	}
}

// The client's own questions for the health of stores use the certificates of the address. So a store that is well is
// used on after a failed request.
func TestHealthWithCertificates(t *testing.T) {
	server, ca := certified(t)
	client, cluster, driver, err := testutils.NewMockTiKV("", nil)
	if err != nil {
		t.Fatal(err)
	}
	id, _, _ := testutils.BootstrapWithSingleStore(cluster)
	cluster.UpdateStoreAddr(id, healthServer(t, server, healthpb.HealthCheckResponse_SERVING))
	sick(t) // which ends with the client's own answer again
	if err := failpoint.Disable("tikvclient/injectLiveness"); err != nil {
		t.Fatal(err)
	}
	before := config.GetGlobalConfig()
	defer config.StoreGlobalConfig(before)
	a := &connecting{security: config.NewSecurity(ca, "", "", nil)}
	if a.secure, err = a.security.ToTLSConfig(); err != nil {
		t.Fatal(err)
	}
	a.share()
	f := &faulty{Client: client}
	store, err := tikv.NewTestTiKVStore(f, driver, nil, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Use(bg, store, "main", Options{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, e, "k", "1")
	first := true
	f.set(func(context.Context, *tikvrpc.Request) outcome {
		if first {
			first = false
			return lost
		}
		return arrives
	})
	begun := time.Now()
	if v, err := e.Get(bg, nil, []byte("k")); string(v) != "1" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if took := time.Since(begun); first || took > 3*time.Second {
		t.Errorf("one request was lost (%v), and the call took %v", !first, took)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
