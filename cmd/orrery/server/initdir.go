package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// The initial data of a server: the files of a directory (--init-dir), in the order of their names, before the server
// is ready. Each kind of file has an entry in initFiles. A file that fails ends the initialization: the server goes on,
// but isn't ready, and says why.
//
// Example:
//
//	01-shop.yaml                 databases and containers
//	02-shop.products.jsonl       items of the container products of the database shop
//	03-graphs.g.gremlin          scripts on the graph g of the database graphs
//	04-more.js                   a script in the language of MongoDB's shell
//
// A file is applied once for each start, so its items are upserted: a store in a directory has them already. Only
// scripts of MongoDB's shell (.js) are run once for each store.

// InitPath is the path of the results on the admin port.
const InitPath = "/orrery/init"

// initFile applies the content of a file. name is the part of the file's name without order and extension. It returns
// the number of things that it wrote.
type initFile func(ctx context.Context, s *Server, name, file string) (int, error)

// initFiles are the kinds of files, by their extensions.
var initFiles = map[string]initFile{
	".yaml": initYAML, ".yml": initYAML,
	".json": initJSON, ".jsonl": initJSON, ".ndjson": initJSON,
	".csv":     initCSV,
	".gremlin": initGremlin, ".groovy": initGremlin,
}

// InitResult is the result of one file.
type InitResult struct {
	File    string `json:"file"`
	Written int    `json:"written"`
	TookMS  int64  `json:"tookMs"`
	Error   string `json:"error,omitempty"`
}

// initialization is the state of the initial data.
type initialization struct {
	mu    sync.Mutex
	State string       `json:"state"` // none, running, done, failed
	Files []InitResult `json:"files"`
}

// The states of the initialization.
const (
	initNone    = "none"
	initRunning = "running"
	initDone    = "done"
	initFailed  = "failed"
)

// begin sets the state of a new server.
func (i *initialization) begin(dir string) {
	i.State, i.Files = initRunning, []InitResult{}
	if dir == "" {
		i.State = initNone
	}
}

// waits returns why the server isn't ready, "" if it is.
func (i *initialization) waits() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.State {
	case initRunning:
		return "the files of --init-dir are being applied"
	case initFailed:
		last := i.Files[len(i.Files)-1]
		return "--init-dir: " + last.File + ": " + last.Error
	}
	return ""
}

// ended notes the result of a file.
func (i *initialization) ended(r InitResult) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.Files = append(i.Files, r)
	if r.Error != "" {
		i.State = initFailed
	}
}

// initialize applies the files. It runs while the server already answers.
func (s *Server) initialize(ctx context.Context) {
	if s.cfg.InitDir == "" {
		return
	}
	entries, err := os.ReadDir(s.cfg.InitDir)
	if err != nil {
		s.init.ended(InitResult{File: s.cfg.InitDir, Error: "the directory can't be read"})
		s.log.Error("The directory of initial data can't be read", "error", err)
		return
	}
	for _, e := range entries { // in the order of their names
		if e.IsDir() || e.Name()[0] == '.' {
			continue
		}
		r := s.initOne(ctx, e.Name())
		s.init.ended(r)
		if r.Error != "" {
			s.log.Error("The server isn't ready: a file of initial data failed", "file", r.File, "error", r.Error)
			return
		}
		s.log.Info("Initial data", "file", r.File, "written", r.Written, "ms", r.TookMS)
	}
	s.init.mu.Lock()
	defer s.init.mu.Unlock()
	s.init.State = initDone
}

// initOne applies one file.
func (s *Server) initOne(ctx context.Context, file string) (r InitResult) {
	began := wall.Now()
	r.File = file
	name, kind := initName(file)
	apply := initFiles[kind]
	err := errors.New("no such kind of file: want .yaml, .json, .jsonl, .csv, .graphson, .graphml, .gremlin " +
		"or .js")
	if apply != nil {
		r.Written, err = apply(ctx, s, name, filepath.Join(s.cfg.InitDir, file))
	}
	if err != nil {
		r.Error = err.Error()
	}
	r.TookMS = wall.Now().Sub(began).Round(time.Millisecond).Milliseconds()
	return r
}

// getInit replies with the results.
func (s *Server) getInit(c *gin.Context) {
	s.init.mu.Lock()
	text, err := json.Marshal(&s.init)
	s.init.mu.Unlock()
	if err != nil {
		plain(c.Writer, 500, fmt.Sprintln(err))
		return
	}
	c.Data(200, "application/json", append(text, '\n'))
}
