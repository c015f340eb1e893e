package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	doors "github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// connectFile is the file in the data directory with the connection strings of the running server, key included: a user
// who can read the store's files may have its key. It is removed when the server stops.
const connectFile = "connect.json"

// keepConnections writes the file. If that fails, the server runs nevertheless.
func (s *Server) keepConnections() {
	text, err := json.MarshalIndent(s.Connections(true), "", "  ")
	for _, file := range s.cfg.connectFiles() {
		if err == nil {
			err = replaceFile(file, append(text, '\n'))
		}
	}
	if err != nil {
		s.log.Warn("The connection strings can't be kept for orrery connect", "error", err)
	}
}

// connectFiles returns the files with the connection strings.
func (c *Config) connectFiles() (files []string) {
	if c.directory() != "" {
		files = append(files, filepath.Join(c.Data, connectFile))
	}
	if c.ConnectFile != "" {
		files = append(files, c.ConnectFile)
	}
	return files
}

// replaceFile writes a file atomically, readable only by its owner.
func replaceFile(name string, content []byte) error {
	if err := os.Remove(name + ".new"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(name+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func (s *Server) forgetConnections() {
	for _, file := range s.cfg.connectFiles() {
		_ = os.Remove(file)
	}
}

// dialPatience is how long ReadConnections waits for a connection to the server, and AskForConnections for its reply.
const dialPatience = 2 * time.Second

// ReadConnections returns the connection strings of the server that serves a data directory.
func ReadConnections(data string) (*Connections, error) {
	raw, err := os.ReadFile(filepath.Join(data, connectFile))
	if errors.Is(err, os.ErrNotExist) {
		if _, err := storeIn(data); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("no server serves %s", data)
	}
	if err != nil {
		return nil, fmt.Errorf("the connection strings of %s can't be read: %w", data, err)
	}
	c := &Connections{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("the connection strings of %s are damaged: %w", data, err)
	}
	if len(c.Addresses) == 0 {
		return c, nil
	}
	conn, err := net.DialTimeout("tcp", c.Addresses[0], dialPatience)
	if err != nil {
		return nil, fmt.Errorf("no server serves %s: the last one was killed, and nothing answers at %s",
			data, c.Addresses[0])
	}
	return c, conn.Close()
}

// AskForConnections asks the server at an admin port for its connection strings. A server with a key of its own
// refuses: who may read its directory has them there.
func AskForConnections(ctx context.Context, admin string) (*Connections, error) {
	url := strings.TrimSuffix(admin, "/") + "/orrery/connect"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := doors.Client(dialPatience).Do(req)
	if err != nil {
		return nil, fmt.Errorf("no server answers at %s", admin)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server at %s answers %s: name its directory with --data", admin, res.Status)
	}
	c := &Connections{}
	if err := json.NewDecoder(res.Body).Decode(c); err != nil || c.Account == "" {
		return nil, fmt.Errorf("%s is not the admin port of Orrery", admin)
	}
	return c, nil
}
