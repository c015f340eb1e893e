package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// The test controls: requests to the admin port with which tests make accounts, bring stores back to a known state, and
// move time. They exist only with --test-controls, and only for a store in memory or in a directory that was made with
// the flag, so that no mistake in a test can remove data that matters. They require the account key, even without
// --auth.

// TestPath is the path of the test controls on the admin port.
const TestPath = "/orrery/test"

// testMark is the file in a data directory that says that tests may change the store at will.
const testMark = "test-controls"

// markForTests checks that the data directory may be used with test controls, and marks a new one.
func (c *Config) markForTests() error {
	mark := filepath.Join(c.Data, testMark)
	if _, err := os.Stat(mark); err == nil {
		_, err := readStoreName(c.Data)
		return err
	}
	if _, err := os.Stat(StoreDir(c.Data)); err == nil {
		return fmt.Errorf("%s was not made with --test-controls, and tests could remove what is in it: give a new "+
			"directory, or --memory", c.Data)
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return err
	}
	return os.WriteFile(mark, []byte("Tests may change and remove this store at will.\n"), 0o600)
}

// prepareTests prepares what test controls need.
func (s *Server) prepareTests() error {
	if !s.cfg.TestControls {
		return nil
	}
	s.cfg.newBudget() // before the first copy of the configuration for another account
	if s.cfg.parent != nil {
		return nil
	}
	s.kit = &kit{accounts: map[string]*Server{}, snapshots: map[string]*memkv.Engine{}}
	if s.cfg.Memory {
		return nil
	}
	if err := s.cfg.markForTests(); err != nil {
		return err
	}
	s.cfg.cache = pebblekv.NewCache(s.cfg.CacheMB)
	return nil
}

// closeCache ends the use of the cache that all stores share, after all of them were closed.
func (s *Server) closeCache() {
	if s.kit != nil && s.cfg.cache != nil {
		s.cfg.cache.Close()
		s.cfg.cache = nil
	}
}

// mendTests removes what the last server with test controls has left in the data directory, after the store was opened.
func (s *Server) mendTests() (err error) {
	if s.kit != nil && !s.cfg.Memory {
		s.kit.stores, err = mendStores(s.cfg.Data)
	}
	return err
}

// The bodies of the requests. A body with another field is refused: who calls the account of a reset "name" would
// otherwise reset all accounts.
type (
	noBody      struct{}
	ofAccount   struct{ Account string }
	ofName      struct{ Name string }
	ofSnapshot  struct{ Account, Name string }
	forkRequest struct{ Snapshot, Account, Name string }
	ofClock     struct {
		Account      string
		Freeze, Run  bool
		Set, Advance string
	}
	ofFaults struct {
		ID      int64
		Account string
	}
)

// controlState is the reply to a GET.
type controlState struct {
	Accounts  []Connections         `json:"accounts"`
	Snapshots []string              `json:"snapshots"`
	Clocks    map[string]clockState `json:"clocks"`
	Faults    []Fault               `json:"faults"`
}

// testRoutes adds the routes of the test controls.
func (s *Server) testRoutes(g *gin.Engine) {
	for _, r := range []struct {
		verb, path string
		do         gin.HandlerFunc
	}{
		{http.MethodGet, "", controlled(s, func(noBody) (any, error) { return s.getControls() })},
		{http.MethodPost, "/accounts", controlled(s, s.postAccount)},
		{http.MethodDelete, "/accounts", controlled(s, s.deleteAccount)},
		{http.MethodPost, "/reset", controlled(s, func(q ofAccount) (any, error) { return nil, s.Reset(q.Account) })},
		{http.MethodPost, "/snapshot",
			controlled(s, func(q ofSnapshot) (any, error) { return nil, s.Snapshot(q.Account, q.Name) })},
		{http.MethodDelete, "/snapshot",
			controlled(s, func(q ofName) (any, error) { return nil, s.RemoveSnapshot(q.Name) })},
		{http.MethodPost, "/restore",
			controlled(s, func(q ofSnapshot) (any, error) { return nil, s.Restore(q.Account, q.Name) })},
		{http.MethodPost, "/fork", controlled(s, s.postFork)},
		{http.MethodPost, "/clock", controlled(s, s.postClock)},
		{http.MethodPost, "/record", controlled(s, func(q ofName) (any, error) { return nil, s.Record(q.Name) })},
		{http.MethodDelete, "/record", controlled(s, func(noBody) (any, error) {
			n, err := s.StopRecord()
			return map[string]int64{"requests": n}, err
		})},
		{http.MethodPost, "/replay",
			controlled(s, func(q replayRequest) (any, error) { return s.Replay(s.life, q) })},
		{http.MethodPost, "/faults", controlled(s, s.postFault)},
		{http.MethodDelete, "/faults", controlled(s, s.deleteFaults)},
	} {
		g.Handle(r.verb, TestPath+r.path, r.do)
	}
}

