package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// check and query read a shared store beside its servers, and write nothing.
func TestCommandsOverASharedStore(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	kind := server.EngineKind{Scheme: "test",
		Open: func(_ context.Context, address string, o server.EngineOptions) (kv.Engine, error) {
			switch {
			case o.Logger == nil:
				return nil, errors.New("no logger was given")
			case strings.Contains(address, "empty"):
				return nil, &kv.Refusal{Kind: kv.ErrUnavailable, Sentence: "There is no store."}
			case o.ReadOnly:
				return refusesWrites{store.Engine(), t}, nil
			}
			return store.Engine(), nil
		}}
	cfg := server.Ephemeral()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg.Memory, cfg.Engine, cfg.Engines = false, "test://main", []server.EngineKind{kind}
	s, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	defer func() {
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	}()
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		text string // on either stream
	}{
		{[]string{"check", "--engine", "test://main?key=secret"}, 0, "test://main: clean, 5 containers with 201 items"},
		{[]string{"check", "--json", "--engine", "test://main?key=secret"}, 0, `"directory": "test://main"`},
		{[]string{"check", "--engine", "test://empty"}, 1, "test://empty can't be opened: There is no store."},
		{[]string{"check", "--engine", "tikv://pd:1/main"}, 1, "this binary opens test:// only"},
		{[]string{"check", "--engine", "test://main", "."}, 2, "can't be used together"},
		{[]string{"check"}, 2, "--engine"},
		{[]string{"query", "--engine", "test://main", "--db", "shop", "--container", "products",
			"SELECT VALUE c.price FROM c WHERE c.id = 'kettle-1'"}, 0, "34.9"},
		{[]string{"query", "--engine", "test://main", "--data", ".", "--db", "shop", "--container", "products",
			"SELECT 1"}, 1, "can't be used together"},
	} {
		var out, errOut bytes.Buffer
		code := run(tc.args, &out, &errOut, kind)
		said := out.String() + errOut.String()
		if code != tc.code || !strings.Contains(said, tc.text) || strings.Contains(said, "secret") {
			t.Errorf("%q: exit %d, %s; want %d, %s", tc.args, code, said, tc.code, tc.text)
		}
	}
}

// refusesWrites is an engine to which nothing may be written.
type refusesWrites struct {
	kv.Engine
	t *testing.T
}

func (e refusesWrites) Write(context.Context, *kv.Batch, []kv.Precondition) (kv.Commit, error) {
	e.t.Error("a command writes to a store that it should only read")
	return nil, kv.ErrUnavailable
}

func (e refusesWrites) DropRange(context.Context, []byte, []byte) error {
	e.t.Error("a command removes data from a store that it should only read")
	return kv.ErrUnavailable
}
