// Command orrery-copy copies a container from a running server to another one: Orrery, a live account of the service,
// or any server of the same protocol. It speaks by the official clients, which orrery itself does without.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := command()
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "orrery-copy:", err)
		os.Exit(1)
	}
}

// command is the command line.
func command() *cobra.Command {
	c := &job{}
	cmd := &cobra.Command{Use: "orrery-copy --from PLACE --to PLACE",
		Short: "Copy a container between running servers, or from and to a live account.",
		Long: "Copy a container between running servers, or from and to a live account. Both places are of one API:" +
			"\n\n" +
			"  nosql+https://HOST[:PORT]/DATABASE/CONTAINER    also nosql+http\n" +
			"  mongodb://HOST:PORT/DATABASE/COLLECTION         also mongodb+tls\n" +
			"  table+https://HOST[:PORT][/ACCOUNT]/TABLE       also table+http\n" +
			"  gremlin+ws://HOST:PORT/DATABASE/GRAPH           also gremlin+wss, and HOST:PORT/SOURCE\n\n" +
			"The graph of a live account is copied by the account's NoSQL API.",
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&c.from.text, "from", "", "`PLACE` to copy from.")
	f.StringVar(&c.from.key, "from-key", "", "Where its key is: `env:NAME or file:PATH`.")
	f.StringVar(&c.from.account, "from-account", "", "Its account, where the place doesn't say.")
	f.StringVar(&c.to.text, "to", "", "`PLACE` to copy to. A container that is absent is created like the other.")
	f.StringVar(&c.to.key, "to-key", "", "Where its key is: `env:NAME or file:PATH`.")
	f.StringVar(&c.to.account, "to-account", "", "Its account, where the place doesn't say.")
	f.BoolVar(&c.follow, "follow", false, "Go on with the changes that are made, until stopped.")
	f.StringArrayVar(&c.rename, "map", nil, "Rename a field: `OLD=NEW`. Repeatable.")
	f.StringVar(&c.key, "partition-key", "", "`PROPERTY` that is the partition key of both graphs, for gremlin+ws.")
	f.BoolVar(&c.dry, "dry-run", false, "Read and check everything, write nothing.")
	f.Int64Var(&c.maxErrors, "max-errors", 100, "End when more items than this are bad.")
	f.StringVar(&c.bad.Path, "bad-rows", "", "`FILE` for items that the target refuses, with number and reason.")
	f.StringVar(&c.state, "state", "",
		"`FILE` from which a copy that was ended goes on; the default is in the working "+
			"directory.")
	f.BoolVar(&c.restart, "restart", false, "Begin with the first item, whatever an earlier copy has done.")
	for _, name := range []string{"from", "to"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // there is no such flag
		}
	}
	return cmd
}

// errEnded is the error of a copy that a signal has ended.
var errEnded = errors.New("interrupted; the same command goes on")
