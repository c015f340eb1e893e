// Package model tests the promises of modelling and partitioning one by one (P1 to P17, M1 to M7), with the official
// clients. docs/compat/model.md has a row for each, with its tests.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

var (
	bg  = context.Background()
	all = azcosmos.NewPartitionKey()
)

func str(s string) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(s) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create creates items by NoSQL, with the partition key from the property key.
func create(t *testing.T, c *azcosmos.ContainerClient, key string, items ...string) {
	t.Helper()
	for _, it := range items {
		if _, err := c.CreateItem(bg, str(object(t, []byte(it))[key].(string)), []byte(it), nil); err != nil {
			t.Fatalf("%.200s: %v", it, err)
		}
	}
}

func object(t *testing.T, b []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%v: %.200s", err, b)
	}
	return m
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	ok(t, err)
	return b
}

// has asserts that an object has the members of a JSON text. It may have others.
func has(t *testing.T, got []byte, want string) {
	t.Helper()
	g := object(t, got)
	for k, v := range object(t, []byte(want)) {
		if fmt.Sprint(g[k]) != fmt.Sprint(v) {
			t.Errorf("%s is %v, want %v", k, g[k], v)
		}
	}
}

// refused asserts the status of an error.
func refused(t *testing.T, err error, code int) *azcore.ResponseError {
	t.Helper()
	var re *azcore.ResponseError
	if !errors.As(err, &re) || re.StatusCode != code {
		t.Fatalf("got %v, want %d", err, code)
	}
	return re
}

// bars returns the items and bytes of each physical partition of a container, from the admin port.
func bars(t *testing.T, s *harness.Server, database, container string) []server.PartitionStatus {
	t.Helper()
	r, err := http.Get("http://" + s.Addr(server.Admin) + "/status")
	ok(t, err)
	defer r.Body.Close()
	var st server.Status
	ok(t, json.NewDecoder(r.Body).Decode(&st))
	for _, c := range st.Containers {
		if c.Database == database && c.Container == container {
			return c.Partitions
		}
	}
	t.Fatalf("/status has no %s/%s", database, container)
	return nil
}

func values(t *testing.T, rows []string) []any {
	t.Helper()
	out := make([]any, len(rows))
	for i, r := range rows {
		ok(t, json.Unmarshal([]byte(r), &out[i]))
	}
	return out
}

// same compares the rows of a query with a JSON array.
func same(t *testing.T, rows []string, want string) {
	t.Helper()
	var w []any
	ok(t, json.Unmarshal([]byte(want), &w))
	if got := values(t, rows); fmt.Sprint(got) != fmt.Sprint(w) {
		t.Errorf("got %v, want %v", got, w)
	}
}
