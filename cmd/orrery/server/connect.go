package server

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
)

// Connections has what clients need, one entry for each API that is served. It is the reply of /orrery/connect and the
// content of the banner.
type Connections struct {
	Account string       `json:"account"`
	Key     string       `json:"key,omitempty"`
	Auth    bool         `json:"auth"`
	Strict  []string     `json:"strict"` // APIs that refuse what the service refuses
	Data    string       `json:"data"`
	NoSQL   *NoSQLConn   `json:"nosql,omitempty"`
	Table   *TableConn   `json:"table,omitempty"`
	Gremlin *GremlinConn `json:"gremlin,omitempty"`
	Mongo   *MongoConn   `json:"mongo,omitempty"`
	Admin   *AdminConn   `json:"admin,omitempty"`

	Addresses []string `json:"addresses"` // of all ports, for a client on this machine
}

// NoSQLConn is for the NoSQL SDKs.
type NoSQLConn struct {
	Endpoint         string `json:"endpoint"`
	SecureEndpoint   string `json:"secureEndpoint"`
	Certificate      string `json:"certificate"`
	ConnectionString string `json:"connectionString"`
}

// TableConn is for the Table SDKs.
type TableConn struct {
	Endpoint         string `json:"endpoint"`
	ConnectionString string `json:"connectionString"`
}

// GremlinConn is for TinkerPop drivers. Username is for choosing a graph in the service's way. Other drivers choose one
// of Sources by alias and log in with the account name.
type GremlinConn struct {
	Endpoint       string            `json:"endpoint"`
	SecureEndpoint string            `json:"secureEndpoint"`
	Username       string            `json:"username"`
	Sources        map[string]string `json:"sources"`
}

// MongoConn is for MongoDB drivers.
type MongoConn struct {
	ConnectionString string `json:"connectionString"`
}

// AdminConn is the admin port.
type AdminConn struct {
	Endpoint string `json:"endpoint"`
	Page     string `json:"page,omitempty"` // the web page
}

// hidden replaces a key that isn't shown.
const hidden = "<key>"

// Connections returns the connection strings. Without secrets placeholders replace the key and the password of the
// MongoDB API.
func (s *Server) Connections(secrets bool) Connections { return s.connections(secrets, secrets) }

// publicConnections returns the connection strings that everybody may see: with the well-known key, but not with a
// password that the MongoDB API has of its own.
func (s *Server) publicConnections() Connections {
	_, password := s.cfg.mongoLogin()
	return s.connections(s.keyIsPublic(), password == WellKnownKey)
}

func (s *Server) connections(showKey, showPassword bool) Connections {
	key := s.cfg.Key
	if !showKey {
		key = hidden
	}
	c := Connections{Account: s.cfg.Account, Key: key, Auth: s.cfg.Auth, Strict: s.cfg.Strict,
		Data: s.cfg.place()}
	if c.Strict == nil {
		c.Strict = []string{}
	}
	if a := s.dial(NoSQL); a != "" {
		c.NoSQL = &NoSQLConn{
			Endpoint:         "http://" + a + "/",
			SecureEndpoint:   "https://" + a + "/",
			Certificate:      "http://" + a + certificatePath,
			ConnectionString: fmt.Sprintf("AccountEndpoint=http://%s/;AccountKey=%s;", a, key),
		}
	}
	if a := s.dial(Table); a != "" {
		ep := fmt.Sprintf("http://%s/%s", a, s.cfg.Account)
		c.Table = &TableConn{
			Endpoint: ep,
			ConnectionString: fmt.Sprintf(
				"DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;TableEndpoint=%s;",
				s.cfg.Account, key, ep),
		}
	}
	if a := s.dial(Gremlin); a != "" {
		c.Gremlin = &GremlinConn{
			Endpoint:       "ws://" + a + "/gremlin",
			SecureEndpoint: "wss://" + a + "/gremlin",
			Username:       "/dbs/<db>/colls/<graph>",
			Sources:        s.sources(),
		}
	}
	if a := s.dial(Mongo); a != "" {
		u := url.URL{Scheme: "mongodb", Host: a, Path: "/"}
		if s.cfg.Auth {
			// The placeholder isn't escaped, so that it stays readable.
			name, password := s.cfg.mongoLogin()
			user, pass := url.PathEscape(name), hidden
			if showPassword {
				pass = url.QueryEscape(password)
			}
			c.Mongo = &MongoConn{
				ConnectionString: fmt.Sprintf("mongodb://%s:%s@%s/?directConnection=true", user, pass, a)}
		} else {
			u.RawQuery = "directConnection=true"
			c.Mongo = &MongoConn{ConnectionString: u.String()}
		}
	}
	if a := s.dial(Admin); a != "" {
		c.Admin = &AdminConn{Endpoint: "http://" + a + "/"}
		if s.cfg.Explorer.Mode != explorerOff {
			c.Admin.Page = c.Admin.Endpoint
		}
	}
	for _, b := range s.bound {
		c.Addresses = append(c.Addresses, s.dial(b.name))
	}
	return c
}

