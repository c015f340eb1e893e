package server

import (
	"cmp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/few"
	"github.com/orrerydb/orrery/core/kv"
)

// registry has all metrics of the server.
func (s *Server) registry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		s.seen.latency, s.seen.charge, s.seen.feedLag, collector{s})
	return reg
}

// figure is a metric that is read only when metrics are requested, so it costs nothing for other requests.
type figure struct {
	name, help string
	kind       prometheus.ValueType // the names of counters end in _total
	value      float64
	labels     []label
}

type label struct{ name, value string }

// measured is a backend with metrics.
type measured interface{ Figures() []figure }

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// collector is the prometheus.Collector of all figures.
type collector struct{ s *Server }

// Describe implements prometheus.Collector. It describes nothing, because the store's figures are known only once there
// is a store.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	all := c.s.figures()
	if m, ok := c.s.store().(measured); ok {
		all = append(all, m.Figures()...)
	}
	for _, f := range all {
		names, values := []string(nil), []string(nil)
		for _, l := range f.labels {
			names, values = append(names, l.name), append(values, l.value)
		}
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(f.name, f.help, names, nil), f.kind, f.value, values...)
	}
}

// figures are the metrics of the server itself.
func (s *Server) figures() []figure {
	ready := 0.0
	if s.unready() == "" {
		ready = 1
	}
	out := []figure{
		{"orrery_ready", "1 when every API has answered a request, the store is well, and the server isn't stopping.",
			gauge, ready, nil},
		{"orrery_build_info", "The version of the server.", gauge, 1, []label{{"version", s.cfg.Version}}},
	}
	for _, b := range s.bound {
		out = append(out, s.doorFigures(b)...)
	}
	out = append(out, s.backups.figures()...)
	return out
}

func (s *Server) doorFigures(b *bound) []figure {
	api := []label{{"api", b.name}}
	n, conns := s.seen.apis[b.name], b.conns.Counts()
	return []figure{
		{"orrery_requests_total", "Requests that have begun.", counter, float64(n.begun.Load()), api},
		{"orrery_requests_in_flight", "Requests that are being answered.", gauge, float64(n.inFlight()), api},
		{"orrery_requests_waiting", "Requests that wait for changes, because their clients asked them to.", gauge,
			float64(n.waiting.Load()), api},
		{"orrery_request_failures_total", "Requests that failed by a fault of the server's.", counter,
			float64(n.failed.Load()), api},
		{"orrery_requests_abandoned_total", "Requests whose client left before the answer.", counter,
			float64(n.left.Load()), api},
		{"orrery_requests_refused_total", "Requests that were refused because too many others were there.", counter,
			float64(b.gate.Refused()), api},
		{"orrery_connections_open", "Connections that are open.", gauge, float64(conns.Open), api},
		{"orrery_connections_total", "Connections accepted.", counter, float64(conns.Accepted), api},
		{"orrery_connections_refused_total", "Connections closed because there were too many.", counter,
			float64(conns.Refused), api},
		{"orrery_connections_stalled_total", "Connections closed because the client took nothing.", counter,
			float64(conns.Stalled), api},
	}
}

// Figures implements measured.
func (b *backing) Figures() []figure {
	bud, files := b.eng.Budget(), b.eng.Spill()
	out := []figure{
		{"orrery_memory_budget_limit_bytes", "What requests may hold together.", gauge, float64(bud.Limit()), nil},
		{"orrery_memory_budget_used_bytes", "What requests hold.", gauge, float64(bud.Used()), nil},
		{"orrery_spill_bytes", "What temporary files of queries have.", gauge, float64(files.Used()), nil},
		{"orrery_spill_written_bytes_total", "Written to temporary files of queries.", counter,
			float64(files.Written()), nil},
	}
	now := b.eng.Health().State
	for st, name := range healthNames {
		out = append(out, figure{"orrery_store_health", "1 for the state that the store is in.", gauge,
			indicator(kv.State(st) == now),
			[]label{{"state", name}}})
	}
	out = append(out, useFigures(b.eng)...)
	return append(out, b.storage.Figures()...)
}

// mostPartitions is the number of physical partitions whose consumption is shown: those that have used the most.
const mostPartitions = 200

// useFigures are the metrics of request units by physical partition.
func useFigures(e *core.Engine) []figure {
	type used struct {
		core.PartitionUse
		labels []label
	}
	var all []used
	seen := map[[2]string]bool{} // for a moment a container that was replaced has the name of the new one
	for _, c := range e.Consumption() {
		name := [2]string{strings.ToValidUTF8(c.Database(), "?"), strings.ToValidUTF8(c.ID(), "?")}
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, p := range c.Partitions {
			if p.Total > 0 {
				all = append(all, used{p, []label{{"database", name[0]}, {"container", name[1]}, {"partition", p.ID}}})
			}
		}
	}
	few.Sort(all, func(a, b used) int { return cmp.Compare(b.Total, a.Total) })
	shown := all[:min(len(all), mostPartitions)]
	out := []figure{
		{"orrery_throttled_requests_total", "Requests and operations of bulks that were refused because request " +
			"units were used up.", counter, float64(e.Throttled()), nil},
		{"orrery_partitions_not_shown", "Physical partitions in use whose consumption is not among these metrics.",
			gauge, float64(len(all) - len(shown)), nil},
	}
	for _, p := range shown {
		out = append(out,
			figure{"orrery_partition_request_units_total", "Request units that a physical partition has used since " +
				"its container was opened.", counter, p.Total, p.labels},
			figure{"orrery_partition_request_units_per_second", "Request units of the last second.", gauge, p.Second,
				p.labels},
			figure{"orrery_partition_normalized_consumption", "Request units of the last second, as a part of what " +
				"the partition may use.", gauge, p.Normalized, p.labels})
	}
	return out
}

// healthNames are the names of a store's states in metrics and in /status.
var healthNames = [...]string{kv.Well: "well", kv.Damaged: "damaged", kv.Full: "full", kv.ReadOnly: "read-only",
	kv.Stalled: "stalled"}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
