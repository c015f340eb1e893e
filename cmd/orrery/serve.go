package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// serving are the flags that serve and demo share.
type serving struct {
	NosqlAddr   string `name:"nosql-addr" default:"127.0.0.1:8081" help:"Address of the NoSQL API (HTTP and HTTPS), or off."`
	GremlinAddr string `default:"127.0.0.1:8901" help:"Address of the Gremlin API (ws and wss), or off."`
	TableAddr   string `default:"127.0.0.1:8902" help:"Address of the Table API, or off."`
	MongoAddr   string `default:"127.0.0.1:10255" help:"Address of the MongoDB API, or off."`
	AdminAddr   string `default:"127.0.0.1:8080" help:"Address of health, metrics and connection strings, or off."`
	Account     string `default:"localhost" help:"Account name."`
	keyFlags
	Auth          bool     `default:"true" negatable:"" help:"Ask for credentials (--auth=false: no API does)."`
	Consistency   string   `default:"Session" enum:"Strong,BoundedStaleness,Session,ConsistentPrefix,Eventual" help:"Consistency of the account: requests for a stronger one are refused."`
	Strict        []string `default:"nosql" help:"APIs that refuse what the service refuses (nosql), or none: answer everything."`
	Insecure      bool     `help:"Allow --auth=false and the well-known key on addresses that other machines reach."`
	PublicHost    []string `placeholder:"NAME" help:"Name under which clients may ask where nobody is asked who they are, beside localhost and this machine's. Repeatable."`
	TLSCert       string   `name:"tls-cert" placeholder:"FILE" help:"Certificate in PEM, with those that vouch for it. Without it the server makes one."`
	TLSKey        string   `name:"tls-key" placeholder:"FILE" help:"Private key of --tls-cert, in PEM."`
	GremlinSource []string `placeholder:"NAME=DATABASE/GRAPH" help:"Graph that Gremlin clients choose by alias; made when absent. Repeatable."`
	server.Limits
	logging
}

// keyFlags are the two ways of giving a key.
type keyFlags struct {
	Key     string `default:"${key}" help:"Account key, base64. The default is the emulator's well-known key."`
	KeyFile string `placeholder:"FILE" help:"File with the account key: other users of this machine see the flags of a process."`
}

// key is the key of the file, or of the flag.
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
	LogLevel    string `default:"info" enum:"debug,info,warn,error" help:"Least level of the log: debug, info, warn or error."`
	LogFormat   string `default:"text" enum:"text,json" help:"Format of the log: text or json."`
	LogRequests bool   `help:"Log each request."`
	SlowMS      int    `name:"slow-ms" default:"1000" help:"Log requests that take so many milliseconds, with their plan; 0: none."`
}

// logger writes to w.
func (f *logging) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", f.LogLevel)
	}
	o := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return slog.New(slog.NewTextHandler(w, o)), nil
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
	c.Account, c.Auth, c.Insecure = f.Account, f.Auth, f.Insecure
	c.Consistency, c.PublicHosts = f.Consistency, f.PublicHost
	c.TLSCert, c.TLSKey = f.TLSCert, f.TLSKey
	c.Limits, c.Version = f.Limits, version()
	c.LogRequests, c.Slow = f.LogRequests, time.Duration(f.SlowMS)*time.Millisecond
	return c, nil
}

type serveCmd struct {
	Data   string `xor:"where" placeholder:"DIR" help:"Directory of the store (default ./data)."`
	Memory bool   `xor:"where" help:"Keep everything in memory."`
	serving
	MinFree    size          `default:"0" placeholder:"SIZE" help:"Room that new data leaves on the disk, such as 16MiB or 2GiB; by default 256MiB, or 5 % of a disk below 5 GiB."`
	Stall      time.Duration `default:"10s" help:"How long the disk may take before writes are refused; after six times as long the process ends."`
	Upgrade    bool          `help:"Give a store of an older version the present format. No older version can open it then: copy its directory first."`
	Durability string        `default:"sync" enum:"sync,relaxed" help:"sync: on disk before the answer; relaxed: a crash may lose the last moments."`
}

// Run implements the command.
func (s *serveCmd) Run() error {
	c, err := s.config()
	if err != nil {
		return err
	}
	if s.Data != "" {
		c.Data = s.Data
	}
	c.Memory, c.Durability = s.Memory, s.Durability
	c.MinFree, c.Stall, c.Upgrade = int64(s.MinFree), s.Stall, s.Upgrade
	return serve(c, nil)
}
