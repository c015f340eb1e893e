// Package server assembles the complete server: a store, the core on it, the four doors, the admin port. cmd/orrery
// starts one from its flags. Tests start any number in one process, on free ports.
package server

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// WellKnownKey is the fixed key of the vendor's emulator, which its samples contain. It protects nothing.
const WellKnownKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

// Off as an address turns an API off.
const Off = "off"

// Config is the configuration of a server. Start from Default or Ephemeral.
type Config struct {
	Data   string // the directory of the store; unused with Memory
	Memory bool   // keep everything in memory
	// Engine is the address of a store that several processes share; "" = the store is in Data, or in memory. With an
	// address Data has only what this server keeps for itself, and may be "".
	Engine  string
	Engines []EngineKind // the kinds of addresses that can be opened

	NoSQLAddr, GremlinAddr, TableAddr, MongoAddr, AdminAddr string // host:port, or Off

	Account string // the account name: Mongo's user, Table's account
	Key     string // in base64; the only key of the account
	Auth    bool   // false: no API checks credentials
	// Insecure allows Auth = false and the well-known key on addresses that other machines can reach.
	Insecure bool
	// PublicHosts are additional names under which requests may address a server without credentials, besides localhost
	// and the names of this machine.
	PublicHosts []string
	// BodyTimeout limits four waits: for the first byte of a connection, for the head of a request, for the next part
	// of its body, and for a client that reads nothing of a reply. 0 = 30 s.
	BodyTimeout time.Duration

	// TLSCert and TLSKey are PEM files with the user's own certificate. "" = the server creates one.
	TLSCert, TLSKey string

	Limits
	MongoDoor MongoFlags
	Explorer  ExplorerFlags

	MinSlots int // least number of slots of a container; 0 = 1 for each physical partition. For tests

	Consistency string // of the account, as the NoSQL API spells it; "" = Session

	Strict []string // APIs that refuse what the service refuses: NoSQL, Mongo

	GremlinSources map[string]string // traversal source -> "database/graph"
	Durability     string            // "sync" or "relaxed"
	MinFree        int64             // bytes of the disk that new data leaves free; 0 = 256 MiB, or 5 % of a small disk
	Stall          time.Duration     // how long the disk may take before writes are refused; 0 = 10 s
	Upgrade        bool              // convert a store of an older format to the current one, which can't be undone

	LogRequests bool          // one line for each request
	Slow        time.Duration // requests that take this long are logged with their plan; 0 = none

	// ScriptWorker is how a process that runs programs in JavaScript is started; nil = this binary, with the command
	// script-worker.
	ScriptWorker []string

	// OwnNetworks allows Auth = false and the well-known key on addresses that other machines can reach, and serves
	// only clients of the networks that this machine is on then. It is for containers.
	OwnNetworks bool
	// InitDir is a directory of files with initial data, which are applied before the server is ready; "" = none.
	InitDir string
	// InitDatabase is the database that scripts of MongoDB's shell begin with; "" = test.
	InitDatabase string
	// ConnectFile is a file that has the connection strings, key included, while the server runs; "" = none.
	ConnectFile string
	// RecordDir is the directory of the records that test controls make; "" = none can be made.
	RecordDir string
	// PageAddr is another address of the admin port, for kits that expect the web page at a port of its own.
	PageAddr string
	// MongoUser and MongoPassword are the credentials of the MongoDB API; "" = account and key.
	MongoUser, MongoPassword string

	// TestControls enables the requests with which tests replace stores, add accounts and move time. Memory must be
	// set, or Data must be a directory that was made with it.
	TestControls bool

	// Disk returns the free and all bytes of the store's disk, for clients that ask; nil = they aren't told.
	Disk func() (free, total int64, err error)
	// Stop ends the process, for clients of the MongoDB API that may do that; nil = they can't.
	Stop func()

	Version string       // shown by /status
	Clock   *clock.Clock // time of the data: timestamps, TTL, functions of queries; nil = the wall clock
	Logger  *slog.Logger // nil = slog's default

	parent  *Server         // of one of its accounts; nil = a server
	budget  *budget.Budget  // of all accounts and all their stores; nil = not made yet
	cache   *pebblekv.Cache // of all stores of a server with test controls; nil = each store has its own
	spill   *ownSpill       // of all stores of an account in a directory; nil = not made yet
	content kv.Engine       // the first store, which is open already; nil = it is opened
}

// Default is the configuration of `orrery serve` without flags.
func Default() Config {
	return Config{
		Data:        "data",
		NoSQLAddr:   "127.0.0.1:8081",
		GremlinAddr: "127.0.0.1:8901",
		TableAddr:   "127.0.0.1:8902",
		MongoAddr:   "127.0.0.1:10255",
		AdminAddr:   "127.0.0.1:8080",
		Account:     "localhost",
		Key:         WellKnownKey,
		Auth:        true,
		Strict:      []string{NoSQL},
		Durability:  "sync",
		Slow:        time.Second,
		Limits:      defaultLimits(),
	}
}

