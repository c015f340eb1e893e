package model

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

// P11: what `orrery partitions` asks the admin port for: the size of each physical partition, the largest partition key
// values, and a sentence that says whether the key is a good one. The items come through NoSQL, into 4 partitions.
func TestP11Advice(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Strict = nil
	cfg.LogicalGB = 200.0 / (1 << 20)
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s := harness.StartWith(t, cfg)
	db := s.Database(t)
	const n = 400
	for _, x := range []struct {
		name    string
		key     func(i int) string
		pad     func(key string, c *azcosmos.ContainerClient) int // bytes in each item
		advice  string
		keys    int64
		largest string // the partition key value, "" = any
	}{
		{"good", func(i int) string { return fmt.Sprint("user-", i) }, nil, "spreads the data evenly", n, ""},
		{"few", func(i int) string { return fmt.Sprint("country-", i%6) }, nil,
			"it has only 6 values for 4 physical partitions", 6, ""},
		{"hot", func(i int) string { return fmt.Sprint("host-", max(0, i-200)) }, nil, `the key ["host-0"] has 49 %`,
			200, `["host-0"]`},
		{"full", func(i int) string { return fmt.Sprint("host-", max(0, i-350)) },
			func(string, *azcosmos.ContainerClient) int { return 300 },
			`the key ["host-0"] alone has`, 50, `["host-0"]`},
		{"skewed", func(i int) string { return fmt.Sprint("city-", i%100) }, heavyFirst,
			"The data is uneven: physical partition 0 has", 100, ""},
		{"tiny", nil, nil, "too few items (3)", 1, `["only"]`},
	} {
		c := harness.Container(t, db, x.name, 40000, "/k")
		if x.key == nil {
			create(t, c, "k", `{"id":"1","k":"only"}`, `{"id":"2","k":"only"}`, `{"id":"3","k":"only"}`)
		} else {
			fill(t, c, n, x.key, x.pad)
		}
		r, err := server.AskForPartitions(bg, "http://"+s.Addr(server.Admin), s.Key(), db.ID(), x.name)
		ok(t, err)
		if !strings.Contains(r.Advice, x.advice) {
			t.Errorf("%s: %s, want %s", x.name, r.Advice, x.advice)
		}
		if r.Keys != x.keys || !r.AllKeys || r.Throughput != 40000 || len(r.Partitions) != 4 {
			t.Errorf("%s: %d keys, all of them: %v, want %d; %d partitions of %d RU/s", x.name, r.Keys, r.AllKeys,
				x.keys, len(r.Partitions), r.Throughput)
		}
		var items, bytes int64
		var used float64
		for _, p := range r.Partitions {
			items, bytes, used = items+p.Items, bytes+p.Bytes, used+p.Total
		}
		if x.key != nil && (items != n || bytes < 30*n || used < 4.9*n) {
			t.Errorf("%s: %d items, %d bytes, %v RU in all partitions", x.name, items, bytes, used)
		}
		largest := ""
		if len(r.Heaviest) > 0 {
			largest = strings.Join(strings.Fields(string(r.Heaviest[0].Key)), "")
		}
		if x.largest != "" && largest != x.largest {
			t.Errorf("%s: the largest key is %+v, want %s", x.name, r.Heaviest, x.largest)
		}
	}
}

// fill creates n items with four clients.
func fill(t *testing.T, c *azcosmos.ContainerClient, n int, key func(i int) string,
	pad func(key string, c *azcosmos.ContainerClient) int) {
	t.Helper()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w; i < n; i += 4 {
				k, more := key(i), 0
				if pad != nil {
					more = pad(k, c)
				}
				item := fmt.Sprintf(`{"id":"%d","k":%q,"pad":%q}`, i, k, strings.Repeat("x", more))
				if _, err := c.CreateItem(bg, str(k), []byte(item), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// heavyFirst makes the items of the first physical partition large. The partition of a key is in the header of replies.
func heavyFirst(key string, c *azcosmos.ContainerClient) int {
	var re *azcore.ResponseError
	_, err := c.ReadItem(bg, str(key), "none", nil)
	if errors.As(err, &re) && re.RawResponse.Header.Get("x-ms-documentdb-partitionkeyrangeid") == "0" {
		return 2000
	}
	return 0
}
