package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// emulatorCmd serves as the newer emulator of the service does, whose image test containers and hosting kits start:
// with its ports, its arguments and its variables. It is what the container image runs. In addition it takes the
// variables, the arguments and the folder of MongoDB's image. Everything else is as in serve.
//
// Example: "orrery emulator --protocol https" in a container is reached at the published ports 8081 (NoSQL), 1234 (web
// page) and 8080 (/alive, /ready, /status), with the emulator's well-known key.
type emulatorCmd struct {
	serveCmd
	Listen string

	// The emulator's arguments. A port serves HTTP and HTTPS at the same time, so the protocols are only checked.
	Port, ExplorerPort, HealthPort int
	Protocol, ExplorerProtocol     string
	CertPath, CertSecret           string
	DataPath                       string
	EnableExplorer                 bool
	EnableOTLP, EnableConsole      bool
	EnableTelemetry                bool
	PublicEndpoint                 string

	MongoPort int
}

// emulatorVariables are the emulator's variables, by the flags that they set.
var emulatorVariables = map[string]string{
	"port": "PORT", "explorer-port": "EXPLORER_PORT", "health-port": "HEALTH_PORT", "protocol": "PROTOCOL",
	"explorer-protocol": "EXPLORER_PROTOCOL", "key-file": "KEY_FILE", "data-path": "DATA_PATH",
	"cert-path": "CERT_PATH", "cert-secret": "CERT_SECRET", "enable-explorer": "ENABLE_EXPLORER",
	"log-level": "LOG_LEVEL", "public-endpoint": "GATEWAY_PUBLIC_ENDPOINT",
	"enable-otlp": "ENABLE_OTLP_EXPORTER", "enable-console": "ENABLE_CONSOLE_EXPORTER",
	"enable-telemetry": "ENABLE_TELEMETRY",
}

// mongoInitFolder is the folder of initial data in MongoDB's image.
const mongoInitFolder = "/docker-entrypoint-initdb.d"

func (e *emulatorCmd) command(engines []server.EngineKind) *cobra.Command {
	cmd := e.serveCmd.command(engines)
	cmd.Use, cmd.Short = "emulator", "Serve with the ports, arguments and variables of the newer emulator."
	serveFlags := cmd.PreRunE
	f := cmd.Flags()
	// The emulator has a level of its own for nothing, and one for everything.
	f.Lookup("log-level").Value = &levelAlias{f.Lookup("log-level").Value}
	f.StringVar(&e.Listen, "listen", "127.0.0.1", "`HOST` of all ports; 0.0.0.0 in a container.")
	f.IntVar(&e.Port, "port", 8081, "Port of the NoSQL API.")
	f.IntVar(&e.ExplorerPort, "explorer-port", 1234, "Port of the web page.")
	f.IntVar(&e.HealthPort, "health-port", 8080, "Port of /alive, /ready and /status.")
	f.IntVar(&e.MongoPort, "mongo-port", 10255, "Port of the MongoDB API; 27017 where the variables or the folder of "+
		"MongoDB's image are used.")
	protocols := []string{"http", "https", "https-insecure"}
	f.Var(oneOf(&e.Protocol, "http", protocols...), "protocol", "http, https or https-insecure: all are served in any "+
		"case.")
	f.Var(oneOf(&e.ExplorerProtocol, "http", protocols...), "explorer-protocol", "The same for the web page.")
	f.StringVar(&e.DataPath, "data-path", "", "`DIR` of the store; without it everything is in memory.")
	f.StringVar(&e.CertPath, "cert-path", "", "`FILE` with certificate and key in PEM.")
	f.StringVar(&e.CertSecret, "cert-secret", "", "Password of the certificate: refused, since only PEM is read.")
	f.BoolVar(&e.EnableExplorer, "enable-explorer", true, "Serve the web page.")
	f.StringVar(&e.PublicEndpoint, "public-endpoint", "", "`HOST` under which clients reach the server. Clients are "+
		"told the name that they have asked for in any case.")
	f.BoolVar(&e.EnableOTLP, "enable-otlp", false, "Accepted, without effect.")
	f.BoolVar(&e.EnableConsole, "enable-console", false, "Accepted, without effect.")
	f.BoolVar(&e.EnableTelemetry, "enable-telemetry", false, "Accepted, without effect: nothing is ever sent.")
	e.asMongod(f)
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := e.fromEmulatorVariables(cmd.Flags()); err != nil {
			return err
		}
		return serveFlags(cmd, args)
	}
	cmd.RunE = runs(func() error { return e.run(cmd.Flags(), engines) })
	return cmd
}

// fromEmulatorVariables sets the flags that are not given to the emulator's variables.
func (e *emulatorCmd) fromEmulatorVariables(f *pflag.FlagSet) error {
	for name, variable := range emulatorVariables {
		text, ok := os.LookupEnv(variable)
		if !ok || text == "" || f.Changed(name) {
			continue
		}
		if err := f.Set(name, text); err != nil {
			return fmt.Errorf("variable %s: %w", variable, err)
		}
	}
	return nil
}

