package sqlapi

import (
	"context"
	"sync"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/script"
	"github.com/orrerydb/orrery/sqlapi/sql"
)

// doorEnv is a query's Env, with what it points to.
type doorEnv struct {
	env sql.Env
	fns containerFunctions
}

// containerFunctions are the user-defined functions of a container. It implements sql.Functions. A query that refers to
// no function looks none up. A function stays as it was when the query has first found it.
type containerFunctions struct {
	ctx context.Context // of the request
	s   *Server
	ct  *core.Container

	mu    sync.Mutex
	found map[string]*containerFunction
}

// containerFunction is a function that a query has found.
type containerFunction struct {
	program *core.Resource
	script  *script.Functions
}

// find returns a function.
func (f *containerFunctions) find(name string) (*containerFunction, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if found := f.found[name]; found != nil {
		return found, nil
	}
	r, err := f.s.core.Within(f.ctx).Resource(f.ct.Database(), core.Function, f.ct.Num(), name)
	if err != nil {
		return nil, err
	}
	if f.found == nil {
		f.found = map[string]*containerFunction{}
	}
	_, text := programText(r)
	made := &containerFunction{r, f.s.opt.Scripts.Functions(map[string]string{name: text})}
	f.found[name] = made
	return made, nil
}

// Has implements sql.Functions. A call of a function that can't be read has the error.
func (f *containerFunctions) Has(name string) bool {
	_, err := f.find(name)
	return !status.Is(err, status.NotFound)
}

// Reads implements sql.Functions.
func (f *containerFunctions) Reads(name string) [][]string {
	found, err := f.find(name)
	if err != nil {
		return nil
	}
	return found.script.Reads(name)
}

// Call implements sql.Functions.
func (f *containerFunctions) Call(ctx context.Context, name string, args [][]byte) ([][]byte, error) {
	found, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if err := f.s.blocks.check(found.program, f.s.clock.Now()); err != nil {
		return nil, err
	}
	out, err := found.script.Call(ctx, name, args)
	f.s.blocks.ran(found.program, err, f.s.clock.Now())
	return out, scriptError(err)
}