// Ephemeral is the configuration of a server in memory on free loopback ports, for tests.
func Ephemeral() Config {
	c := Default()
	c.Data, c.Memory = "", true
	c.NoSQLAddr, c.GremlinAddr, c.TableAddr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.MongoAddr, c.AdminAddr = "127.0.0.1:0", "127.0.0.1:0"
	return c
}

// The names of the doors in flags, logs and /status.
const (
	NoSQL   = "nosql"
	Gremlin = "gremlin"
	Table   = "table"
	Mongo   = "mongo"
	Admin   = "admin"
	page    = "page" // the admin port once more
)

// addr is one door's address and the flag that sets it.
type addr struct{ name, addr string }

func (c *Config) addrs() []addr {
	return []addr{{NoSQL, c.NoSQLAddr}, {Gremlin, c.GremlinAddr}, {Table, c.TableAddr}, {Mongo, c.MongoAddr},
		{Admin, c.AdminAddr}, {page, cmp.Or(c.PageAddr, Off)}}
}

// Validate checks everything that can be checked before something is opened. Its errors are written for the user and
// name the flag.
func (c *Config) Validate() error {
	for _, check := range []func() error{c.validateDoors, c.validateAccount, c.MongoDoor.validate, c.Explorer.validate,
		c.validateLimits, c.validateStore} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateDoors checks where the APIs listen and how they answer.
func (c *Config) validateDoors() error {
	enabled := 0
	for _, a := range c.addrs() {
		if a.addr == Off {
			continue
		}
		host, _, err := net.SplitHostPort(a.addr)
		if err != nil {
			return fmt.Errorf("--%s-addr %q: want host:port or %q", a.name, a.addr, Off)
		}
		if a.name == Admin || a.name == page {
			continue
		}
		enabled++
		if err := c.refuseOpen(a.name, host); err != nil {
			return err
		}
	}
	if enabled == 0 {
		return errors.New("every API is off: give at least one of --nosql-addr, --gremlin-addr, --table-addr, " +
			"--mongo-addr an address")
	}
	if c.PageAddr != "" && c.PageAddr != Off && c.AdminAddr == Off {
		return errors.New("the web page has no port of its own without --admin-addr")
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key: want both, or none")
	}
	for _, api := range c.Strict {
		if api != NoSQL && api != Mongo {
			return fmt.Errorf("--strict %q: want a list of %s and %s, or none", api, NoSQL, Mongo)
		}
	}
	for name, target := range c.GremlinSources {
		db, graph, ok := strings.Cut(target, "/")
		if name == "" || !ok || db == "" || graph == "" || strings.Contains(graph, "/") {
			return fmt.Errorf("--gremlin-source %s=%s: want NAME=DATABASE/GRAPH", name, target)
		}
	}
	return nil
}

// validateAccount checks the names and the key that clients use.
func (c *Config) validateAccount() error {
	if c.Account == "" || strings.ContainsAny(c.Account, "/:@;= ") {
		return fmt.Errorf("--account %q: want a plain name", c.Account)
	}
	if k, err := base64.StdEncoding.DecodeString(c.Key); err != nil || len(k) == 0 {
		return errors.New("--key: want base64, for example the output of `openssl rand -base64 64`")
	}
	for _, h := range c.PublicHosts {
		if h == "" || strings.ContainsAny(h, "/: ") {
			return fmt.Errorf("--public-host %q: want a host name, without scheme and port", h)
		}
	}
	return nil
}

// validateStore checks where the store is and how it writes.
func (c *Config) validateStore() error {
	if c.Durability != "sync" && c.Durability != "relaxed" {
		return fmt.Errorf("--durability %q: want sync or relaxed", c.Durability)
	}
	if c.MinFree < 0 {
		return fmt.Errorf("--min-free %d: want a size", c.MinFree)
	}
	if c.Stall != 0 && c.Stall < time.Second {
		return fmt.Errorf("--stall %v: want a second or more", c.Stall)
	}
	if c.TestControls && c.Engine != "" {
		return errors.New("--test-controls is for a store in memory or in a directory")
	}
	if c.Engine != "" {
		if err := c.validateEngine(); err != nil {
			return err
		}
	} else if !c.Memory && c.Data == "" {
		return errors.New("give --data DIR or --memory")
	}
	if c.directory() != "" {
		if _, err := storeIn(c.Data); err != nil {
			return err
		}
		if isBackup(c.Data) {
			return fmt.Errorf("%s is a backup, which must not be changed: orrery restore --from %s --data NEWDIR "+
				"makes a store of it", c.Data, c.Data)
		}
	}
	return nil
}

// requestMB is the default memory of all requests together, in MiB. With the default cache the sum is 256.
const requestMB = 112

// leastRequestMB is the smallest allowed memory of all requests, in MiB.
const leastRequestMB = 16

// leastPartitionRU is the least value of --partition-ru: the smallest step of throughput.
const leastPartitionRU = 100

// leastScriptMB is the smallest memory of a process that runs programs, in MiB.
const leastScriptMB = 64

func (c *Config) validateLimits() error {
	if c.CacheMB < 1 {
		return fmt.Errorf("--cache-mb %d: want at least 1", c.CacheMB)
	}
	if c.MemoryMB != 0 && c.MemoryMB < c.CacheMB+leastRequestMB {
		return fmt.Errorf("--memory-mb %d: want at least %d, which are --cache-mb %d and %d for requests",
			c.MemoryMB, c.CacheMB+leastRequestMB, c.CacheMB, leastRequestMB)
	}
	for _, l := range []struct {
		flag  string
		value int64
		least int64
	}{
		{"--max-connections", int64(c.MaxConnections), 1}, {"--max-requests", int64(c.MaxRequests), 1},
		{"--max-waiting", int64(c.MaxWaiting), 0}, {"--max-time", int64(c.MaxTime), 0}, {"--slow-ms", int64(c.Slow), 0},
		{"--spill-mb", int64(c.SpillMB), 0}, {"--partition-ru", int64(c.PartitionRU), leastPartitionRU},
		{"--script-memory", int64(c.ScriptMemory), leastScriptMB},
		{"--script-time", c.ScriptTime.Milliseconds(), 1},
		{"--stream-age", int64(c.StreamAge / time.Second), 1}, {"--stream-mb", int64(c.StreamMB), 1},
	} {
		if l.value < l.least {
			return fmt.Errorf("%s: want at least %d", l.flag, l.least)
		}
	}
	for flag, n := range map[string]float64{"--partition-gb": c.PartitionGB, "--logical-gb": c.LogicalGB} {
		if !(n >= leastGB && n <= mostGB) {
			return fmt.Errorf("%s %g: want %g to %g", flag, n, leastGB, mostGB)
		}
	}
	return nil
}

// The values of --partition-gb and --logical-gb: from a kilobyte, which tests use, to a petabyte.
const (
	leastGB = 1e-6
	mostGB  = 1e6
)

// gigabytes returns a number of bytes.
func gigabytes(n float64) int64 { return int64(n * (1 << 30)) }

// spillDir returns the directory of queries' temporary files in a data directory.
func spillDir(data string) string { return filepath.Join(data, "spill") }

// storeIn is StoreDir for a data directory that the user has given. It refuses the directory of a store itself:
// otherwise a second store would be made in it, and the user wouldn't find the data of the first.
func storeIn(data string) (string, error) {
	dir := StoreDir(data)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) && pebblekv.Holds(data) {
		if abs, err := filepath.Abs(data); err == nil {
			data = abs
		}
		return "", fmt.Errorf("%s is the store inside of a data directory: give %s", data, filepath.Dir(data))
	}
	return dir, nil
}

