package server

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// certificatePath is where the NoSQL port gives its certificate; the vendor's emulator has it there.
const certificatePath = "/_explorer/emulator.pem"

// withCertificate answers certificatePath and counts requests; everything else is h's.
func (s *Server) withCertificate(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != certificatePath {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-pem-file")
		w.Header().Set("Content-Disposition", `attachment; filename="emulator.pem"`)
		_, _ = w.Write(s.cert.PEM)
	})
}

// count adds one to the door's requests, then lets h answer.
func (s *Server) count(name string, h http.Handler) http.Handler {
	b := s.door(name)
	if b == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.requests.Add(1)
		h.ServeHTTP(w, r)
	})
}

func (s *Server) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /alive", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "alive\n") })
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if s.Ready() {
			plain(w, http.StatusOK, "ready\n")
		} else {
			plain(w, http.StatusServiceUnavailable, "not ready\n")
		}
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { asJSON(w, s.status()) })
	mux.HandleFunc("GET /orrery/connect", func(w http.ResponseWriter, r *http.Request) {
		asJSON(w, s.Connections(s.mayShowKey(r)))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry(), promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", s.profiles)
	return mux
}

// profiles serves Go's profiles to this machine only: they cost time and show what the process does.
func (s *Server) profiles(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || !loopback(host) || !ownHost(r.Host, s.hostNames()) {
		plain(w, http.StatusForbidden, "profiles are for this machine only\n")
		return
	}
	switch strings.TrimPrefix(r.URL.Path, "/debug/pprof/") {
	case "profile":
		pprof.Profile(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}

// mayShowKey: the admin port asks nobody who they are, so a key worth protecting goes to this machine only.
func (s *Server) mayShowKey(r *http.Request) bool {
	if s.cfg.Key == WellKnownKey {
		return true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && loopback(host) && ownHost(r.Host, s.hostNames()) // a browser on this machine may ask for another
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}

func asJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
}

// Status is the answer of /status.
type Status struct {
	Version    string                `json:"version"`
	Started    string                `json:"started"`
	UptimeSec  int64                 `json:"uptimeSeconds"`
	Ready      bool                  `json:"ready"`
	Account    string                `json:"account"`
	Auth       bool                  `json:"auth"`
	Data       string                `json:"data"`
	Durability string                `json:"durability"`
	APIs       map[string]DoorStatus `json:"apis"`
	Store      any                   `json:"store,omitempty"`
	Scrub      any                   `json:"scrub,omitempty"`
	Containers []ContainerStatus     `json:"containers,omitempty"`
}

// DoorStatus is one API in Status.
type DoorStatus struct {
	Addr        string `json:"addr"`
	Connections int64  `json:"connectionsAccepted"`
	Requests    int64  `json:"requests,omitempty"`
}

func (s *Server) status() Status {
	st := Status{
		Version:    s.cfg.Version,
		Started:    s.began.Format("2006-01-02T15:04:05.000Z07:00"),
		UptimeSec:  int64(s.cfg.Clock.Now().Sub(s.began).Seconds()),
		Ready:      s.Ready(),
		Account:    s.cfg.Account,
		Auth:       s.cfg.Auth,
		Data:       s.cfg.Data,
		Durability: s.cfg.Durability,
		APIs:       map[string]DoorStatus{},
		Store:      s.back.Status(),
	}
	if s.cfg.Memory {
		st.Data, st.Durability = "memory", "none"
	}
	if b, ok := s.back.(*backing); ok {
		st.Scrub = b.eng.ScrubStatus()
		var err error
		if st.Containers, err = containersOf(b.eng); err != nil {
			s.log.Error("The containers can't be listed", "error", err)
		}
	}
	for _, b := range s.bound {
		st.APIs[b.name] = DoorStatus{Addr: b.addr, Connections: b.accepted.Load(), Requests: b.requests.Load()}
	}
	return st
}

// measured is a backend with figures for /metrics, by name and help text.
type measured interface{ Gauges() []gauge }

type gauge struct {
	name, help string
	value      float64
}

func (s *Server) registry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collector{s})
	return reg
}

// collector reads the figures when they are asked for, so that serving requests costs nothing for them.
type collector struct{ s *Server }

var (
	descRequests = prometheus.NewDesc("orrery_requests_total", "Requests, WebSocket connections for Gremlin.", []string{"api"}, nil)
	descAccepted = prometheus.NewDesc("orrery_connections_total", "Connections accepted.", []string{"api"}, nil)
	descReady    = prometheus.NewDesc("orrery_ready", "1 when every API has answered a request.", nil, nil)
)

// Describe implements prometheus.Collector; the store's figures are known only when there is a store, so none is promised.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ready := 0.0
	if c.s.Ready() {
		ready = 1
	}
	ch <- prometheus.MustNewConstMetric(descReady, prometheus.GaugeValue, ready)
	for _, b := range c.s.bound {
		ch <- prometheus.MustNewConstMetric(descAccepted, prometheus.CounterValue, float64(b.accepted.Load()), b.name)
		ch <- prometheus.MustNewConstMetric(descRequests, prometheus.CounterValue, float64(b.requests.Load()), b.name)
	}
	if m, ok := c.s.back.(measured); ok {
		for _, g := range m.Gauges() {
			ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(g.name, g.help, nil, nil), prometheus.GaugeValue, g.value)
		}
	}
}
