// Command orrery serves Azure Cosmos DB's four APIs (NoSQL, Table, Gremlin, MongoDB) over one store.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// cli is the contract of the command line. Every flag is also a variable: --nosql-addr is ORRERY_NOSQL_ADDR.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Serve the APIs."`
	Demo    demoCmd    `cmd:"" help:"Serve sample data from memory."`
	Check   checkCmd   `cmd:"" help:"Verify a store that no server has open."`
	Repair  repairCmd  `cmd:"" help:"Save what can be read of a damaged store into a new directory."`
	Query   queryCmd   `cmd:"" help:"Run a NoSQL query, and explain it."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// serving are the flags that serve and demo share.
type serving struct {
	NosqlAddr     string   `name:"nosql-addr" default:"127.0.0.1:8081" help:"Address of the NoSQL API (HTTP and HTTPS), or off."`
	GremlinAddr   string   `default:"127.0.0.1:8901" help:"Address of the Gremlin API (ws and wss), or off."`
	TableAddr     string   `default:"127.0.0.1:8902" help:"Address of the Table API, or off."`
	MongoAddr     string   `default:"127.0.0.1:10255" help:"Address of the MongoDB API, or off."`
	AdminAddr     string   `default:"127.0.0.1:8080" help:"Address of health, metrics and connection strings, or off."`
	Account       string   `default:"localhost" help:"Account name."`
	Key           string   `default:"${key}" help:"Account key, base64. The default is the emulator's well-known key."`
	Auth          bool     `default:"true" negatable:"" help:"Ask for credentials (--auth=false: no API does)."`
	Consistency   string   `default:"Session" enum:"Strong,BoundedStaleness,Session,ConsistentPrefix,Eventual" help:"Consistency of the account: requests for a stronger one are refused."`
	Strict        []string `default:"nosql" help:"APIs that refuse what the service refuses (nosql), or none: answer everything."`
	Insecure      bool     `help:"Allow --auth=false and the well-known key on addresses that other machines reach."`
	PublicHost    []string `placeholder:"NAME" help:"Name under which clients may ask for a server with --auth=false, beside localhost and this machine's. Repeatable."`
	GremlinSource []string `placeholder:"NAME=DATABASE/GRAPH" help:"Graph that Gremlin clients choose by alias; made when absent. Repeatable."`
	CacheMB       int      `name:"cache-mb" default:"144" help:"Cache of the store in MiB, for items and blocks."`
}

func (f *serving) config() (server.Config, error) {
	c := server.Default()
	sources, err := server.ParseSources(f.GremlinSource)
	if err != nil {
		return c, err
	}
	c.NoSQLAddr, c.GremlinAddr, c.TableAddr, c.MongoAddr, c.AdminAddr = f.NosqlAddr, f.GremlinAddr, f.TableAddr, f.MongoAddr, f.AdminAddr
	c.Account, c.Key, c.Auth, c.Insecure = f.Account, f.Key, f.Auth, f.Insecure
	if c.Strict, err = server.ParseStrict(f.Strict); err != nil {
		return c, err
	}
	c.Consistency, c.PublicHosts = f.Consistency, f.PublicHost
	c.GremlinSources, c.CacheMB, c.Version = sources, f.CacheMB, version()
	c.Logger = slog.Default()
	return c, nil
}

type serveCmd struct {
	Data   string `xor:"where" placeholder:"DIR" help:"Directory of the store (default ./data)."`
	Memory bool   `xor:"where" help:"Keep everything in memory."`
	serving
	Durability string `default:"sync" enum:"sync,relaxed" help:"sync: on disk before the answer; relaxed: a crash may lose the last moments."`
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
	return serve(c, nil)
}

type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run() error {
	fmt.Println("orrery", version())
	return nil
}

// version is the module's version, or the commit of a build from a checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	rev, dirty := "devel", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			rev = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return rev + dirty
}

// stopGrace is how long requests in flight may take after SIGTERM; with closing the store, the process ends within 5 s.
const (
	stopGrace = 3 * time.Second
	stopLimit = 4500 * time.Millisecond
)

// serve runs until SIGTERM or SIGINT. after, when given, runs once the server answers.
func serve(c server.Config, after func(context.Context, *server.Server) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	tuneGC()
	s, err := server.Start(c)
	if err != nil {
		return err
	}
	if after != nil {
		err = after(ctx, s)
	}
	if err == nil {
		if err = s.Banner(os.Stdout); err == nil {
			select {
			case <-ctx.Done():
				slog.Info("Stopping")
			case err = <-s.Failed():
			}
		}
	}
	stop() // a second signal ends the process at once
	end := time.AfterFunc(stopLimit, func() {
		slog.Warn("Some requests did not end in time")
		os.Exit(0)
	})
	defer end.Stop()
	grace, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	return errors.Join(err, s.Stop(grace))
}

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run parses args and runs the command; it returns the exit code: 0 done, 1 failed, 2 used wrongly.
func run(args []string, out, errOut io.Writer) int {
	var c cli
	exit := -1
	p, err := kong.New(&c,
		kong.Name("orrery"),
		kong.Description("Azure Cosmos DB's four APIs over one store, in one binary. Every flag is also a variable: --nosql-addr is ORRERY_NOSQL_ADDR."),
		kong.DefaultEnvars("ORRERY"),
		kong.Vars{"key": server.WellKnownKey},
		kong.Writers(out, errOut),
		kong.Exit(func(code int) { exit = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		panic(err) // the struct tags above are wrong
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err := p.Parse(args)
	if exit >= 0 { // help was printed
		return exit
	}
	if err != nil {
		fmt.Fprintln(errOut, "orrery:", err)
		return 2
	}
	if err := ctx.Run(&streams{out, errOut}); err != nil {
		fmt.Fprintln(errOut, "orrery:", strings.ReplaceAll(err.Error(), "\n", "\norrery: "))
		return 1
	}
	return 0
}
