package cli

import (
	"context"
	"testing"

	"github.com/orrerydb/orrery/sqlapi/script"
)

// The binary is its own script worker.
func TestScriptWorkerOfTheBinary(t *testing.T) {
	pool := script.NewPool(script.Options{Command: []string{binary(), script.WorkerCommand}})
	defer pool.Close()
	source := `function f() { getContext().getResponse().setBody(typeof process); }`
	result, err := pool.Run(context.Background(), script.Run{Name: "s", Source: source}, nil)
	if err != nil || string(result.Body) != `"undefined"` {
		t.Errorf("%s, %v", result.Body, err)
	}
}
