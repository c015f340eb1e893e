package harness

import (
	"fmt"
	"os"

	"github.com/orrerydb/orrery/sqlapi/script"
	"github.com/orrerydb/orrery/sqlapi/script/engine"
)

// A server starts its own binary to run programs in JavaScript. In tests that is the test binary, which must then serve
// programs and run no tests.
func init() {
	script.Served()
	if len(os.Args) != 2 || os.Args[1] != script.WorkerCommand {
		return
	}
	if err := engine.Work(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
