package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/sqlapi/script"
)

// mongoScripts runs JavaScript of the MongoDB API in the processes that run the programs of the NoSQL API.
type mongoScripts struct{ pool *script.Pool }

// Call implements expr.Scripts.
func (m mongoScripts) Call(ctx context.Context, source string, args []byte) ([]byte, error) {
	const name = "f"
	values, err := m.pool.Functions(map[string]string{name: source}).Loose().Call(ctx, name, [][]byte{args})
	var failed *script.Error
	if errors.As(err, &failed) {
		return nil, &expr.ScriptError{Text: failed.Body, Late: failed.Status == http.StatusRequestTimeout}
	}
	if err != nil {
		return nil, err
	}
	return values[0], nil
}
