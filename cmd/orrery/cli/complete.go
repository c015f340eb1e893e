package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// fewValues has the values of flags that have a few, beside those whose type says so (choice).
var fewValues = map[string]string{
	"explorer":       "auto on read-only off",
	"mongo-topology": "replicaset standalone",
	"strict":         "nosql mongo none",
}

// completeValues lets shells complete the values of flags that have a few, in all commands. Names of files are
// completed by the shells themselves.
func completeValues(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		of := strings.Fields(fewValues[f.Name])
		if c, ok := f.Value.(*choice); ok {
			of = c.of
		}
		if f.Name == "format" {
			of = strings.Split(formatNames(), ", ")
		}
		if len(of) == 0 {
			return
		}
		complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return of, cobra.ShellCompDirectiveNoFileComp
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
			panic(err) // there is no such flag, or it has one already
		}
	})
	for _, sub := range cmd.Commands() {
		completeValues(sub)
	}
}
