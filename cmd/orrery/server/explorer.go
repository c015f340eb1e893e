package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/orrerydb/orrery/cmd/orrery/explorer"
)

// The words of --explorer.
const (
	explorerAuto     = "auto" // everything on a loopback address, else read-only
	explorerOn       = "on"
	explorerReadOnly = "read-only"
	explorerOff      = "off"
)

// ExplorerFlags are the flags of the web page.
type ExplorerFlags struct {
	Mode    string // what the page may do; "" = auto
	KeyFile string // a file with a second key, with which the page is read-only; "" = none
}

// Flags adds the flags.
func (x *ExplorerFlags) Flags(f *pflag.FlagSet) {
	f.StringVar(&x.Mode, "explorer", explorerAuto, "What the web page may do: on, read-only, off, or auto: on where "+
		"only this machine reaches it, and read-only elsewhere.")
	f.StringVar(&x.KeyFile, "explorer-key-file", "", "`FILE` with a second key: whoever opens the web page with it "+
		"can only read.")
}

// validate checks the flags. Its errors are written for the user and name the flag.
func (x *ExplorerFlags) validate() error {
	switch x.Mode {
	case "", explorerAuto, explorerOn, explorerReadOnly, explorerOff:
		return nil
	}
	return fmt.Errorf("--explorer %q: want %s, %s, %s or %s", x.Mode, explorerAuto, explorerOn, explorerReadOnly,
		explorerOff)
}

// mode returns what the page may do on a listener. local says that only this machine reaches it.
func (x *ExplorerFlags) mode(local bool) explorer.Mode {
	switch {
	case x.Mode == explorerOff:
		return explorer.Off
	case x.Mode == explorerOn, x.Mode != explorerReadOnly && local:
		return explorer.Full
	}
	return explorer.ReadOnly
}

// readKey returns the second key.
func (x *ExplorerFlags) readKey(key string) (string, error) {
	if x.KeyFile == "" {
		return "", nil
	}
	raw, err := os.ReadFile(x.KeyFile)
	if err != nil {
		return "", fmt.Errorf("--explorer-key-file can't be read: %w", err)
	}
	read := strings.TrimSpace(string(raw))
	switch read {
	case "":
		return "", fmt.Errorf("--explorer-key-file %s: the file is empty", x.KeyFile)
	case key:
		return "", errors.New("--explorer-key-file: this is the account's key, which allows everything")
	}
	return read, nil
}

// makePages makes the web page for the listeners that serve it: those of the admin port and of the NoSQL API.
func (s *Server) makePages() error {
	readKey, err := s.cfg.Explorer.readKey(s.cfg.Key)
	if err != nil {
		return err
	}
	sessions := explorer.NewSessions(wall)
	s.pages = map[string]*explorer.Explorer{}
	for _, a := range s.cfg.addrs() {
		if a.addr == Off || a.name != Admin && a.name != NoSQL {
			continue
		}
		host, _, err := net.SplitHostPort(a.addr)
		o := explorer.Options{
			Mode: s.cfg.Explorer.mode(err == nil && loopback(host)), Auth: s.cfg.Auth, Account: s.cfg.Account,
			Key: s.cfg.Key, ReadKey: readKey, Public: s.keyIsPublic(), Version: s.cfg.Version, Clock: wall,
			NoSQL: s.handlers[NoSQL], Table: s.handlers[Table], Gremlin: s.handlers[Gremlin], Admin: s.handlers[Admin],
		}
		if s.Addr(Mongo) != "" {
			o.Mongo = func(ctx context.Context) (explorer.MongoConn, error) {
				c, err := s.dialMongo(ctx)
				if err != nil {
					return nil, err // not c: a nil *mongoConn isn't a nil interface
				}
				return c, nil
			}
		}
		if !s.cfg.Insecure && (!s.cfg.Auth || s.keyIsPublic()) {
			names := s.hostNames()
			o.Names = func(host string) bool { return ownHost(host, names) }
		}
		s.pages[a.name] = explorer.New(o, sessions)
	}
	return nil
}

// withPage serves the web page, and passes all other requests to h. The page of the admin port is at its root too.
func (s *Server) withPage(door string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := s.pages[door]
		switch {
		case page == nil || r.URL.Path == certificatePath:
		case explorer.Handles(r):
			page.ServeHTTP(w, r)
			return
		case door == Admin && r.URL.Path == "/" && s.cfg.Explorer.Mode != explorerOff:
			w.Header().Set("Location", strings.TrimPrefix(explorer.Prefix, "/"))
			w.WriteHeader(http.StatusFound)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// closePages closes the connections of the web page.
func (s *Server) closePages() {
	for _, p := range s.pages {
		p.Close()
	}
}