// refuseOpen refuses to serve without real credentials on addresses that other machines can reach.
func (c *Config) refuseOpen(name, host string) error {
	if c.Insecure || c.OwnNetworks || loopback(host) {
		return nil
	}
	if !c.Auth {
		return fmt.Errorf("--auth=false with --%s-addr on %s would let everybody in: use a loopback address, or say "+
			"--insecure", name, shownHost(host))
	}
	if _, password := c.mongoLogin(); c.Key == WellKnownKey && (name != Mongo || password == WellKnownKey) {
		return fmt.Errorf("--%s-addr on %s with the well-known key would let everybody in: give --key, use a "+
			"loopback address, or say --insecure", name, shownHost(host))
	}
	return nil
}

func shownHost(host string) string {
	if host == "" {
		return "all interfaces"
	}
	return host
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// ParseSources converts texts NAME=DATABASE/GRAPH to Config.GremlinSources. Validate checks the parts.
func ParseSources(texts []string) (map[string]string, error) {
	out := map[string]string{}
	for _, t := range texts {
		name, target, ok := strings.Cut(t, "=")
		if !ok {
			return nil, fmt.Errorf("--gremlin-source %q: want NAME=DATABASE/GRAPH", t)
		}
		if other, twice := out[name]; twice && other != target {
			return nil, fmt.Errorf("--gremlin-source %s is given twice, as %s and as %s", name, other, target)
		}
		out[name] = target
	}
	return out, nil
}

// ParseStrict converts the words of --strict to Config.Strict: names of APIs, or the single word none. Validate checks
// the names.
func ParseStrict(words []string) ([]string, error) {
	var out []string
	none := false
	for _, w := range words {
		switch w = strings.ToLower(strings.TrimSpace(w)); {
		case w == "none" || w == "":
			none = true
		case !slices.Contains(out, w):
			out = append(out, w)
		}
	}
	if none && len(out) > 0 {
		return nil, fmt.Errorf("--strict %s: none can't be combined with others", strings.Join(words, ","))
	}
	return out, nil
}