// sources returns the configured traversal sources and g, which always exists.
func (s *Server) sources() map[string]string {
	out := map[string]string{"g": "graphs/g"}
	for k, v := range s.cfg.GremlinSources {
		out[k] = v
	}
	return out
}

// dial returns a door's address for a client on this machine.
func (s *Server) dial(name string) string {
	a := s.Addr(name)
	host, port, err := net.SplitHostPort(a)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && (ip.IsUnspecified() || ip.Equal(net.IPv4(127, 0, 0, 1))) {
		host = "localhost"
		if ip != nil && !ip.IsUnspecified() {
			host = "127.0.0.1"
		}
	}
	return net.JoinHostPort(host, port)
}

// strictness says which APIs refuse what the service refuses, and how to change it.
func (s *Server) strictness() string {
	if len(s.cfg.Strict) == 0 {
		return "none: what the service refuses is answered"
	}
	return strings.Join(s.cfg.Strict, ",") +
		": refuses what the service refuses (--strict none answers it)"
}

// Banner writes the connection strings and a few hints, aligned. Standard output often ends up in logs, so the banner
// contains only the well-known key.
func (s *Server) Banner(w io.Writer) error {
	c := s.publicConnections()
	if _, err := fmt.Fprintf(w, "Orrery %s\n", s.cfg.Version); err != nil {
		return err
	}
	if err := c.Write(w, s.keyRow(), s.strictness()); err != nil || !s.demo {
		return err
	}
	return s.demoHints(w, os.Args[0], c)
}

// keyIsPublic reports whether the key is the well-known one.
func (s *Server) keyIsPublic() bool { return s.cfg.Key == WellKnownKey }

// keyRow returns the banner's line about the key.
func (s *Server) keyRow() string {
	switch {
	case !s.cfg.Auth:
		return "not asked for (--auth=false)"
	case s.keyIsPublic():
		return s.cfg.Key
	case s.cfg.directory() == "":
		return "the one that was given"
	}
	return "orrery connect --data " + s.cfg.Data
}

// Write writes the connection strings, aligned, with the lines about the key and about strictness.
func (c *Connections) Write(w io.Writer, key, strict string) error {
	var rows [][2]string
	add := func(k, v string) { rows = append(rows, [2]string{k, v}) }
	if c.NoSQL != nil {
		add("NoSQL", c.NoSQL.ConnectionString)
		add("", c.NoSQL.SecureEndpoint+"  (certificate: "+c.NoSQL.Certificate+")")
	}
	if c.Table != nil {
		add("Table", c.Table.ConnectionString)
	}
	if c.Gremlin != nil {
		add("Gremlin", fmt.Sprintf("%s  user %s or %s", c.Gremlin.Endpoint, c.Gremlin.Username, c.Account))
	}
	if c.Mongo != nil {
		add("Mongo", c.Mongo.ConnectionString)
	}
	add("Key", key)
	if c.Admin != nil && c.Admin.Page != "" {
		add("Page", c.Admin.Page)
	}
	if c.Admin != nil {
		add("Admin", c.Admin.Endpoint+"{alive,ready,status,metrics,orrery/connect}")
	}
	if c.NoSQL != nil && strict != "" {
		add("Strict", strict)
	}
	add("Data", c.Data)
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, r[0], r[1])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
