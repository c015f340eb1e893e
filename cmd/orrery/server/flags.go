package server

import (
	"fmt"
	"reflect"
	"time"

	"github.com/spf13/pflag"
)

// Limits are the flags that bound what the server takes. A field is a flag: its tags are the name, the default and the
// help that the command shows, and the default is also that of a server without flags.
type Limits struct {
	CacheMB        int           `flag:"cache-mb" default:"144" help:"Cache of the store in MiB, for items and blocks."`
	MemoryMB       int           `flag:"memory-mb" help:"Cache and what requests may hold together, in MiB; by default 112 more than the cache."`
	SpillMB        int           `flag:"spill-mb" help:"Most that temporary files of queries may have, in MiB; 0: as long as the disk has room."`
	MaxConnections int           `flag:"max-connections" default:"2000" help:"Connections of each API: more are closed."`
	MaxRequests    int           `flag:"max-requests" default:"256" help:"Requests that each API works on at once; more wait."`
	MaxWaiting     int           `flag:"max-waiting" default:"1024" help:"Requests that wait at each API, for a second at most; more are refused."`
	MaxTime        time.Duration `flag:"max-time" default:"10m" help:"Longest time of one request; 0 is for ever."`
	PartitionRU    int           `flag:"partition-ru" default:"10000" help:"Most request units per second of one physical partition: a container with more gets more partitions."`
	PartitionGB    float64       `flag:"partition-gb" default:"50" help:"Size of a physical partition in GiB at which it splits in two."`
	LogicalGB      float64       `flag:"logical-gb" default:"20" help:"Most that the items of one partition key value may have, in GiB."`
	StreamAge      time.Duration `flag:"stream-age" default:"24h" help:"How long changes are kept for MongoDB change streams."`
	StreamMB       int           `flag:"stream-mb" default:"1024" help:"Most that the changes kept for MongoDB change streams may have, in MiB: the oldest go first."`
	Throttle       bool          `flag:"throttle" help:"Refuse what is above the provisioned throughput, as the service does (429)."`
	ScriptMemory   int           `flag:"script-memory" default:"256" help:"Memory of a process that runs programs in JavaScript, in MiB."`
	ScriptTime     time.Duration `flag:"script-time" default:"5s" help:"Longest time of one run of a program in JavaScript."`
}

// Flags adds the flags.
func (l *Limits) Flags(f *pflag.FlagSet) {
	v := reflect.ValueOf(l).Elem()
	for i := range v.NumField() {
		if err := addFlag(f, v.Field(i).Addr().Interface(), v.Type().Field(i).Tag); err != nil {
			panic(err) // a tag of Limits is wrong
		}
	}
}

func addFlag(f *pflag.FlagSet, value any, tag reflect.StructTag) error {
	name, help := tag.Get("flag"), tag.Get("help")
	switch v := value.(type) {
	case *int:
		f.IntVar(v, name, 0, help)
	case *float64:
		f.Float64Var(v, name, 0, help)
	case *bool:
		f.BoolVar(v, name, false, help)
	case *time.Duration:
		f.DurationVar(v, name, 0, help)
	default:
		return fmt.Errorf("--%s: a limit can't be a %T", name, value)
	}
	is, ok := tag.Lookup("default")
	if !ok {
		return nil
	}
	added := f.Lookup(name)
	added.DefValue = is
	return added.Value.Set(is)
}

// defaultLimits are the limits of a server without flags.
func defaultLimits() (l Limits) {
	l.Flags(pflag.NewFlagSet("", pflag.PanicOnError))
	return l
}
