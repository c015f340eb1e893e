package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/fault"
)

// Fault is a rule of a test: which requests fail, and how. Empty fields match every request.
//
// Example: {"api": "nosql", "operation": "create item", "fault": "429", "retryAfterMs": 10, "count": 2} refuses the
// next two creates, after which a client that repeats them succeeds.
type Fault struct {
	ID        int64  `json:"id,omitempty"` // given by the server
	Account   string `json:"account,omitempty"`
	API       string `json:"api,omitempty"`       // nosql, table, gremlin, mongo
	Operation string `json:"operation,omitempty"` // as /metrics names it, such as "create item"; in Mongo the command
	Database  string `json:"database,omitempty"`
	Container string `json:"container,omitempty"` // or table, graph, collection
	Key       string `json:"key,omitempty"`       // partition key; in Mongo the _id. Gremlin requests have none

	Probability float64 `json:"probability,omitempty"` // 0 = always
	Count       int64   `json:"count,omitempty"`       // of requests, after which the rule ends; 0 = no end

	Kind         string `json:"fault"` // one of FaultKinds
	DelayMS      int64  `json:"delayMs,omitempty"`
	RetryAfterMS int64  `json:"retryAfterMs,omitempty"` // of 429
}

// mostDelay is the longest delay of a rule, and mostFaults the largest number of rules.
const (
	mostDelay  = 10 * time.Minute
	mostFaults = 1000
)

// kinds are the kinds of faults.
var kinds = map[string]fault.Effect{
	"429":         {Err: status.WithSub(status.TooManyRequests, status.SubThrottled, "A test asked for this.")},
	"408":         {Err: status.New(status.Timeout, "A test asked for this.")},
	"410":         {Err: status.WithSub(status.Gone, status.SubPartitionKeyRangeGone, "A test asked for this.")},
	"449":         {Err: status.New(status.RetryWith, "A test asked for this.")},
	"503":         {Err: status.New(status.Unavailable, "A test asked for this.")},
	"latency":     {},
	"lost-before": {Loss: fault.Before},
	"lost-after":  {Loss: fault.After},
	"cut":         {Loss: fault.Cut},
}

// errFault is the error for a wrong rule.
var errFault = errors.New("a fault is one of 408, 410, 429, 449, 503, latency, lost-before, lost-after, cut")

// defaultRetryAfter is what a 429 says without retryAfterMs.
const defaultRetryAfter = 10 * time.Millisecond

// effect returns what a rule does.
func (f *Fault) effect() (*fault.Effect, error) {
	e, ok := kinds[f.Kind]
	delay, after := time.Duration(f.DelayMS)*time.Millisecond, time.Duration(f.RetryAfterMS)*time.Millisecond
	switch {
	case !ok:
		return nil, fmt.Errorf("fault %.40q: %w", f.Kind, errFault)
	case f.DelayMS < 0 || f.DelayMS > mostDelay.Milliseconds(), f.RetryAfterMS < 0,
		f.RetryAfterMS > mostDelay.Milliseconds():
		return nil, fmt.Errorf("%w; a time is 0 to %d ms", errFault, mostDelay.Milliseconds())
	case f.API != "" && !slices.Contains([]string{NoSQL, Table, Gremlin, Mongo}, f.API):
		return nil, fmt.Errorf("%w; an api is nosql, table, gremlin or mongo", errFault)
	case f.Kind == "latency" && f.DelayMS == 0:
		return nil, fmt.Errorf("%w; latency needs delayMs", errFault)
	case f.Probability < 0 || f.Probability > 1 || f.Count < 0:
		return nil, fmt.Errorf("%w; a probability is 0 to 1, and a count is no less than 0", errFault)
	}
	e.Delay = delay
	if f.Kind == "429" {
		refused := *e.Err.(*status.Error)
		refused.RetryAfter = cmp.Or(after, defaultRetryAfter)
		e.Err = &refused
	}
	return &e, nil
}

// faults are the rules of a server with test controls.
type faults struct {
	some atomic.Bool // there are rules
	mu   sync.Mutex
	last int64
	all  []*rule
}

// rule is a Fault with its effect. left is the number of requests that it still hits, -1 = no end.
type rule struct {
	Fault
	effect *fault.Effect
	left   int64
}

// matches reports whether a rule is for a request.
func (r *rule) matches(account string, q *fault.Request) bool {
	for _, p := range [][2]string{{r.Account, account}, {r.API, q.API}, {r.Operation, q.Operation},
		{r.Database, q.Database}, {r.Container, q.Container}} {
		if p[0] != "" && p[0] != p[1] {
			return false
		}
	}
	return r.Key == "" || r.Key == q.Key || `["`+r.Key+`"]` == q.Key
}