// postFault adds a rule.
func (s *Server) postFault(f Fault) (any, error) {
	id, err := s.AddFault(f)
	return map[string]int64{"id": id}, err
}

// deleteFaults removes a rule by its number, the rules of an account, or all.
func (s *Server) deleteFaults(q ofFaults) (any, error) {
	if q.ID != 0 {
		return nil, s.RemoveFault(q.ID)
	}
	s.kit.faults.remove(func(f *Fault) bool { return q.Account == "" || f.Account == q.Account })
	return nil, nil
}

// controlled is the handler of a control. The reply is what do returns as JSON, or 204.
func controlled[Q any](s *Server, do func(Q) (any, error)) gin.HandlerFunc {
	return s.control(func() (any, func() (any, error)) {
		q := new(Q)
		return q, func() (any, error) { return do(*q) }
	})
}

// control is controlled for all types of a request: begin returns where the body goes, and what is done after that.
//
//go:noinline // each caller would get its own copy of the closure
func (s *Server) control(begin func() (body any, do func() (any, error))) gin.HandlerFunc {
	return func(c *gin.Context) {
		if !s.hasKey(c.Request) {
			s.askForKey(c)
			return
		}
		body, do := begin()
		if err := readControl(c, body); err != nil {
			plain(c.Writer, http.StatusBadRequest, err.Error()+"\n")
			return
		}
		out, err := do()
		switch {
		case err != nil:
			plain(c.Writer, controlCode(err), err.Error()+"\n")
		case out == nil:
			c.Status(http.StatusNoContent)
		default:
			asJSON(c.Writer, out)
		}
	}
}

// mostControl is the size of the largest body, in bytes.
const mostControl = 1 << 20

// readControl reads the body of a request: JSON without unknown fields, or nothing.
func readControl(c *gin.Context, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(c.Writer, c.Request.Body, mostControl))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return errors.New("the body is not what this control takes: " + bodyError(err))
	}
	return nil
}

// bodyError says what is wrong with a body, without the names of Go's types.
func bodyError(err error) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return strings.TrimPrefix(err.Error(), "json: ")
	case wrong.Field == "":
		return "want an object, not " + wrong.Value
	}
	return fmt.Sprintf("%q can't be %s", strings.ToLower(wrong.Field), wrong.Value)
}

// controlCode is the status of an error.
func controlCode(err error) int {
	switch {
	case isAny(err, errName, errOwn, errFork, errClock, errFault, errNoRecords, errEndpoint, errRemote, errTwoTargets):
		return http.StatusBadRequest
	case errors.Is(err, errUnknown):
		return http.StatusNotFound
	case errors.Is(err, errTaken), errors.Is(err, errRecording), errors.Is(err, errNoRecord):
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}

func isAny(err error, of ...error) bool {
	return slices.ContainsFunc(of, func(e error) bool { return errors.Is(err, e) })
}

func (s *Server) getControls() (any, error) {
	names, err := s.Snapshots()
	if err != nil {
		return nil, err
	}
	out := controlState{Snapshots: append([]string{}, names...), Clocks: map[string]clockState{},
		Faults: s.kit.faults.list()} // lists are [], not null
	s.kit.mu.Lock()
	defer s.kit.mu.Unlock()
	for _, a := range s.accountsBelow() {
		out.Accounts = append(out.Accounts, a.Connections(true))
		out.Clocks[a.cfg.Account] = a.clockState()
	}
	return out, nil
}

func (s *Server) postAccount(q ofName) (any, error) {
	a, err := s.AddAccount(q.Name)
	if err != nil {
		return nil, err
	}
	return a.Connections(true), nil
}

func (s *Server) deleteAccount(q ofName) (any, error) {
	ctx, cancel := context.WithTimeout(s.life, accountGrace)
	defer cancel()
	return nil, s.RemoveAccount(ctx, q.Name)
}

// accountGrace is how long requests may take to end when their account is removed.
const accountGrace = 3 * time.Second

func (s *Server) postFork(q forkRequest) (any, error) {
	a, err := s.Fork(q.Snapshot, q.Account, q.Name)
	if err != nil {
		return nil, err
	}
	return a.Connections(true), nil
}
