// Package known has promises of the model that this server doesn't keep yet. Each entry tries one as a client would,
// and must fail in the known way. If one succeeds, the test fails, so that its scenario is moved to package model.
//
// Two promises have no entry, because they can't be tried: P5 (a split at a storage limit; no setting makes that limit
// small) and P17 (replicas, which are up to the storage engine).
package known

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

var bg = context.Background()

// gap is one promise that isn't kept. try returns nil if it is kept.
type gap struct {
	id, what, reason string
	fails            string // the expected text of the error
	try              func(t *testing.T, s *harness.Server) error
}

var gaps = []gap{
	{"P7", "raising throughput above 10,000 RU/s for each partition splits", "partitions of a container are made " +
		"once; splits are missing", "1 partitions",
		func(t *testing.T, s *harness.Server) error {
			c := harness.Container(t, s.Database(t), "c", 400, "/k")
			if _, err := c.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(20000), nil); err != nil {
				return err
			}
			fr, err := c.ReadFeedRanges(bg, nil)
			if err == nil && len(fr) != 2 {
				err = fmt.Errorf("%d partitions", len(fr))
			}
			return err
		}},
	{"P10", "requests above the throughput of a partition are limited with 429", "request units are metered, not " +
		"limited", "nothing was limited",
		func(t *testing.T, s *harness.Server) error {
			c := harness.Container(t, s.Database(t), "c", 400, "/k")
			body := []byte(`{"id":"1","k":"a","pad":"` + strings.Repeat("x", 200<<10) + `"}`)
			for range 60 { // thousands of request units within a second or two
				if _, err := c.UpsertItem(bg, azcosmos.NewPartitionKeyString("a"), body, nil); err != nil {
					return nil
				}
			}
			return errors.New("nothing was limited")
		}},
	{"P12 M5", "a stored procedure changes several items of one key", "there are no stored procedures yet; " +
		"transactional batches do the example of M5", "400 ",
		script("sprocs", `{"id":"addBook","body":"function () {}"}`)},
	{"P12 M3", "a trigger checks what is written", "there are no triggers yet", "400 ",
		script("triggers", `{"id":"check","body":"function () {}","triggerType":"Pre","triggerOperation":"All"}`)},
}

// script tries to create a script by REST, because azcosmos has no method for it.
func script(kind, body string) func(t *testing.T, s *harness.Server) error {
	return func(t *testing.T, s *harness.Server) error {
		db := s.Database(t)
		harness.Container(t, db, "c", 0, "/k")
		r, err := http.Post("http://"+s.Addr(server.NoSQL)+"/dbs/"+db.ID()+"/colls/c/"+kind, "application/json",
			strings.NewReader(body))
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusCreated {
			return errors.New(r.Status)
		}
		return nil
	}
}

func TestKnown(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Auth = false
	s := harness.StartWith(t, cfg)
	for _, g := range gaps {
		t.Run(g.id, func(t *testing.T) {
			err := g.try(t, s)
			if err == nil {
				t.Fatalf("%s: it works. Move the scenario to package model (%s)", g.what, g.reason)
			}
			if !strings.Contains(err.Error(), g.fails) {
				t.Fatalf("%s fails in another way than it did: %v, want %q", g.what, err, g.fails)
			}
			t.Logf("%s: %v (%s)", g.what, err, g.reason)
		})
	}
}
