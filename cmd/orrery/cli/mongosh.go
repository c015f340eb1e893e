package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// mongoshCmd is `orrery shell --lang mongo` with the arguments of MongoDB's shell, for test containers that execute
// that shell inside of the container. The binary does the same if it is called mongosh or mongo.
//
// Example: "mongosh shop --quiet --eval 'db.orders.countDocuments()'".
//
// Without a user it logs in as the container's own: that of MONGO_INITDB_ROOT_USERNAME, or the account.
type mongoshCmd struct {
	shellCmd
	Host, Port     string
	User, Password string
	Form           string // of --json
	Scripts        []string
}

func (c *mongoshCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "mongosh [ADDRESS|DATABASE] [FILE..]", Short: "As shell --lang mongo, with the " +
		"arguments of MongoDB's shell.",
		Args: func(_ *cobra.Command, args []string) error { c.Files = args; return nil },
		RunE: runs(func() error { return c.run(s) })}
	f := cmd.Flags()
	f.StringArrayVar(&c.Evals, "eval", nil, "Run this `TEXT`, and end. Repeatable.")
	f.StringArrayVarP(&c.Scripts, "file", "f", nil, "Run this `FILE`, and end. Repeatable.")
	f.StringVar(&c.Host, "host", "", "`HOST` of the server, or HOST:PORT.")
	f.StringVar(&c.Port, "port", "", "`PORT` of the server; without an address it is 27017, or else 10255.")
	f.StringVarP(&c.User, "username", "u", "", "`USER` to log in as.")
	f.StringVarP(&c.Password, "password", "p", "", "`PASSWORD`. Other users of this machine see the arguments of a "+
		"process.")
	f.StringVar(&c.Form, "json", "", "Print values as relaxed Extended JSON.")
	f.Lookup("json").NoOptDefVal = "relaxed"
	f.BoolVar(&c.Quiet, "quiet", false, "Begin without a greeting.")
	for _, name := range []string{"norc", "shell", "verbose", "retryWrites"} {
		f.Bool(name, false, "Accepted, without effect.")
	}
	for _, name := range []string{"authenticationDatabase", "authenticationMechanism"} {
		f.String(name, "", "Accepted, without effect: users belong to the account.")
	}
	return cmd
}

func (c *mongoshCmd) run(s *streams) error {
	c.Lang = "mongo"
	switch c.Form {
	case "":
	case "relaxed", "true":
		c.JSON = true
	default:
		return fmt.Errorf("--json=%s: only relaxed", c.Form)
	}
	c.srv = &door.Server{Account: "localhost", Key: cmp.Or(os.Getenv("ORRERY_KEY"), server.WellKnownKey)}
	c.srv.Account = cmp.Or(os.Getenv("ORRERY_ACCOUNT"), c.srv.Account)
	if len(c.Files) > 0 && !strings.HasSuffix(c.Files[0], ".js") {
		if err := c.address(c.Files[0]); err != nil {
			return err
		}
		c.Files = c.Files[1:]
	}
	c.Files = append(c.Files, c.Scripts...)
	c.User = cmp.Or(c.User, os.Getenv("MONGO_INITDB_ROOT_USERNAME"))
	c.Password = cmp.Or(c.Password, os.Getenv("MONGO_INITDB_ROOT_PASSWORD"))
	c.srv.MongoUser, c.srv.MongoPassword = c.User, c.Password
	if host, port, err := net.SplitHostPort(c.Host); err == nil {
		c.Host, c.Port = host, cmp.Or(c.Port, port)
	}
	c.srv.Mongo = net.JoinHostPort(cmp.Or(c.Host, "127.0.0.1"), c.port())
	return c.shellCmd.run(s, os.Stdin)
}

// port returns the port: where none is given, the first of the usual ones that answers.
func (c *mongoshCmd) port() string {
	usual := []string{"27017", "10255"}
	if c.Port != "" || c.Host != "" {
		return cmp.Or(c.Port, usual[0])
	}
	for _, port := range usual {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", port), time.Second)
		if err == nil {
			_ = conn.Close()
			return port
		}
	}
	return usual[0]
}

// address reads what names a server and a database: shop, host/shop, host:27018/shop or a connection string.
func (c *mongoshCmd) address(text string) error {
	if !strings.Contains(text, "://") {
		host, db, ok := strings.Cut(text, "/")
		switch {
		case ok:
			c.Host, c.DB = host, db
		case strings.ContainsAny(text, ".:"):
			c.Host = text
		default:
			c.DB = text
		}
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "mongodb" || strings.Contains(u.Host, ",") {
		return errors.New("the address isn't that of one server: want mongodb://HOST:PORT/DATABASE")
	}
	if n, err := strconv.Atoi(cmp.Or(u.Port(), "27017")); err != nil || n < 1 || n > 65535 {
		return errors.New("the port of the address is none")
	}
	c.Host, c.Port, c.DB = u.Hostname(), cmp.Or(c.Port, u.Port()), strings.TrimPrefix(u.Path, "/")
	if u.User != nil {
		c.User = cmp.Or(c.User, u.User.Username())
		password, _ := u.User.Password()
		c.Password = cmp.Or(c.Password, password)
	}
	return nil
}

// asMongosh returns the arguments of a process by the name of its program.
func asMongosh(args []string) []string {
	base := strings.ToLower(args[0][strings.LastIndexAny(args[0], `/\`)+1:])
	switch strings.TrimSuffix(base, ".exe") {
	case "mongosh", "mongo":
		return append([]string{"mongosh"}, args[1:]...)
	}
	return args[1:]
}
