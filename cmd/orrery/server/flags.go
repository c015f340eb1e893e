package server

import (
	"time"

	"github.com/alecthomas/kong"
)

// Limits are the flags that bound what the server takes. A field is a flag: its name, its default and its help are
// those that the command shows, and the default is also that of a server without flags.
type Limits struct {
	CacheMB        int           `name:"cache-mb" default:"144" help:"Cache of the store in MiB, for items and blocks."`
	MemoryMB       int           `name:"memory-mb" placeholder:"MIB" help:"Cache and what requests may hold together, in MiB; by default 112 more than the cache."`
	SpillMB        int           `name:"spill-mb" default:"0" help:"Most that temporary files of queries may have, in MiB; 0: as long as the disk has room."`
	MaxConnections int           `default:"2000" help:"Connections of each API: more are closed."`
	MaxRequests    int           `default:"256" help:"Requests that each API works on at once; more wait."`
	MaxWaiting     int           `default:"1024" help:"Requests that wait at each API, for a second at most; more are refused."`
	MaxTime        time.Duration `default:"10m" help:"Longest time of one request; 0 is for ever."`
}

// defaultLimits are the limits of a server without flags.
func defaultLimits() (l Limits) {
	if err := kong.ApplyDefaults(&l); err != nil {
		panic(err) // a tag of Limits is wrong
	}
	return l
}
