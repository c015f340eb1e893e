package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// serving are the flags that serve and demo share.
type serving struct {
	NosqlAddr, GremlinAddr, TableAddr, MongoAddr, AdminAddr string

	Account string
	keyFlags
	Auth            bool
	Consistency     string
	Strict          []string
	Insecure        bool
	PublicHost      []string
	TLSCert, TLSKey string
	GremlinSource   []string
	server.Limits
	Mongo        server.MongoFlags
	Explorer     server.ExplorerFlags
	TestControls bool
	InitDir      string
	OwnNetworks  bool

	EmulatorPorts bool
	ConnectFile   string
	RecordDir     string
	logging
}

// flags adds the flags to those of a command.
func (c *serving) flags(f *pflag.FlagSet) {
	f.StringVar(&c.NosqlAddr, "nosql-addr", "127.0.0.1:8081", "Address of the NoSQL API (HTTP and HTTPS), or off.")
	f.StringVar(&c.GremlinAddr, "gremlin-addr", "127.0.0.1:8901", "Address of the Gremlin API (ws and wss), or off.")
	f.StringVar(&c.TableAddr, "table-addr", "127.0.0.1:8902", "Address of the Table API, or off.")
	f.StringVar(&c.MongoAddr, "mongo-addr", "127.0.0.1:10255", "Address of the MongoDB API, or off.")
	f.StringVar(&c.AdminAddr, "admin-addr", "127.0.0.1:8080", "Address of health, metrics and connection strings, or "+
		"off.")
	f.StringVar(&c.Account, "account", "localhost", "Account name.")
	c.keyFlags.flags(f)
	f.BoolVar(&c.Auth, "auth", true, "Ask for credentials (--auth=false: no API does).")
	f.Var(oneOf(&c.Consistency, "Session", "Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"),
		"consistency", "Consistency of the account: requests for a stronger one are refused.")
	f.StringSliceVar(&c.Strict, "strict", []string{"nosql"}, "APIs that refuse what the service refuses (nosql, "+
		"mongo), or none: answer everything.")
	f.BoolVar(&c.Insecure, "insecure", false, "Allow --auth=false and the well-known key on addresses that other "+
		"machines reach.")
	f.StringSliceVar(&c.PublicHost, "public-host", nil, "`NAME` under which clients may ask where nobody is asked who "+
		"they are, beside localhost and this machine's. Repeatable.")
	f.StringVar(&c.TLSCert, "tls-cert", "", "`FILE` with the certificate in PEM, and those that vouch for it. Without "+
		"it the server makes one.")
	f.StringVar(&c.TLSKey, "tls-key", "", "`FILE` with the private key of --tls-cert, in PEM.")
	f.StringSliceVar(&c.GremlinSource, "gremlin-source", nil, "Graph that Gremlin clients choose by alias, as "+
		"`NAME=DATABASE/GRAPH`; made when absent. Repeatable.")
	c.Limits.Flags(f)
	c.Mongo.Flags(f)
	c.Explorer.Flags(f)
	f.StringVar(&c.InitDir, "init-dir", "", "`DIR` with files of initial data, which are applied in the order of "+
		"their names before /ready says so.")
	f.BoolVar(&c.EmulatorPorts, "emulator-ports", false, "Serve at all ports of the newer emulator: besides 8081 and "+
		"8080 (/alive, /ready, /status), the web page at 1234.")
	f.StringVar(&c.ConnectFile, "connect-file", "", "`FILE` that has the connection strings as JSON, key included, "+
		"while the server runs.")
	f.StringVar(&c.RecordDir, "record-dir", "", "`DIR` for the requests that --test-controls records; only its owner "+
		"can read them.")
	f.BoolVar(&c.OwnNetworks, "own-networks", false, "With the well-known key or --auth=false on addresses that other "+
		"machines reach: serve only clients of the networks that this machine is on. For containers.")
	f.BoolVar(&c.TestControls, "test-controls", false, "Let tests replace the store, add accounts and move time at "+
		"/orrery/test of the admin port. For --memory, or a directory that is new or was made with this flag.")
	c.logging.flags(f)
}

// keyFlags are the two ways to set a key.
type keyFlags struct{ Key, KeyFile string }

func (c *keyFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&c.Key, "key", server.WellKnownKey, "Where the account key is, in base64: `env:NAME or file:PATH`. "+
		"The default is the emulator's well-known key, the only one that may be written here itself.")
	f.StringVar(&c.KeyFile, "key-file", "", "`FILE` with the account key: other users of this machine see the flags "+
		"of a process.")
}

// key returns the key from the file or from the flag.
func (f *keyFlags) key() (string, error) {
	if f.KeyFile == "" {
		return f.Key, nil
	}
	if f.Key != server.WellKnownKey {
		return "", errors.New("--key and --key-file can't be used together")
	}
	raw, err := os.ReadFile(f.KeyFile)
	if err != nil {
		return "", fmt.Errorf("--key-file can't be read: %w", err)
	}
	key := strings.TrimSpace(string(raw))
	if key == "" {
		return "", fmt.Errorf("--key-file %s: the file is empty", f.KeyFile)
	}
	return key, nil
}

// logging are the flags of the log.
type logging struct {
	LogLevel, LogFormat string
	LogRequests         bool
	SlowMS              int
}

