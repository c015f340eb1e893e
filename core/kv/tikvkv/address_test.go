package tikvkv

import (
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv"
)

func TestAddresses(t *testing.T) {
	for _, tc := range []struct {
		address string
		want    Address
		problem string // a part of the sentence; "": none
	}{
		{"tikv://pd:2379/main", Address{Members: []string{"pd:2379"}, Keyspace: "main"}, ""},
		{"tikv://pd1:2379,[::1]:2379/a-b_1?ca=ca.pem&cert=c.pem&key=k.pem",
			Address{Members: []string{"pd1:2379", "[::1]:2379"}, Keyspace: "a-b_1", CA: "ca.pem", Cert: "c.pem",
				Key: "k.pem"}, ""},
		{"tikv://pd:2379/main?commit=2pc", Address{Members: []string{"pd:2379"}, Keyspace: "main", TwoPhase: true}, ""},
		{"/var/data", Address{}, "doesn't begin with tikv://"},
		{"tikv:///main", Address{}, "not host:port"},
		{"tikv://pd/main", Address{}, "not host:port"},
		{"tikv://pd:0/main", Address{}, "not host:port"},
		{"tikv://pd:2379,/main", Address{}, "not host:port"},
		{"tikv://pd:2379", Address{}, "name of a keyspace"},
		{"tikv://pd:2379/Main", Address{}, "name of a keyspace"},
		{"tikv://pd:2379/a/b", Address{}, "name of a keyspace"},
		{"tikv://pd:2379/" + strings.Repeat("a", 33), Address{}, "name of a keyspace"},
		{"tikv://pd:2379/main?user=me", Address{}, `parameter "user"`},
		{"tikv://pd:2379/main?ca=a&ca=b", Address{}, "needs one value"},
		{"tikv://pd:2379/main?ca=", Address{}, "needs one value"},
		{"tikv://pd:2379/main?ca=a&cert=b", Address{}, "both cert and key"},
		{"tikv://pd:2379/main?cert=b&key=c", Address{}, "needs ca too"},
		{"tikv://pd:2379/main?commit=fast", Address{}, "it can be 2pc"},
		{"tikv://pd:2379/main?%zz", Address{}, "can't be read"},
	} {
		got, err := ParseAddress(tc.address)
		switch {
		case tc.problem == "" && (err != nil || !reflect.DeepEqual(got, tc.want)):
			t.Errorf("%s: %+v, %v", tc.address, got, err)
		case tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)):
			t.Errorf("%s: %v, want %q", tc.address, err, tc.problem)
		}
	}
}

// Open says in one sentence, and soon, why there is no store at an address.
func TestOpenOfWhatIsNoStore(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	host := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	own := file(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	for _, tc := range []struct{ address, problem string }{
		{"tikv://" + host(gone) + "/main", "No Placement Driver answers"},
		{"tikv://" + host(web) + "/main", "is no Placement Driver"},
		{"tikv://" + host(secure) + "/main", "needs certificates"},
		{"tikv://" + host(web) + "/main?ca=" + own, "doesn't accept the connection"},
		{"tikv://" + host(secure) + "/main?ca=" + own, "is no Placement Driver"},
		{"tikv://" + host(web) + "/main?ca=" + file("rubbish"), "certificates of the address"},
		{"tikv://" + host(web) + "/main?ca=/no/such/file", "certificates of the address"},
		{"tikv://nothing", "not host:port"},
	} {
		begun := time.Now()
		_, err := Open(bg, tc.address, Options{})
		var r *kv.Refusal
		if !errors.As(err, &r) || !strings.Contains(r.Sentence, tc.problem) || strings.Contains(r.Sentence, "\n") {
			t.Errorf("%s: %v, want %q", tc.address, err, tc.problem)
		}
		if took := time.Since(begun); took > openTime {
			t.Errorf("%s: took %v", tc.address, took)
		}
	}
}