// translate returns the configuration of the arguments and variables.
func (e *emulatorCmd) translate(f *pflag.FlagSet, engines []server.EngineKind) (c server.Config, err error) {
	if e.CertSecret != "" {
		return c, errors.New("--cert-secret: certificates are read as PEM, which has no password")
	}
	if e.CertPath != "" {
		e.TLSCert, e.TLSKey = e.CertPath, e.CertPath
	}
	if e.DataPath != "" && e.Data == "" {
		e.Data = e.DataPath
	}
	if e.Data == "" && e.Engine == "" {
		e.Memory = true
	}
	if c, err = e.settings(engines); err != nil {
		return c, err
	}
	e.address(f, &c)
	if err := e.likeMongo(f, &c); err != nil {
		return c, err
	}
	if e.PublicEndpoint != "" {
		host := e.PublicEndpoint
		if _, rest, ok := strings.Cut(host, "://"); ok {
			host = rest
		}
		if h, _, err := net.SplitHostPort(strings.TrimSuffix(host, "/")); err == nil {
			host = h
		}
		c.PublicHosts = append(c.PublicHosts, host)
	}
	return c, nil
}

func (e *emulatorCmd) run(f *pflag.FlagSet, engines []server.EngineKind) error {
	c, err := e.translate(f, engines)
	if err != nil {
		return err
	}
	return serve(c, func(_ context.Context, s *server.Server) error {
		if c.OwnNetworks && c.Key == server.WellKnownKey {
			fmt.Println("WARNING: the key is the emulator's well-known one, so only clients of this container's " +
				"networks are served. Give ORRERY_KEY or --key-file to serve others.")
		}
		go func() { // test containers of earlier versions wait for this line of the emulator
			if s.WaitReady(context.Background()) == nil {
				fmt.Println("System is now fully ready to accept requests")
			}
		}()
		return nil
	})
}

// address sets the addresses that are not given.
func (e *emulatorCmd) address(f *pflag.FlagSet, c *server.Config) {
	at := func(port int) string { return net.JoinHostPort(e.Listen, strconv.Itoa(port)) }
	for _, a := range []struct {
		flag string
		addr *string
		port int
	}{{"nosql-addr", &c.NoSQLAddr, e.Port}, {"gremlin-addr", &c.GremlinAddr, 8901},
		{"table-addr", &c.TableAddr, 8902}, {"mongo-addr", &c.MongoAddr, e.MongoPort},
		{"admin-addr", &c.AdminAddr, e.HealthPort}} {
		if !f.Changed(a.flag) {
			*a.addr = at(a.port)
		}
	}
	if c.PageAddr = at(e.ExplorerPort); !e.EnableExplorer {
		c.PageAddr, c.Explorer.Mode = server.Off, "off"
	}
	if c.OwnNetworks && !f.Changed("explorer") && e.EnableExplorer {
		c.Explorer.Mode = "on" // as the emulator's: who is let in knows the well-known key
	}
}

// likeMongo applies what a container of MongoDB's image is given.
func (e *emulatorCmd) likeMongo(f *pflag.FlagSet, c *server.Config) error {
	user, password := os.Getenv("MONGO_INITDB_ROOT_USERNAME"), os.Getenv("MONGO_INITDB_ROOT_PASSWORD")
	for name, value := range map[string]*string{"MONGO_INITDB_ROOT_USERNAME_FILE": &user,
		"MONGO_INITDB_ROOT_PASSWORD_FILE": &password} {
		if file := os.Getenv(name); file != "" {
			raw, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("variable %s: %w", name, err)
			}
			*value = strings.TrimSpace(string(raw))
		}
	}
	if (user == "") != (password == "") {
		return errors.New("MONGO_INITDB_ROOT_USERNAME and MONGO_INITDB_ROOT_PASSWORD: want both, or none")
	}
	files, err := os.ReadDir(mongoInitFolder)
	folder := err == nil && slices.ContainsFunc(files, func(f os.DirEntry) bool { return !f.IsDir() })
	if user == "" && !folder && !f.Changed("replSet") && !f.Changed("bind_ip_all") {
		return nil
	}
	c.MongoUser, c.MongoPassword, c.InitDatabase = user, password, os.Getenv("MONGO_INITDB_DATABASE")
	if folder && c.InitDir == "" {
		c.InitDir = mongoInitFolder
	}
	if !f.Changed("mongo-port") && !f.Changed("mongo-addr") {
		c.MongoAddr = net.JoinHostPort(e.Listen, "27017")
	}
	return nil
}

// levelAlias is the flag of the log's level with the emulator's words.
type levelAlias struct{ pflag.Value }

// Set implements pflag.Value.
func (l *levelAlias) Set(text string) error {
	switch text {
	case "quiet":
		text = "error"
	case "trace":
		text = "debug"
	}
	return l.Value.Set(text)
}