// add adds a rule and returns its number.
func (f *faults) add(r Fault) (int64, error) {
	e, err := r.effect()
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) >= mostFaults {
		return 0, fmt.Errorf("%w; there are %d already", errFault, mostFaults)
	}
	f.last++
	r.ID = f.last
	left := r.Count
	if left == 0 {
		left = -1
	}
	f.all = append(f.all, &rule{r, e, left})
	f.some.Store(true)
	return r.ID, nil
}

// remove removes the rules that which selects, and returns their number.
func (f *faults) remove(which func(*Fault) bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.all)
	f.all = slices.DeleteFunc(f.all, func(r *rule) bool { return which(&r.Fault) })
	f.some.Store(len(f.all) > 0)
	return n - len(f.all)
}

// list returns the rules, with the count that is left.
func (f *faults) list() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []Fault{}
	for _, r := range f.all {
		one := r.Fault
		one.Count = max(0, r.left)
		out = append(out, one)
	}
	return out
}

// hit returns what the first rule for a request does, and counts the request.
func (f *faults) hit(account string, q *fault.Request, clk *clock.Clock) *fault.Effect {
	if !f.some.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range f.all {
		if !r.matches(account, q) || r.Probability > 0 && clk.Float64() >= r.Probability {
			continue
		}
		if r.left > 0 {
			if r.left--; r.left == 0 {
				f.all = slices.Delete(f.all, i, i+1)
				f.some.Store(len(f.all) > 0)
			}
		}
		return r.effect
	}
	return nil
}

// accountFaults is the fault.Source of one account.
type accountFaults struct {
	*faults
	account string
}

// Hit implements fault.Source. A request's own header comes before the rules. A header that can't be read is ignored,
// as it is without test controls.
func (a accountFaults) Hit(q fault.Request) *fault.Effect {
	if q.Once != "" {
		if e, err := onceFault(q.Once); err == nil {
			return e
		}
	}
	return a.hit(a.account, &q, wall)
}

// onceFault reads a header: a fault, and delayMs and retryAfterMs after semicolons.
//
// Example: "429; retryAfterMs=20".
func onceFault(text string) (*fault.Effect, error) {
	kind, rest, more := strings.Cut(text, ";")
	f := Fault{Kind: strings.TrimSpace(kind)}
	for more {
		var part string
		part, rest, more = strings.Cut(rest, ";")
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
			return nil, err
		case strings.EqualFold(name, "delayMs"):
			f.DelayMS = n
		case strings.EqualFold(name, "retryAfterMs"):
			f.RetryAfterMS = n
		default:
			return nil, errFault
		}
	}
	return f.effect()
}

// AddFault adds a rule to a server with test controls and returns its number. While the server begins, a rule that its
// probes could meet waits for their end.
func (s *Server) AddFault(f Fault) (int64, error) {
	if s.kit == nil {
		return 0, errNoControls
	}
	if f.Account == "" || f.Account == s.cfg.Account {
		ctx, cancel := context.WithTimeout(s.life, probeTimeout)
		_ = s.WaitReady(ctx) // else the rule begins now
		cancel()
	}
	if f.Account != "" {
		s.kit.mu.Lock()
		_, err := s.accountNamed(f.Account)
		s.kit.mu.Unlock()
		if err != nil {
			return 0, err
		}
	}
	return s.kit.faults.add(f)
}

// RemoveFault removes a rule.
func (s *Server) RemoveFault(id int64) error {
	if s.kit == nil {
		return errNoControls
	}
	if s.kit.faults.remove(func(f *Fault) bool { return f.ID == id }) == 0 {
		return fmt.Errorf("fault %d: %w", id, errUnknown)
	}
	return nil
}

// root returns the server of an account.
func (s *Server) root() *Server {
	if s.cfg.parent != nil {
		return s.cfg.parent
	}
	return s
}

// recorder returns the recorder of a server with test controls, nil for others.
func (s *Server) recorder() *recording {
	if kit := s.root().kit; kit != nil {
		return &kit.recorder
	}
	return nil
}

// faultSource returns what the doors of the account ask; nil without test controls.
func (s *Server) faultSource() fault.Source {
	root := s.root()
	if root.kit == nil {
		return nil
	}
	return accountFaults{&root.kit.faults, s.cfg.Account}
}
