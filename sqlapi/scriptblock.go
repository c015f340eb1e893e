package sqlapi

import (
	"errors"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/script"
)

// A program that exceeds its time or its memory run after run is refused for some time, as in the service, so that it
// doesn't take the workers from the others. A replaced program is another one.
//
// Example: a procedure loops without end. Its first five runs end with 408 after five seconds each. For the next minute
// it is refused at once with 403. Then it may run again, and one more run of this kind blocks it for another minute.
const (
	mostExceeded = 5           // runs one after the other
	blockedFor   = time.Minute // since the last of them
	forgotten    = time.Hour   // since the last of them, they don't count any more
)

// programID is one version of a program.
type programID struct {
	kind    core.ResourceKind
	db, num uint32
	version uint64
}

// excess are the runs of a program that have exceeded a limit, since the last one that hasn't.
type excess struct {
	runs int
	last time.Time
}

// scriptBlocks knows which programs exceed their limits. The zero value knows none. Safe for concurrent use.
type scriptBlocks struct {
	mu       sync.Mutex
	programs map[programID]excess
}

func idOf(r *core.Resource) programID { return programID{r.Kind, r.DBNum, r.Num, r.Version} }

// check refuses a program that is blocked.
func (b *scriptBlocks) check(r *core.Resource, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.programs[idOf(r)]
	if e.runs < mostExceeded || now.Sub(e.last) >= blockedFor {
		return nil
	}
	return status.New(status.Forbidden, "The script with id '%s' is blocked for execution because it has violated its "+
		"allowed resource limit several times.", clip(r.ID))
}

// ran counts a run of a program that has ended with err. A run that was ended by something else doesn't count.
func (b *scriptBlocks) ran(r *core.Resource, err error, now time.Time) {
	var thrown *script.Error
	failed := errors.As(err, &thrown)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case failed && thrown.Exceeded:
		b.count(idOf(r), now)
	case err == nil || failed && thrown.Status < 500:
		delete(b.programs, idOf(r))
	}
}

func (b *scriptBlocks) count(id programID, now time.Time) {
	for other, e := range b.programs {
		if now.Sub(e.last) >= forgotten {
			delete(b.programs, other)
		}
	}
	if b.programs == nil {
		b.programs = map[programID]excess{}
	}
	e := b.programs[id]
	b.programs[id] = excess{e.runs + 1, now}
}
