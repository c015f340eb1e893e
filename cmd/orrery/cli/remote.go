package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// remote are the flags that name a running server.
type remote struct {
	Data, Endpoint, MongoEndpoint, TableEndpoint, GremlinEndpoint, AdminEndpoint, Account, Key, Profile string
}

func (r *remote) flags(f *pflag.FlagSet) {
	f.StringVar(&r.Data, "data", "", "Data `DIR` of the server, which says where it is and its key; without any of "+
		"these flags ./data is looked at, and then the default addresses.")
	f.StringVar(&r.Profile, "profile", "", "`NAME` of a server in the file of profiles.")
	urlVar(f, &r.Endpoint, "endpoint", "", "`URL` of the server's NoSQL API.")
	f.StringVar(&r.MongoEndpoint, "mongo-endpoint", "", "`HOST:PORT` of its MongoDB API.")
	urlVar(f, &r.TableEndpoint, "table-endpoint", "", "`URL` of its Table API.")
	urlVar(f, &r.GremlinEndpoint, "gremlin-endpoint", "", "`URL` of its Gremlin API, such as "+
		"ws://127.0.0.1:8901/gremlin.")
	f.StringVar(&r.Account, "account", "localhost", "Account name.")
	f.StringVar(&r.Key, "key", "", "Where the account key is: `env:NAME or file:PATH`. The default is the emulator's "+
		"well-known key.")
}

// server returns the server that the flags name.
func (r *remote) server() (*door.Server, error) {
	key := r.Key
	explicit := r.Endpoint+r.MongoEndpoint+r.TableEndpoint+r.GremlinEndpoint+r.AdminEndpoint != ""
	switch {
	case r.Profile != "" && (explicit || r.Data != ""):
		return nil, errors.New("--profile can't be used with --data or an endpoint")
	case r.Profile != "":
		return profile(r.Profile)
	case r.Data != "" && explicit:
		return nil, errors.New("--data and an endpoint can't be used together")
	case explicit:
		if key == "" {
			key = server.WellKnownKey
		}
		return &door.Server{NoSQL: r.Endpoint, Table: r.TableEndpoint, Mongo: r.MongoEndpoint,
			Gremlin: r.GremlinEndpoint, Admin: r.AdminEndpoint, Account: r.Account, Key: key}, nil
	}
	dir := r.Data
	if dir == "" {
		dir = "data"
	}
	conns, err := server.ReadConnections(dir)
	if err == nil {
		return connected(conns, key)
	}
	if r.Data != "" {
		return nil, err
	}
	if key == "" {
		key = server.WellKnownKey
	}
	d := server.Default()
	return &door.Server{NoSQL: "http://" + d.NoSQLAddr, Table: "http://" + d.TableAddr + "/" + r.Account,
		Mongo: d.MongoAddr, Gremlin: "ws://" + d.GremlinAddr + "/gremlin", Admin: "http://" + d.AdminAddr,
		Account: r.Account, Key: key}, nil
}

// nosqlServer returns the address and the key of a NoSQL API: of this endpoint, or if it is "" of the server of ./data,
// or of the default address. A key that was given is used in any case.
func (f *keyFlags) nosqlServer(endpoint string) (address, key string, err error) {
	key, err = f.key()
	if err != nil || endpoint != "" {
		return endpoint, key, err
	}
	r := remote{Account: "localhost"}
	if key != server.WellKnownKey {
		r.Key = key
	}
	s, err := r.server()
	if err == nil && s.NoSQL == "" {
		err = errors.New("the server of ./data has no NoSQL API (--nosql-addr off)")
	}
	if err != nil {
		return "", "", err
	}
	return s.NoSQL, s.Key, nil
}

// connected returns the server that has left its connection strings.
func connected(c *server.Connections, key string) (*door.Server, error) {
	s := &door.Server{Account: c.Account, Key: key}
	if key == "" {
		s.Key = c.Key
	}
	if c.NoSQL != nil {
		s.NoSQL = c.NoSQL.Endpoint
	}
	if c.Table != nil {
		s.Table = c.Table.Endpoint
	}
	if c.Gremlin != nil {
		s.Gremlin = c.Gremlin.Endpoint
	}
	if c.Admin != nil {
		s.Admin = c.Admin.Endpoint
	}
	if c.Mongo != nil {
		u, err := url.Parse(c.Mongo.ConnectionString)
		if err != nil {
			return nil, errors.New("the connection string of MongoDB is malformed") // it has the key
		}
		s.Mongo = u.Host
		if key == "" && u.User != nil {
			s.MongoUser = u.User.Username()
			s.MongoPassword, _ = u.User.Password()
		}
	}
	return s, nil
}

// isReference reports whether a text says where a key is. No key in base64 has a colon.
func isReference(text string) bool {
	return strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:")
}

// resolveKey replaces the value of the flag --key by the key that it refers to. A key itself is accepted from variables
// and files of settings. Other users see the command line, so it may only have the well-known key.
func resolveKey(f *pflag.Flag, onLine bool) error {
	text := f.Value.String()
	if !isReference(text) && (!onLine || text == server.WellKnownKey) {
		return nil
	}
	key, err := door.Secret(text)
	if err != nil {
		return failure{fmt.Errorf("--key: %w", err)}
	}
	return f.Value.Set(key)
}

// profilesFile returns the name of the file of profiles.
func profilesFile() (string, error) {
	if name := os.Getenv("ORRERY_PROFILES"); name != "" {
		return name, nil
	}
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "orrery", "profiles.toml"), err
}

// profile reads a server from the file of profiles, which only its owner may read:
//
//	[staging]
//	endpoint = "http://staging:8081"
//	mongo-endpoint = "staging:10255"
//	key = "env:STAGING_KEY"            # or file:PATH, or the key itself
func profile(name string) (*door.Server, error) {
	path, err := profilesFile()
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("--profile %s: %w", name, err)
	}
	if !onlyOwner(info) {
		return nil, fmt.Errorf("%s can be read by others: chmod 600 it", path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]string{}
	if err := toml.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("%s is no TOML file of tables of texts", path) // the library's error shows the line
	}
	p, ok := all[name]
	if !ok {
		return nil, fmt.Errorf("%s has no profile %s", path, name)
	}
	s := &door.Server{Account: "localhost", Key: server.WellKnownKey}
	for k, v := range p {
		switch k {
		case "endpoint":
			s.NoSQL = v
		case "mongo-endpoint":
			s.Mongo = v
		case "table-endpoint":
			s.Table = v
		case "gremlin-endpoint":
			s.Gremlin = v
		case "admin-endpoint":
			s.Admin = v
		case "account":
			s.Account = v
		case "key":
			s.Key = v
			if isReference(v) {
				if s.Key, err = door.Secret(v); err != nil {
					return nil, fmt.Errorf("profile %s of %s: %w", name, path, err)
				}
			}
		default:
			return nil, fmt.Errorf("profile %s of %s: %s is not known", name, path, k)
		}
	}
	return s, nil
}
