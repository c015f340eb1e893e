package script_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/orrerydb/orrery/sqlapi/script"
	"github.com/orrerydb/orrery/sqlapi/script/engine"
)

// The workers of the tests are processes of the test binary.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == script.WorkerCommand {
		if err := engine.Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	script.Served()
	if len(os.Args) == 2 && os.Args[1] == parentCommand {
		parent()
		return
	}
	os.Exit(m.Run())
}

// newPool returns a pool that ends with the test.
func newPool(t testing.TB, o script.Options) *script.Pool {
	t.Helper()
	p := script.NewPool(o)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}
