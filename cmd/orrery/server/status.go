package server

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// Status is the reply of /status.
type Status struct {
	Version    string                `json:"version"`
	Started    string                `json:"started"`
	UptimeSec  int64                 `json:"uptimeSeconds"`
	Ready      bool                  `json:"ready"`
	Health     *HealthStatus         `json:"health,omitempty"`
	Account    string                `json:"account"`
	Auth       bool                  `json:"auth"`
	Data       string                `json:"data"`
	Engine     string                `json:"engine"` // pebble, memory, or the scheme of the store's address
	Durability string                `json:"durability"`
	Memory     *MemoryStatus         `json:"requestMemory,omitempty"`
	APIs       map[string]DoorStatus `json:"apis"`
	Identity   *kv.Identity          `json:"identity,omitempty"` // of the store
	Store      any                   `json:"store,omitempty"`
	Backup     *BackupStatus         `json:"backup,omitempty"` // nil: none was requested since the start
	Scrub      any                   `json:"scrub,omitempty"`  // what the background check of the store has found
	// of the store's containers to the current format; nil: finished
	Upgrade    *core.UpgradeStatus `json:"upgrade,omitempty"`
	Processes  []core.Process      `json:"processes,omitempty"` // over a shared store
	Leases     []core.Lease        `json:"leases,omitempty"`    // work of the processes over a shared store
	Upkeep     []core.ChoreStatus  `json:"upkeep,omitempty"`    // what this process has done for the storage engine
	Containers []ContainerStatus   `json:"containers,omitempty"`
	More       int                 `json:"containersMore,omitempty"` // number of containers that Containers omits
	Open       int                 `json:"containersOpen"`           // containers used in the last minutes
	Unread     []string            `json:"unread,omitempty"`         // what the store didn't answer, and why
}

// HealthStatus is the state that the store reports.
type HealthStatus struct {
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// MemoryStatus is the memory that requests share.
type MemoryStatus struct {
	Used  int64 `json:"usedBytes"`
	Limit int64 `json:"limitBytes"`
}

// DoorStatus is one API in Status.
type DoorStatus struct {
	Addr        string `json:"addr"`
	Open        int64  `json:"connectionsOpen"`
	Connections int64  `json:"connectionsAccepted"`
	Refused     int64  `json:"connectionsRefused,omitempty"`
	Requests    int64  `json:"requests,omitempty"`
	InFlight    int64  `json:"requestsInFlight,omitempty"`
	TurnedAway  int64  `json:"requestsRefused,omitempty"`
}

// statusTime is the longest time for which Status waits for the store.
const statusTime = 3 * time.Second

func (s *Server) status(ctx context.Context) Status {
	st := Status{
		Version:    s.cfg.Version,
		Started:    s.started(),
		UptimeSec:  int64(wall.Now().Sub(s.began).Seconds()),
		Ready:      s.unready() == "",
		Account:    s.cfg.Account,
		Auth:       s.cfg.Auth,
		Data:       s.cfg.place(),
		Engine:     s.cfg.engineName(),
		Durability: s.cfg.Durability,
		APIs:       map[string]DoorStatus{},
		Store:      s.store().Status(),
		Backup:     s.backups.status(),
	}
	if s.cfg.Memory {
		st.Durability = "none"
	}
	if b := s.backing(); b != nil {
		b.describe(ctx, s, &st)
	}
	for _, b := range s.bound {
		if b.name == page {
			continue
		}
		conns, n := b.conns.Counts(), s.seen.apis[b.name]
		st.APIs[b.name] = DoorStatus{Addr: b.addr, Open: conns.Open, Connections: conns.Accepted,
			Refused:  conns.Refused,
			Requests: n.begun.Load(), InFlight: n.inFlight(), TurnedAway: b.gate.Refused()}
	}
	return st
}

// describe adds the core's part. It says what the store doesn't answer in time.
func (b *backing) describe(ctx context.Context, s *Server, st *Status) {
	h, bud := b.eng.Health(), b.eng.Budget()
	st.Health = &HealthStatus{State: healthNames[h.State], Reason: h.Reason}
	st.Memory = &MemoryStatus{Used: bud.Used(), Limit: bud.Limit()}
	if i := b.eng.Identity(); i.ID != "" {
		st.Identity = &i
	}
	st.Scrub = b.eng.ScrubStatus()
	if up, under := b.eng.Upgrading(); under {
		st.Upgrade = &up
	}
	st.Upkeep = b.eng.Upkeep()
	st.Open = b.eng.OpenContainers()
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	list := func(what string, err error) {
		if err != nil {
			s.log.Error("The "+what+" can't be listed", "error", err)
			st.Unread = append(st.Unread, what+": "+status.From(err).Msg)
		}
	}
	var err error
	st.Processes, err = b.eng.Processes(ctx)
	list("processes", err)
	st.Leases, err = b.eng.Leases(ctx)
	list("leases", err)
	st.Containers, st.More, err = containersOf(ctx, b.eng)
	list("containers", err)
}

// announce tells the other processes over a shared store who this one is.
func (s *Server) announce() {
	b := s.backing()
	if b == nil || !b.eng.Shared() {
		return
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	a := core.Announcement{Name: fmt.Sprintf("%s/%d", host, os.Getpid()), Version: s.cfg.Version,
		Started: s.started(), Addresses: map[string]string{}}
	for _, b := range s.bound {
		a.Addresses[b.name] = b.addr
	}
	if err := b.eng.Announce(a); err != nil {
		s.log.Error("Other processes over the store can't list this one", "error", err)
	}
}

// started is the start of the server, for people.
func (s *Server) started() string { return s.began.Format("2006-01-02T15:04:05.000Z07:00") }
