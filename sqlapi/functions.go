package sqlapi

import (
	"context"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/sqlapi/sql"
)

// doorEnv is a query's Env, with what it points to.
type doorEnv struct {
	env sql.Env
	fns containerFunctions
}

// containerFunctions are the user-defined functions of a container. It implements sql.Functions. A query that refers to
// no function looks none up.
type containerFunctions struct {
	s  *Server
	ct *core.Container
}

// source returns the text of a function.
func (f *containerFunctions) source(name string) (string, error) {
	r, err := f.s.core.Resource(f.ct.Database(), core.Function, f.ct.Num(), name)
	if err != nil {
		return "", err
	}
	_, text := programText(r)
	return text, nil
}

// Has implements sql.Functions.
func (f *containerFunctions) Has(name string) bool {
	_, err := f.source(name)
	return err == nil
}

// Call implements sql.Functions.
func (f *containerFunctions) Call(ctx context.Context, name string, args [][]byte) ([][]byte, error) {
	text, err := f.source(name)
	if err != nil {
		return nil, err
	}
	fns := f.s.opt.Scripts.Functions(map[string]string{name: text})
	defer fns.Close()
	out, err := fns.Call(ctx, name, args)
	return out, scriptError(err)
}
