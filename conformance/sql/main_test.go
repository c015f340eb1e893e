// Package sql tests the NoSQL API with azcosmos, the official Go client, against a server in this process.
package sql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/sqlapi"
)

const accountKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

var (
	ctx      = context.Background()
	client   *azcosmos.Client
	endpoint string
	requests atomic.Int64 // GET / of the account document, counted on the client's side
)

// counting counts the reads of the account document.
type counting struct{ http.RoundTripper }

func (c counting) Do(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/" || r.URL.Path == "" {
		requests.Add(1)
	}
	return c.RoundTrip(r)
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	e, err := core.Open(ctx, memkv.New(), core.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	h, err := sqlapi.New(e, sqlapi.Options{Account: "localhost", Key: accountKey, Auth: true, Clock: e.Clock()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s := httptest.NewServer(h)
	endpoint = s.URL
	if client, err = newClient(accountKey); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	s.Close()
	if problems, err := e.Check(ctx); err != nil || len(problems) > 0 {
		fmt.Fprintln(os.Stderr, "the store is not clean:", err, problems)
		code = 1
	}
	if err := e.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

func newClient(key string) (*azcosmos.Client, error) {
	cred, err := azcosmos.NewKeyCredential(key)
	if err != nil {
		return nil, err
	}
	o := &azcosmos.ClientOptions{EnableContentResponseOnWrite: true}
	o.Transport = counting{http.DefaultTransport}
	o.Retry = policy.RetryOptions{MaxRetries: -1}
	return azcosmos.NewClientWithKey(endpoint, cred, o)
}

var names atomic.Int64

func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, names.Add(1)) }

// database creates a database that is removed at the end of the test.
func database(t *testing.T) *azcosmos.DatabaseClient {
	t.Helper()
	return databaseNamed(t, unique("db"))
}

func databaseNamed(t *testing.T, id string) *azcosmos.DatabaseClient {
	t.Helper()
	_, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: id}, nil)
	check(t, err)
	db, err := client.NewDatabase(id)
	check(t, err)
	t.Cleanup(func() { _, _ = db.Delete(ctx, nil) })
	return db
}

func container(t *testing.T, db *azcosmos.DatabaseClient, p azcosmos.ContainerProperties,
	ru int32) *azcosmos.ContainerClient {
	t.Helper()
	var o *azcosmos.CreateContainerOptions
	if ru > 0 {
		tp := azcosmos.NewManualThroughputProperties(ru)
		o = &azcosmos.CreateContainerOptions{ThroughputProperties: &tp}
	}
	_, err := db.CreateContainer(ctx, p, o)
	check(t, err)
	c, err := db.NewContainer(p.ID)
	check(t, err)
	return c
}

// byKey returns the definition of a container with partition key paths.
func byKey(id string, paths ...string) azcosmos.ContainerProperties {
	return azcosmos.ContainerProperties{
		ID: id, PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: paths, Version: 2}}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused asserts the status of an error, and the name of the code in its text.
func refused(t *testing.T, err error, code int, name string) {
	t.Helper()
	var re *azcore.ResponseError
	if !errors.As(err, &re) {
		t.Fatalf("%v is no refusal; want %d", err, code)
	}
	if re.StatusCode != code || !strings.Contains(err.Error(), name) {
		t.Fatalf("status %d (%s), want %d %s:\n%v", re.StatusCode, re.ErrorCode, code, name, err)
	}
}

// item is a JSON object.
type item = map[string]any

func text(t *testing.T, v any) []byte {
	t.Helper()
	if s, ok := v.(string); ok {
		return []byte(s)
	}
	b, err := json.Marshal(v)
	check(t, err)
	return b
}

func object(t *testing.T, b []byte) item {
	t.Helper()
	var m item
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%v: %.200s", err, b)
	}
	return m
}

// query returns the rows of a query as JSON texts, and the number of pages.
func query(t *testing.T, c *azcosmos.ContainerClient, q string, pk azcosmos.PartitionKey, o *azcosmos.QueryOptions) (
	rows []string, pages int) {
	t.Helper()
	p := c.NewQueryItemsPager(q, pk, o)
	for p.More() {
		r, err := p.NextPage(ctx)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if r.RequestCharge <= 0 {
			t.Fatalf("%s: a page without a charge", q)
		}
		for _, it := range r.Items {
			rows = append(rows, string(it))
		}
		if pages++; pages > 1000 {
			t.Fatalf("%s: it does not end", q)
		}
	}
	return rows, pages
}

var all = azcosmos.NewPartitionKey()

func str(s string) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(s) }
