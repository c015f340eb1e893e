package core

import (
	"context"
	"encoding/json"

	"github.com/orrerydb/orrery/core/kv"
)

// Announcement is what a process says about itself to the others over a shared store, for people.
type Announcement struct {
	Name      string            `json:"name,omitempty"`
	Version   string            `json:"version,omitempty"`
	Started   string            `json:"started,omitempty"`   // by its own clock
	Addresses map[string]string `json:"addresses,omitempty"` // by API
}

// Process is a process over a shared store.
type Process struct {
	ID string `json:"id"` // random, for as long as the process lives
	Announcement
	Mine   bool    `json:"mine,omitempty"`               // it is this process
	Seen   float64 `json:"secondsSeen"`                  // how long this process has known it
	Silent float64 `json:"secondsWithoutSign,omitempty"` // since when this process has seen no sign of life of it
}

// ProcessID returns the id of this process, 16 hexadecimal digits; empty if the store isn't shared.
func (e *Engine) ProcessID() string { return e.leases().Process() }

// Announce lets the other processes over a shared store list this one (Processes) until the engine is closed. Nothing
// happens if the store isn't shared. It is called at most once, and not with Options.ReadOnly.
func (e *Engine) Announce(a Announcement) error {
	about, err := json.Marshal(a)
	if err != nil || !e.Shared() {
		return err
	}
	e.leases().Announce(string(about))
	e.work.Go("announcement of the process", func() {
		_ = e.leases().Stay(e.work.Context()) // takeTurn tries again, and logs what it finds
	})
	return nil
}

// Processes returns the processes over a shared store that give signs of life: those that have announced themselves,
// and those that hold leases. One that was killed is among them until others may take over its work. Nothing if the
// store isn't shared.
func (e *Engine) Processes(ctx context.Context) (out []Process, err error) {
	members, err := e.leases().Members(ctx)
	if err != nil {
		return nil, kv.Status(err)
	}
	for _, m := range members {
		p := Process{ID: m.Process, Mine: m.Mine, Seen: m.Seen.Seconds()}
		if !m.Mine {
			p.Silent = m.Silent.Seconds()
		}
		if m.About != "" { // what can't be read is of another version, and only for people
			_ = json.Unmarshal([]byte(m.About), &p.Announcement)
		}
		out = append(out, p)
	}
	return out, nil
}
