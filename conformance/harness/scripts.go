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
	fmt.Fprintln(os.Stderr, engine.Work(os.Stdin, os.Stdout))
	os.Exit(1)
}
