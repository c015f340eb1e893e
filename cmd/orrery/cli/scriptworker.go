package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/sqlapi/script"
	"github.com/orrerydb/orrery/sqlapi/script/engine"
)

// scriptWorker is the command that serves runs of programs in JavaScript for a server, which starts it.
func scriptWorker() *cobra.Command {
	return &cobra.Command{Use: script.WorkerCommand, Short: "Run programs for a server, which starts it.", Hidden: true,
		Args: noArguments, RunE: runs(func() error { return engine.Work(os.Stdin, os.Stdout) })}
}
