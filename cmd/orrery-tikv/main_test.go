package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
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

// identity is the key of a store in the keyspace main, and its value, of a format that is newer or older by a number.
func identity(t *testing.T, newer int) string {
	text, err := json.Marshal(map[string]any{"format": kv.Format + newer, "id": "x", "layout": 1})
	if err != nil {
		t.Fatal(err)
	}
	return "or/main/i " + string(text)
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
