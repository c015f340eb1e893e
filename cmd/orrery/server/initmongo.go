package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/mongoshell"
	doors "github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

func init() { // here, and not in the table, because they refer to nothing of it
	initFiles[".js"] = initMongo
	initFiles[".sh"] = initShell
}

// initShell refuses scripts of a command shell, which MongoDB's image runs.
func initShell(context.Context, *Server, string, string) (int, error) {
	return 0, errors.New("scripts of a command shell aren't run: write it as .js, in the language of MongoDB's shell")
}

// initMongo runs a script in the language of MongoDB's shell, as MongoDB's image does. A store in a directory remembers
// the scripts that have run, because one that inserts can't be run twice.
func initMongo(ctx context.Context, s *Server, _, file string) (n int, err error) {
	if s.Addr(Mongo) == "" {
		return 0, errors.New("the MongoDB API is off")
	}
	name := filepath.Base(file)
	ran, err := s.scriptsRun()
	if err != nil {
		return 0, err
	}
	if slices.Contains(ran, name) {
		s.log.Info("A script of initial data has run for this store before", "file", name)
		return 0, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	user, password := s.cfg.mongoLogin()
	client := &countingClient{MongoClient: doors.NewMongoClient(&doors.Server{Mongo: s.Addr(Mongo), Account: user,
		Key: password})}
	defer client.Close()
	env := map[string]string{}
	for _, pair := range os.Environ() {
		k, v, _ := strings.Cut(pair, "=")
		env[k] = v
	}
	shell, err := mongoshell.New(mongoshell.Options{Client: client, Database: s.cfg.InitDatabase,
		Version: s.cfg.Version, Out: &printed{s: s, file: name}, Env: env, Load: s.loadScript})
	if err != nil {
		return 0, err
	}
	err = shell.Run(ctx, name, string(text))
	var quit *mongoshell.Quit
	if errors.As(err, &quit) && quit.Code == 0 {
		err = nil
	}
	var at *mongoshell.ScriptError
	if errors.As(err, &at) && at.File == name && at.Line > 0 { // the name is said anyway
		err = fmt.Errorf("line %d: %s", at.Line, at.Text)
	}
	if err == nil {
		err = s.scriptRan(append(ran, name))
	}
	return client.written, err
}

// loadScript returns another script of the directory.
func (s *Server) loadScript(name string) (string, error) {
	if name != filepath.Base(name) {
		return "", fmt.Errorf("load(%q): only files of --init-dir can be loaded, by their names", name)
	}
	text, err := os.ReadFile(filepath.Join(s.cfg.InitDir, name))
	return string(text), err
}

// printed logs the lines that a script prints.
type printed struct {
	s    *Server
	file string
}

// Write implements io.Writer.
func (p *printed) Write(b []byte) (int, error) {
	const most = 1000 // bytes of a line
	for line := range bytes.Lines(b) {
		p.s.log.Info("A script of initial data prints", "file", p.file, "text",
			string(bytes.TrimRight(line[:min(len(line), most)], "\n")))
	}
	return len(b), nil
}

// countingClient counts the documents that commands write.
type countingClient struct {
	*doors.MongoClient
	written int
}

// Run implements mongoshell.Client.
func (c *countingClient) Run(ctx context.Context, db string, cmd []byte) (doc.Doc, error) {
	reply, err := c.MongoClient.Run(ctx, db, cmd)
	if it := value.ObjectOf(cmd).Iter(); err == nil && it.Next() {
		switch string(it.Key()) {
		case "insert", "update", "delete":
			c.written += int(doc.Get(reply, "n").Int())
		}
	}
	return reply, err
}

// ranFile is the list of the scripts that have run for a store: in the data directory, and for a store in storesName in
// the directory of that store, with which it comes and goes. A snapshot has the list of its store.
const ranFile = "init-scripts.json"

// scriptsFile returns the name of the list of the present store, "" for one in memory.
func (s *Server) scriptsFile() string {
	dir := s.cfg.directory()
	if dir == "" {
		return ""
	}
	if store := StoreDir(dir); filepath.Base(store) != storeName {
		dir = store
	}
	return filepath.Join(dir, ranFile)
}

// keepScripts copies the list of the server's store into a copy of that store.
func (s *Server) keepScripts(dir string) error {
	raw, err := os.ReadFile(s.scriptsFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ranFile), raw, 0o600)
}

// scriptsRun returns the scripts that have run for this store. One in memory remembers none.
func (s *Server) scriptsRun() (names []string, err error) {
	file := s.scriptsFile()
	if file == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &names)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, which has the scripts that have run, can't be read: %w", ranFile, err)
	}
	return names, nil
}

// scriptRan keeps the list, whole or not at all.
func (s *Server) scriptRan(names []string) error {
	path := s.scriptsFile()
	if path == "" {
		return nil
	}
	raw, err := json.Marshal(names)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
