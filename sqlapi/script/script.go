// Package script runs server-side JavaScript: stored procedures, triggers and user-defined functions.
//
// Programs run in worker processes, because the limits of an engine inside the server don't hold: one native call of
// JavaScript can take minutes and gigabytes. A Pool starts workers, gives each run to one, answers its calls of the
// collection object through a Host, and kills a worker that exceeds its memory or its time.
package script

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// Defaults and bounds of Options.
const (
	DefaultMemory = 256 << 20
	DefaultTime   = 5 * time.Second
)

// WorkerCommand is the hidden command of the binary that serves as a worker. The process calls engine.Work.
const WorkerCommand = "script-worker"

// served is whether this binary has WorkerCommand.
var served atomic.Bool

var errNotServed = errors.New("this binary does not have the command " + WorkerCommand)

// Served tells the pools of this process that its binary has WorkerCommand. Without it a pool starts no workers, unless
// its Options name another command: a binary that doesn't know the command would do its own work again.
func Served() { served.Store(true) }

// Options of a Pool. Zero fields have defaults.
type Options struct {
	Workers int           // most worker processes; default: GOMAXPROCS, at least 2
	Memory  int64         // bytes of one worker; default: DefaultMemory
	Time    time.Duration // of one run; default: DefaultTime
	Command []string      // how a worker is started; default: this binary with WorkerCommand
	Clock   *clock.Clock  // for Date; default: the wall clock
}

// The messages of a run. Package wire documents them.
type (
	Kind    = wire.Kind
	Links   = wire.Links
	Header  = wire.Header
	Message = wire.Message
	Run     = wire.Run
	Result  = wire.Result
	Op      = wire.Op
	Reply   = wire.Reply
	Error   = wire.Error
	Reads   = wire.Reads
)

// The kinds of programs.
const (
	Procedure   = wire.Procedure
	PreTrigger  = wire.PreTrigger
	PostTrigger = wire.PostTrigger
	Function    = wire.Function
)

// Host answers a program's calls of the collection object, one call at a time and in the order in which the program
// made them. It is never called after Run has returned.
type Host interface {
	// Do performs one operation. An *Error goes to the program's callback and doesn't end the run.
	Do(ctx context.Context, op Op) (Reply, *Error)
}
