package script

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// Functions are the user-defined functions of one query. Safe for concurrent use.
type Functions struct {
	pool    *Pool
	sources map[string]string
	loose   bool
}

// Functions returns the functions with the given sources by name.
func (p *Pool) Functions(sources map[string]string) *Functions {
	return &Functions{pool: p, sources: sources}
}

// Loose returns the functions as programs that aren't in strict mode.
func (f *Functions) Loose() *Functions {
	return &Functions{pool: f.pool, sources: f.sources, loose: true}
}

// Has reports whether there is a function of this name.
func (f *Functions) Has(name string) bool {
	_, ok := f.sources[name]
	return ok
}

// Reads returns what a function can read of its arguments, nil for all. It is known after the first call.
func (f *Functions) Reads(name string) Reads { return f.pool.reads.get(f.sources[name]) }

// Call evaluates a function for each of the argument lists, which are JSON arrays; an undefined argument is the word
// undefined. A value is JSON, or nil for undefined. The limits of a run hold for the call as a whole. It returns an
// *Error for what the function or its limits did.
func (f *Functions) Call(ctx context.Context, name string, args [][]byte) ([][]byte, error) {
	source, ok := f.sources[name]
	if !ok {
		return nil, &Error{Status: http.StatusBadRequest, Body: fmt.Sprintf("The function %q does not exist.", name)}
	}
	var values [][]byte
	var reads Reads
	err := f.pool.with(ctx, f.pool.functions, func(_ context.Context, w *process) (last bool, err error) {
		call := wire.Call{Name: name, Source: source, Loose: f.loose, Args: args}
		reply, err := w.exchange(wire.EncodeCall(f.pool.setting(), call))
		if err != nil {
			return true, err
		}
		values, reads, last, err = decodeValues(reply, len(args))
		return last, err
	})
	if reads != nil {
		f.pool.reads.put(source, reads)
	}
	return values, err
}

// decodeValues reads a worker's answer to a call with n argument lists.
func decodeValues(reply wire.Frame, n int) ([][]byte, Reads, bool, error) {
	switch reply.Type {
	case wire.TypeFault:
		e, last, err := wire.DecodeFault(reply)
		if err != nil {
			return nil, nil, true, err
		}
		return nil, nil, last, e
	case wire.TypeValues:
		values, reads, last, err := wire.DecodeValues(reply)
		if err == nil && len(values) != n {
			err = fmt.Errorf("%w: %d values for %d argument lists", wire.ErrFrame, len(values), n)
		}
		return values, reads, last, err
	}
	return nil, nil, true, fmt.Errorf("%w: type %q of a call's answer", wire.ErrFrame, reply.Type)
}

// mostKnown bounds the functions of which a pool knows what they read.
const mostKnown = 1000

// readsBySource has what functions read, by their text. Safe for concurrent use.
type readsBySource struct {
	mu    sync.RWMutex
	known map[string]Reads
}

func (r *readsBySource) get(source string) Reads {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.known[source]
}

func (r *readsBySource) put(source string, reads Reads) {
	if r.get(source) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= mostKnown {
		r.known = map[string]Reads{}
	}
	r.known[source] = reads
}
