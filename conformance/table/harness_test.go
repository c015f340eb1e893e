// Package table tests the Table API with aztables, the official Go client.
package table

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/tableapi"
)

const (
	account = "localhost"
	key     = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
)

var bg = context.Background()

// server is an Orrery in this process whose Table API has its own port.
type server struct {
	engine *core.Engine
	http   *httptest.Server
}

func start(t *testing.T) *server {
	t.Helper()
	e, err := core.Open(bg, memkv.New(), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{engine: e}
	s.http = httptest.NewServer(
		tableapi.New(e, tableapi.Options{Account: account, Key: raw, Auth: true, Clock: e.Clock()}))
	t.Cleanup(func() {
		s.http.Close()
		if problems, err := e.Check(bg); err != nil || len(problems) > 0 {
			t.Errorf("check: %v %v", problems, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// styles are the forms of the Table API's address. aztables takes "cosmos" for Cosmos DB, so it sends POST with
// X-HTTP-Method instead of PATCH; its connections are redirected to the test server.
var styles = []string{"root", "path", "cosmos"}

func (s *server) options() *aztables.ClientOptions {
	addr := strings.TrimPrefix(s.http.URL, "http://")
	tr := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, addr)
	}}
	o := &aztables.ClientOptions{}
	o.Transport = &http.Client{Transport: tr}
	o.Retry = policy.RetryOptions{MaxRetries: -1}
	return o
}

func (s *server) address(style string) string {
	switch style {
	case "path":
		return s.http.URL + "/" + account
	case "cosmos":
		return "http://localhost:8902"
	}
	return s.http.URL
}

func (s *server) service(t *testing.T, style string) *aztables.ServiceClient {
	t.Helper()
	cred, err := aztables.NewSharedKeyCredential(account, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := aztables.NewServiceClientWithSharedKey(s.address(style), cred, s.options())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// table creates a table and returns its client.
func (s *server) table(t *testing.T, style, name string) *aztables.Client {
	t.Helper()
	c := s.service(t, style).NewClient(name)
	if _, err := c.CreateTable(bg, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// eachStyle runs a test once for each style with a new server.
func eachStyle(t *testing.T, f func(t *testing.T, s *server, style string)) {
	for _, style := range styles {
		t.Run(style, func(t *testing.T) { f(t, start(t), style) })
	}
}

// wantCode asserts that err is the service's error with a status and code.
func wantCode(t *testing.T, err error, status int, code string) {
	t.Helper()
	var re *azcore.ResponseError
	if !errors.As(err, &re) {
		t.Fatalf("got %v, want %d %s", err, status, code)
	}
	if re.StatusCode != status || re.ErrorCode != code {
		t.Fatalf("got %d %s, want %d %s", re.StatusCode, re.ErrorCode, status, code)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func entity(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	ok(t, err)
	return b
}

// get reads an entity as plain JSON members.
func get(t *testing.T, c *aztables.Client, pk, rk string) map[string]any {
	t.Helper()
	r, err := c.GetEntity(bg, pk, rk, nil)
	ok(t, err)
	return decode(t, r.Value)
}

func decode(t *testing.T, b []byte) map[string]any {
	t.Helper()
	var m map[string]any
	ok(t, json.Unmarshal(b, &m))
	return m
}

// list returns the RowKeys that a filter selects, over all pages.
func list(t *testing.T, c *aztables.Client, o *aztables.ListEntitiesOptions) (keys []string, pages int) {
	t.Helper()
	for p := c.NewListEntitiesPager(o); p.More(); pages++ {
		page, err := p.NextPage(bg)
		ok(t, err)
		for _, e := range page.Entities {
			keys = append(keys, decode(t, e)["RowKey"].(string))
		}
	}
	return keys, pages
}

func ptr[T any](v T) *T { return &v }
