package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"
)

// fromFile sets the flags that neither the command line nor a variable has set to what a file in TOML says:
//
//	nosql-addr = "0.0.0.0:8081"
//	throttle = true
//	gremlin-source = ["people=graphs/people"]
//
// Names are those of flags. A name that only other commands have is left to them. A file with a key must be readable
// by its owner only.
func fromFile(name string, cmd *cobra.Command) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	var all map[string]any
	if err := toml.Unmarshal(raw, &all); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			row, column := at.Position()
			return fmt.Errorf("--config %s, line %d, column %d: no TOML", name, row, column) // its text may have a key
		}
		return fmt.Errorf("--config %s: no TOML", name)
	}
	if _, ok := all["key"]; ok {
		if info, err := os.Stat(name); err != nil || !onlyOwner(info) {
			return fmt.Errorf("--config %s: the file has a key and others can read it: chmod 600 it, or use key-file",
				name)
		}
	}
	names := make([]string, 0, len(all))
	for flag := range all {
		names = append(names, flag)
	}
	slices.Sort(names)
	for _, flag := range names {
		f := cmd.Flags().Lookup(flag)
		switch {
		case flag == "config" || flag == "help" || f == nil && !flagOfAny(cmd.Root(), flag):
			return fmt.Errorf("--config %s: no command has a flag called %s", name, flag)
		case f == nil || f.Changed:
			continue
		}
		values, ok := all[flag].([]any)
		if !ok {
			values = []any{all[flag]}
		}
		for _, v := range values {
			if _, nested := v.(map[string]any); nested {
				return fmt.Errorf("--config %s: %s is a table, want a value", name, flag)
			}
			if err := cmd.Flags().Set(flag, fmt.Sprint(v)); err != nil {
				if flag == "key" {
					err = errors.New("want base64")
				}
				return fmt.Errorf("--config %s: %s: %w", name, flag, err)
			}
		}
	}
	return nil
}

// flagOfAny reports whether any command has a flag.
func flagOfAny(root *cobra.Command, flag string) bool {
	for _, c := range root.Commands() {
		if c.Flags().Lookup(flag) != nil || c.PersistentFlags().Lookup(flag) != nil {
			return true
		}
	}
	return false
}

// firstSteps is what orrery prints without arguments.
const firstSteps = `Orrery speaks Azure Cosmos DB's four APIs over one store.

Begin with
  orrery demo                     sample data in memory
  orrery serve                    a store in ./data
Both print the addresses and connection strings. Then, in another terminal:
  orrery query --db shop --container products "SELECT TOP 3 * FROM c"
  orrery shell                    queries, one after the other
  orrery tail shop/orders         changes as they are made
  orrery import FILE --db DB      your own data: JSON, CSV, dumps, graphs, tables
  orrery connect                  connection strings for your programs
  orrery doctor                   when something doesn't work

orrery help lists all commands, orrery help COMMAND the flags of one.
`

// firstLine is the first line of a text.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
