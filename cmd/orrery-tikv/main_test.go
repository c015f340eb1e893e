package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/cli"
	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/tikvkv"
	"github.com/orrerydb/orrery/core/kv/tikvkv/tikvtest"
)

var bg = context.Background()

// The binary of the tests is orrery-tikv too. mainEnv says what it is: "main", or "simulation KEY VALUE", which has a
// simulated cluster with one stored key, and ends with status 70 if anything of the cluster was changed.
const (
	mainEnv = "ORRERY_TIKV_MAIN"
	changed = 70
)

func TestMain(m *testing.M) {
	what := strings.SplitN(os.Getenv(mainEnv), " ", 3)
	switch what[0] {
	case "main":
		main()
	case "simulation":
		os.Exit(simulated(what[1], what[2]))
	}
	os.Exit(m.Run())
}

// simulated runs the command line over a simulated cluster.
func simulated(key, value string) int {
	c := tikvtest.New(&testing.T{})
	// It fails, and from now on the client's log is ours.
	if _, err := tikvkv.Use(bg, c.Store(nil), "none", tikvkv.Options{ReadOnly: true}); err == nil {
		panic("an empty keyspace has a store")
	}
	store := c.Store(nil)
	tx, err := store.Begin()
	if err == nil {
		err = errors.Join(tx.Set([]byte(key), []byte(value)), tx.Commit(bg))
	}
	if err != nil {
		panic(err)
	}
	code := cli.Main(simulation(c))
	tx, err = store.Begin()
	if err != nil {
		panic(err)
	}
	all, err := tx.Iter(nil, nil)
	for n := 0; err == nil && all.Valid(); n++ {
		if n > 0 || string(all.Key()) != key || string(all.Value()) != value {
			return changed
		}
		err = all.Next()
	}
	if err != nil {
		panic(err)
	}
	return code
}

// simulation opens stores in a simulated cluster.
func simulation(c *tikvtest.Cluster) server.EngineKind {
	return server.EngineKind{Scheme: tikvkv.Scheme,
		Open: func(ctx context.Context, address string, o server.EngineOptions) (kv.Engine, error) {
			a, err := tikvkv.ParseAddress(address)
			if err != nil {
				return nil, err
			}
			e, err := tikvkv.Use(ctx, c.Store(nil), a.Keyspace, tikvkv.Options{ReadOnly: o.ReadOnly, Upgrade: o.Upgrade,
				Logger: o.Logger})
			if err != nil {
				return nil, err
			}
			return e, nil
		}}
}

// orrery is orrery-tikv with arguments, not yet started.
func orrery(what string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), mainEnv+"="+what)
	return cmd
}

// A store that can't be opened is told in one sentence within ten seconds, with status 1, and nothing is written.
func TestWhatIsWrongIsTold(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
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
	own := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(own, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	identity := func(format int) string {
		text, err := json.Marshal(map[string]any{"format": format, "id": "x", "layout": 1})
		if err != nil {
			t.Fatal(err)
		}
		return "or/main/i " + string(text)
	}
	const serve = "serve --nosql-addr 127.0.0.1:0 --table-addr off --gremlin-addr off --mongo-addr off --admin-addr off"
	for _, tc := range []struct{ name, what, address, want string }{
		{"nobody is there", "main", "tikv://" + host(gone) + "/main", "No Placement Driver answers at " + host(gone)},
		{"nobody answers (slow)", "main", "tikv://" + silent.Addr().String() + "/main",
			"No Placement Driver answers at"},
		{"another server", "main", "tikv://" + host(web) + "/main", "is no Placement Driver"},
		{"a server of another protocol (slow)", "main", "tikv://" + host(liar) + "/main",
			"is no Placement Driver, or has no leader now."},
		{"encrypted, without ca", "main", "tikv://" + host(secure) + "/main", "needs certificates"},
		{"not encrypted, with ca", "main", "tikv://" + host(web) + "/main?ca=" + own, "isn't accepted"},
		{"no certificate file", "main", "tikv://" + host(web) + "/main?ca=/no/such/file", "can't be used"},
		{"a keyspace that is none", "main", "tikv://" + host(web) + "/Main", `"Main" in the address is not the name`},
		{"no keyspace", "main", "tikv://" + host(web), "is not the name of a keyspace"},
		{"an unknown parameter", "main", "tikv://" + host(web) + "/main?user=me", `has a parameter "user"`},
		{"another scheme", "main", "http://" + host(web) + "/main", "this binary opens tikv:// only"},
		{"keys of another program", "simulation or/main/k v", "tikv://pd:1/main",
			"The keyspace main has keys, but no store"},
		{"a store of another program", "simulation or/main/i rubbish", "tikv://pd:1/main",
			"The keyspace main holds the store of another program"},
		{"a newer format", "simulation " + identity(kv.Format+1), "tikv://pd:1/main", "start a newer version"},
		{"an older format", "simulation " + identity(kv.Format-1), "tikv://pd:1/main", "with --upgrade"},
	} {
		for _, command := range []string{serve, "check"} {
			if strings.Contains(tc.name, "slow") && command != serve {
				continue
			}
			t.Run(tc.name+"/"+strings.Fields(command)[0], func(t *testing.T) {
				t.Parallel()
				fails(t, tc.what, tc.want, append(strings.Fields(command), "--engine", tc.address)...)
			})
		}
	}
	t.Run("an empty keyspace/check", func(t *testing.T) {
		t.Parallel()
		fails(t, "simulation x y", "The keyspace main holds no store.", "check", "--engine", "tikv://pd:1/main")
	})
}

// fails runs a command that must fail with a sentence.
func fails(t *testing.T, what, want string, args ...string) {
	var out, errOut bytes.Buffer
	cmd := orrery(what, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	begun := time.Now()
	err := cmd.Run()
	took := time.Since(begun)
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("%q: exit %d, %v", args, code, err)
	}
	said := errOut.String()
	if !strings.Contains(said, want) || strings.Count(said, "\n") != 1 || out.Len() > 0 {
		t.Errorf("%q says %q and %q, want %q", args, said, out.String(), want)
	}
	if took > 10*time.Second {
		t.Errorf("%q takes %v", args, took)
	}
}
