package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
)

// TestPartitionMetrics: /metrics has the consumption of the physical partitions that have used the most, and the number
// of requests that --throttle has refused. There are never more than mostPartitions of them.
func TestPartitionMetrics(t *testing.T) {
	cfg := Ephemeral()
	cfg.Throttle, cfg.PartitionRU = true, 100
	s, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(context.Background()) }()
	ctx := context.Background()
	if _, err := s.Engine().EnsureDatabase(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	write := func(c *core.Container, id string) error {
		d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%s","pk":"%s"}`, id, id),
			doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Write(ctx, core.Write{Kind: core.Upsert, Doc: d})
		return err
	}
	make := func(name string, throughput int) *core.Container {
		c, err := s.Engine().CreateContainer(ctx, "db", core.ContainerSpec{ID: name,
			PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}},
			Throughput:   core.Throughput{Manual: throughput}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	hot := make("hot", 100)
	refused := 0
	for range 100 {
		if err := write(hot, "a"); status.Is(err, status.TooManyRequests) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	many := make("many", 30000)
	for i := range 2000 {
		if err := write(many, fmt.Sprint(i)); err != nil && !status.Is(err, status.TooManyRequests) {
			t.Fatal(err)
		}
	}
	_, text := get(t, http.DefaultClient, "http://"+s.Addr(Admin)+"/metrics")
	for _, want := range []string{
		fmt.Sprintf(`orrery_partition_request_units_total{container="hot",database="db",partition="0"} %v`,
			hot.Consumption()[0].Total),
		`orrery_partition_normalized_consumption{container="hot",database="db",partition="0"} `,
		`orrery_partition_request_units_per_second{container="hot",database="db",partition="0"} `,
		fmt.Sprintf("orrery_throttled_requests_total %d\n", s.Engine().Throttled()), "orrery_partitions_not_shown 1"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s", want)
		}
	}
	shown := strings.Count(string(text), "\norrery_partition_request_units_total{")
	if shown != mostPartitions || refused == 0 {
		t.Errorf("%d partitions are shown; %d refused", shown, refused)
	}
}
