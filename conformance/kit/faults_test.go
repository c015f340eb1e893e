package kit

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/cmd/orrery/orrerytest"
)

// writes are one write through each API, called name. The clients repeat nothing, except MongoDB's, which repeats a
// retryable write once.
func (c *clients) writes(t *testing.T, name string) map[string]error {
	_, noSQL := c.items(t).CreateItem(ctx, azcosmos.NewPartitionKeyString(name),
		fmt.Appendf(nil, `{"id":%q}`, name), nil)
	_, table := c.tables.NewClient("entities").AddEntity(ctx,
		fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":%q}`, name), nil)
	_, gremlin := submit(c.gremlin, "g.addV('thing').property(id, '"+name+"').id()")
	_, mongo := c.mongo.Database("shop").Collection("docs").InsertOne(ctx, bson.M{"_id": name})
	return map[string]error{"nosql": noSQL, "table": table, "gremlin": gremlin, "mongo": mongo}
}

// Each fault reaches the client of each API as its protocol says it, and a refused write isn't applied.
func TestFaults(t *testing.T) {
	apis := []string{"nosql", "table", "gremlin", "mongo"}
	for _, tc := range []struct {
		fault string
		wants [4]string // part of the error of each API; "": the client doesn't see it, since it repeats the write
		shown [4]bool   // the write is applied
	}{
		{"429", [4]string{"RESPONSE 429", "RESPONSE 429", "429", "16500"}, [4]bool{}},
		{"408", [4]string{"RESPONSE 408", "OperationTimedOut", "", "MaxTimeMSExpired"}, [4]bool{}},
		{"410", [4]string{"RESPONSE 410", "ServerBusy", "", "WriteConflict"}, [4]bool{}},
		{"449", [4]string{"RESPONSE 449", "ServerBusy", "", "WriteConflict"}, [4]bool{}},
		{"503", [4]string{"RESPONSE 503", "RESPONSE 503", "", ""}, [4]bool{false, false, false, true}},
		{"lost-before", [4]string{"EOF", "EOF", "", ""}, [4]bool{false, false, false, true}},
		{"lost-after", [4]string{"EOF", "EOF", "", ""}, [4]bool{true, true, true, true}},
		{"cut", [4]string{"EOF", "EOF", "", ""}, [4]bool{true, true, true, true}},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			a := srv.Account(t)
			c := connect(t, a)
			c.put(t, "before")
			for i, api := range apis {
				name := "w-" + api
				remove := a.Fail(t, orrerytest.Fault{API: api, Kind: tc.fault, Count: 1})
				err := c.writes(t, name)[api]
				remove()
				switch {
				case (err == nil) != (tc.wants[i] == "" && api == "mongo"):
					t.Errorf("%s: %v", api, err)
				case err != nil && !strings.Contains(err.Error(), tc.wants[i]):
					t.Errorf("%s: %v, want %q", api, err, tc.wants[i])
				}
				if api == "gremlin" { // its connection may have ended
					c = connect(t, a)
				}
				if got := strings.Contains(strings.Split(c.seen(t), " ")[i], name); got != tc.shown[i] {
					t.Errorf("%s: the write is applied: %v, want %v", api, got, tc.shown[i])
				}
			}
		})
	}
}

// A client that repeats refused requests succeeds when the count is used up. Rules select by operation, container and
// key.
func TestFaultRules(t *testing.T) {
	a := srv.Account(t)
	c := connect(t, a)
	c.put(t, "before")
	repeating, err := azcosmos.NewClientFromConnectionString(a.NoSQL.ConnectionString,
		&azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: 5,
			RetryDelay: time.Millisecond, MaxRetryDelay: time.Millisecond}}})
	must(t, err)
	items, err := repeating.NewContainer("shop", "items")
	must(t, err)
	create := func(name string) error {
		_, err := items.CreateItem(ctx, azcosmos.NewPartitionKeyString(name), fmt.Appendf(nil, `{"id":%q}`, name), nil)
		return err
	}
	a.Fail(t, orrerytest.Fault{API: "nosql", Operation: "create item", Kind: "429", Count: 2, RetryAfterMS: 1})
	must(t, create("repeated"))

	a.Fail(t, orrerytest.Fault{Container: "items", Key: "bad", Kind: "503"})
	if err := create("good"); err != nil {
		t.Errorf("another key: %v", err)
	}
	var re *azcore.ResponseError
	if err := create("bad"); !errors.As(err, &re) || re.StatusCode != 503 {
		t.Errorf("the key of the rule: %v", err)
	}
	remove := a.Fail(t, orrerytest.Fault{API: "mongo", Operation: "find", Container: "docs", Key: "x", Kind: "449"})
	docs := c.mongo.Database("shop").Collection("docs")
	if err := docs.FindOne(ctx, bson.M{"_id": "before"}).Err(); err != nil {
		t.Errorf("another _id: %v", err)
	}
	if err := docs.FindOne(ctx, bson.M{"_id": "x"}).Err(); err == nil || errors.Is(err, mongo.ErrNoDocuments) {
		t.Errorf("the _id of the rule: %v", err)
	}
	remove()
	if err := docs.FindOne(ctx, bson.M{"_id": "x"}).Err(); !errors.Is(err, mongo.ErrNoDocuments) {
		t.Errorf("after the rule: %v", err)
	}
	a.Fail(t, orrerytest.Fault{API: "table", Kind: "latency", DelayMS: 30, Count: 1})
	began := time.Now()
	c.seen(t)
	if took := time.Since(began); took < 30*time.Millisecond {
		t.Errorf("a request with latency took %v", took)
	}
}

// A header asks for a fault of its own request.
func TestFaultHeader(t *testing.T) {
	a := srv.Account(t)
	for header, want := range map[string]int{"": 401, "nonsense": 401} {
		r, _ := http.NewRequest(http.MethodGet, a.NoSQL.Endpoint+"dbs", nil)
		r.Header.Set("x-orrery-fault", header)
		res, err := http.DefaultClient.Do(r)
		must(t, err)
		res.Body.Close()
		if res.StatusCode != want { // credentials come first
			t.Errorf("%q: %s", header, res.Status)
		}
	}
	open := orrerytest.Start(t, orrerytest.NoAuth())
	for header, want := range map[string]int{"": 200, "nonsense": 200, "429": 429, "503; delayMs=1": 503, "408": 408,
		"410": 410, "449": 449, "429; delayMs=x": 200} {
		r, _ := http.NewRequest(http.MethodGet, open.NoSQL.Endpoint+"dbs", nil)
		r.Header.Set("x-orrery-fault", header)
		res, err := http.DefaultClient.Do(r)
		must(t, err)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%q: %s, want %d", header, res.Status, want)
		}
		if header == "429" && res.Header.Get("x-ms-retry-after-ms") == "" {
			t.Error("a 429 has no x-ms-retry-after-ms")
		}
	}
	without := orrerytest.Start(t, orrerytest.NoAuth(), orrerytest.WithoutControls())
	r, _ := http.NewRequest(http.MethodGet, without.NoSQL.Endpoint+"dbs", nil)
	r.Header.Set("x-orrery-fault", "429")
	res, err := http.DefaultClient.Do(r)
	must(t, err)
	res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("without test controls: %s", res.Status)
	}
}
