package sql

import (
	"context"
	"sort"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// containers returns one container for each configuration that must not change any answer: number of slots and indexing
// policy.
func containers(t testing.TB) map[string]*core.Container {
	out := map[string]*core.Container{}
	for name, cfg := range map[string]struct {
		slots  int
		policy string
	}{
		"16 slots, all indexed": {16, ""},
		"1 slot, all indexed":   {1, ""},
		"16 slots, no index":    {16, `{"indexingMode":"none","automatic":false}`},
		"4 slots, some indexed": {4, `{"includedPaths":[{"path":"/n/?"},{"path":"/tags/[]/?"}],` +
			`"excludedPaths":[{"path":"/*"}]}`},
	} {
		e, err := core.Open(context.Background(), memkv.New(), core.Options{MinSlots: cfg.slots})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if problems, err := e.Check(context.Background()); err != nil || len(problems) > 0 {
				t.Errorf("%s: store check: %v %v", name, problems, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		if _, err := e.CreateDatabase(context.Background(), core.DatabaseSpec{ID: "d"}); err != nil {
			t.Fatal(err)
		}
		spec := core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}
		if cfg.policy != "" {
			spec.IndexingPolicy = []byte(cfg.policy)
		}
		c, err := e.CreateContainer(context.Background(), "d", spec)
		if err != nil {
			t.Fatal(name, err)
		}
		out[name] = c
	}
	return out
}

func insert(t testing.TB, c *core.Container, d doc.Doc) {
	pk, id, err := c.KeyOf(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(context.Background(), core.Write{Kind: core.Create, PK: pk, ID: id, Doc: d}); err != nil {
		t.Fatal(err)
	}
}

// testEnv shows items without system properties, which the documents of the scripts lack.
var testEnv = &Env{ItemJSON: func(dst []byte, it *core.Item) []byte {
	return append(doc.AppendJSONFields(append(dst, '{'), it.Doc, doc.NoSQL), '}')
}}

// evalCore runs a query over a container in pages of size rows.
func evalCore(c *core.Container, text string, params []Param, size int) ([]string, error) {
	return evalIn(testEnv, c, text, params, size)
}

// evalIn does so in an environment.
func evalIn(env *Env, c *core.Container, text string, params []Param, size int) ([]string, error) {
	var rows []string
	req := Request{PageSize: size}
	for {
		pl, err := Compile(text, params, env)
		if err != nil {
			return nil, err
		}
		out := &Page{}
		if err := pl.Execute(context.Background(), c, req, out); err != nil {
			return nil, err
		}
		if out.Count > 0 {
			rows = append(rows, splitRows(string(out.Body))...)
		}
		if req.Continuation = out.Continuation; req.Continuation == "" {
			return rows, nil
		}
	}
}

// sameRows compares the rows of a query with the wanted ones. Without ORDER BY the order may differ, and so may the
// rows that TOP or LIMIT selects.
func sameRows(t *testing.T, name, text string, got, want []string, err, wantErr error) {
	t.Helper()
	if (err == nil) != (wantErr == nil) {
		t.Errorf("%s: %s: error %v, wanted %v", name, text, err, wantErr)
		return
	}
	if !strings.Contains(text, "ORDER BY") {
		if strings.Contains(text, "TOP") || strings.Contains(text, "LIMIT") || strings.Contains(text, "MAKE") {
			if len(got) != len(want) {
				t.Errorf("%s: %s: %d rows, wanted %d", name, text, len(got), len(want))
			}
			return
		}
		got, want = append([]string(nil), got...), append([]string(nil), want...)
		sort.Strings(got)
		sort.Strings(want)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: %s\n got %v\nwant %v", name, text, got, want)
	}
}