func (c *logging) flags(f *pflag.FlagSet) {
	f.Var(oneOf(&c.LogLevel, "info", "debug", "info", "warn", "error"), "log-level", "Least level of the log: debug, "+
		"info, warn or error.")
	f.Var(oneOf(&c.LogFormat, "text", "text", "json"), "log-format", "Format of the log: text or json.")
	f.BoolVar(&c.LogRequests, "log-requests", false, "Log each request.")
	f.IntVar(&c.SlowMS, "slow-ms", 1000, "Log requests that take so many milliseconds, with their plan; 0: none.")
}

// logger writes to w.
func (f *logging) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", f.LogLevel)
	}
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: message}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return slog.New(slog.NewTextHandler(w, o)), nil
}

// message writes errors as their message. The text handler formats them with %+v, to which those of Pebble answer with
// the stacks of all goroutines that an error has passed.
func message(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindAny {
		if err, ok := a.Value.Any().(error); ok {
			return slog.String(a.Key, err.Error())
		}
	}
	return a
}

func (f *serving) config() (c server.Config, err error) {
	c = server.Default()
	if c.GremlinSources, err = server.ParseSources(f.GremlinSource); err != nil {
		return c, err
	}
	if c.Strict, err = server.ParseStrict(f.Strict); err != nil {
		return c, err
	}
	if c.Key, err = f.key(); err != nil {
		return c, err
	}
	if c.Logger, err = f.logger(os.Stderr); err != nil {
		return c, err
	}
	c.NoSQLAddr, c.GremlinAddr, c.TableAddr, c.MongoAddr, c.AdminAddr = f.NosqlAddr, f.GremlinAddr, f.TableAddr,
		f.MongoAddr, f.AdminAddr
	if f.EmulatorPorts {
		emulatorPorts(&c)
	}
	c.Account, c.Auth, c.Insecure = f.Account, f.Auth, f.Insecure
	c.Consistency, c.PublicHosts = f.Consistency, f.PublicHost
	c.TLSCert, c.TLSKey = f.TLSCert, f.TLSKey
	c.Limits, c.MongoDoor, c.Explorer, c.Version = f.Limits, f.Mongo, f.Explorer, version()
	c.TestControls, c.InitDir, c.OwnNetworks = f.TestControls, f.InitDir, f.OwnNetworks
	c.ConnectFile, c.RecordDir = f.ConnectFile, f.RecordDir
	c.LogRequests, c.Slow = f.LogRequests, time.Duration(f.SlowMS)*time.Millisecond
	return c, nil
}

// emulatorPorts gives the web page the port that it has in the service's newer emulator, beside the admin port. The
// other ports are the emulators' anyway: 8081 (NoSQL), 8080 (health), 10255, 8901 and 8902.
func emulatorPorts(c *server.Config) {
	for _, addr := range []string{c.NoSQLAddr, c.AdminAddr} {
		if host, _, err := net.SplitHostPort(addr); err == nil && c.AdminAddr != server.Off {
			c.PageAddr = net.JoinHostPort(host, emulatorPage)
			return
		}
	}
}

// emulatorPage is the port of the newer emulator's web page.
const emulatorPage = "1234"

type serveCmd struct {
	Data   string
	Memory bool
	Engine string
	serving
	MinFree    size
	Stall      time.Duration
	Upgrade    bool
	Durability string
}

func (s *serveCmd) command(engines []server.EngineKind) *cobra.Command {
	cmd := &cobra.Command{Use: "serve", Short: "Serve the APIs.", Args: noArguments,
		RunE: runs(func() error { return s.run(engines) })}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch {
		case s.Data != "" && s.Memory:
			return errors.New("--data and --memory can't be used together")
		case s.Engine != "" && s.Memory:
			return errors.New("--engine and --memory can't be used together")
		}
		return nil
	}
	f := cmd.Flags()
	f.StringVar(&s.Data, "data", "", "`DIR` of the store (default ./data).")
	f.BoolVar(&s.Memory, "memory", false, "Keep everything in memory.")
	f.StringVar(&s.Engine, "engine", "", "`ADDRESS` of a store that several servers share, such as "+
		"tikv://pd:2379/main. --data is optional then: it keeps the certificate.")
	s.serving.flags(f)
	f.Var(&s.MinFree, "min-free", "Room that new data leaves on the disk, a `SIZE` such as 16MiB or 2GiB; by default "+
		"256MiB, or 5 % of a disk below 5 GiB.")
	f.DurationVar(&s.Stall, "stall", 10*time.Second, "How long the disk may take before writes are refused; after six "+
		"times as long the process ends.")
	f.BoolVar(&s.Upgrade, "upgrade", false, "Give a store of an older version the present format. No older version "+
		"can open it then: copy its directory first.")
	f.Var(oneOf(&s.Durability, "sync", "sync", "relaxed"), "durability", "sync: on disk before the answer; relaxed: a "+
		"crash may lose the last moments.")
	return cmd
}

func (s *serveCmd) run(engines []server.EngineKind) error {
	c, err := s.settings(engines)
	if err != nil {
		return err
	}
	return serve(c, nil)
}

// settings returns the configuration of the flags.
func (s *serveCmd) settings(engines []server.EngineKind) (server.Config, error) {
	c, err := s.config()
	if err != nil {
		return c, err
	}
	if s.Data != "" || s.Engine != "" {
		c.Data = s.Data
	}
	c.Engine, c.Engines = s.Engine, engines
	c.Memory, c.Durability = s.Memory, s.Durability
	c.MinFree, c.Stall, c.Upgrade = int64(s.MinFree), s.Stall, s.Upgrade
	return c, nil
}
