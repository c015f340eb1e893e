package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// emulatorConfig returns the configuration of arguments and variables, as text.
func emulatorConfig(t *testing.T, args []string, variables map[string]string) (server.Config, error) {
	t.Helper()
	for name := range emulatorVariables {
		t.Setenv(emulatorVariables[name], "")
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
	var e emulatorCmd
	cmd := e.command(nil)
	if err := cmd.ParseFlags(args); err != nil {
		return server.Config{}, err
	}
	if err := fromVariables(cmd.Flags()); err != nil {
		return server.Config{}, err
	}
	if err := cmd.PreRunE(cmd, nil); err != nil {
		return server.Config{}, err
	}
	return e.translate(cmd.Flags(), nil)
}

// --emulator-ports serves the page at the emulator's port, on the host of the others.
func TestEmulatorPorts(t *testing.T) {
	for _, tc := range []struct{ args, page string }{
		{"", ""}, {"--emulator-ports", "127.0.0.1:1234"},
		{"--emulator-ports --nosql-addr 0.0.0.0:9000", "0.0.0.0:1234"},
		{"--emulator-ports --nosql-addr off --admin-addr [::1]:8080", "[::1]:1234"},
		{"--emulator-ports --admin-addr off", ""},
	} {
		var s serveCmd
		cmd := s.command(nil)
		if err := cmd.ParseFlags(strings.Fields(tc.args)); err != nil {
			t.Fatal(err)
		}
		c, err := s.settings(nil)
		if err != nil || c.PageAddr != tc.page {
			t.Errorf("%q: %q, %v", tc.args, c.PageAddr, err)
		}
		if d := server.Default(); tc.args == "--emulator-ports" && (c.NoSQLAddr != d.NoSQLAddr ||
			c.AdminAddr != "127.0.0.1:8080" || c.NoSQLAddr != "127.0.0.1:8081") {
			t.Errorf("%s, %s", c.NoSQLAddr, c.AdminAddr)
		}
	}
}

// The arguments and variables of the newer emulator and of MongoDB's image mean what they mean there.
func TestEmulatorContract(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name      string
		args      string
		variables map[string]string
		want      func(c *server.Config) bool
	}{
		{"nothing", "", nil, func(c *server.Config) bool {
			return c.NoSQLAddr == "127.0.0.1:8081" && c.PageAddr == "127.0.0.1:1234" &&
				c.AdminAddr == "127.0.0.1:8080" && c.MongoAddr == "127.0.0.1:10255" && c.Memory &&
				c.Key == server.WellKnownKey
		}},
		{"in a container", "", map[string]string{"ORRERY_LISTEN": "0.0.0.0", "ORRERY_OWN_NETWORKS": "true"},
			func(c *server.Config) bool {
				return c.NoSQLAddr == "0.0.0.0:8081" && c.OwnNetworks && c.Explorer.Mode == "on"
			}},
		{"protocol", "--protocol https --explorer-protocol https", nil, func(*server.Config) bool { return true }},
		{"protocol as variables", "", map[string]string{"PROTOCOL": "https-insecure", "EXPLORER_PROTOCOL": "http"},
			func(*server.Config) bool { return true }},
		{"ports", "--port 9000 --explorer-port 9001", map[string]string{"PORT": "7", "HEALTH_PORT": "9002"},
			func(c *server.Config) bool {
				return c.NoSQLAddr == "127.0.0.1:9000" && c.PageAddr == "127.0.0.1:9001" &&
					c.AdminAddr == "127.0.0.1:9002"
			}},
		{"no page", "", map[string]string{"ENABLE_EXPLORER": "false"}, func(c *server.Config) bool {
			return c.PageAddr == server.Off && c.Explorer.Mode == "off"
		}},
		{"data", "--data-path /data", nil, func(c *server.Config) bool { return c.Data == "/data" && !c.Memory }},
		{"public name", "", map[string]string{"GATEWAY_PUBLIC_ENDPOINT": "cosmosdb"},
			func(c *server.Config) bool { return c.PublicHosts[0] == "cosmosdb" }},
		{"public URL", "", map[string]string{"GATEWAY_PUBLIC_ENDPOINT": "https://cosmosdb:8081/"},
			func(c *server.Config) bool { return c.PublicHosts[0] == "cosmosdb" }},
		{"without effect", "--enable-otlp --enable-console --enable-telemetry=false --log-level quiet",
			map[string]string{"ENABLE_TELEMETRY": "true"}, func(*server.Config) bool { return true }},
		{"own flags win", "--nosql-addr 127.0.0.1:0 --table-addr off", nil, func(c *server.Config) bool {
			return c.NoSQLAddr == "127.0.0.1:0" && c.TableAddr == server.Off
		}},
		{"MongoDB's user", "", map[string]string{"MONGO_INITDB_ROOT_USERNAME": "root",
			"MONGO_INITDB_ROOT_PASSWORD": "p@ss"}, func(c *server.Config) bool {
			return c.MongoUser == "root" && c.MongoPassword == "p@ss" && c.MongoAddr == "127.0.0.1:27017"
		}},
		{"MongoDB's user from a file", "", map[string]string{"MONGO_INITDB_ROOT_USERNAME": "root",
			"MONGO_INITDB_ROOT_PASSWORD_FILE": password}, func(c *server.Config) bool {
			return c.MongoPassword == "from a file"
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := emulatorConfig(t, strings.Fields(tc.args), tc.variables)
			if err == nil {
				err = c.Validate()
			}
			if err != nil || !tc.want(&c) {
				t.Errorf("%v: nosql %s, page %s, admin %s, mongo %s %s, data %q, public %v", err, c.NoSQLAddr,
					c.PageAddr, c.AdminAddr, c.MongoAddr, c.MongoUser, c.Data, c.PublicHosts)
			}
		})
	}
	for _, tc := range []struct {
		args      string
		variables map[string]string
		want      string
	}{
		{"--protocol gopher", nil, "want one of"},
		{"", map[string]string{"PROTOCOL": "gopher"}, "variable PROTOCOL"},
		{"", map[string]string{"PORT": "x"}, "variable PORT"},
		{"--cert-secret x", nil, "PEM"},
		{"", map[string]string{"MONGO_INITDB_ROOT_USERNAME": "root"}, "want both"},
	} {
		if _, err := emulatorConfig(t, strings.Fields(tc.args), tc.variables); err == nil ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %v: %v, want %q", tc.args, tc.variables, err, tc.want)
		}
	}
}
