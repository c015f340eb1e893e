package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
)

// setting is one entry of a file of settings: a flag, and its values. list says that they are a list, which may be
// empty.
type setting struct {
	flag   string
	line   int
	values []string
	list   bool
	fault  string // what is wrong with the value; "" = nothing
}

// fromFile sets the flags that neither the command line nor a variable has set to what a file in TOML says, or one in
// YAML, whose name ends in .yaml or .yml:
//
//	nosql-addr = "0.0.0.0:8081"                  nosql-addr: 0.0.0.0:8081
//	throttle = true                              throttle: true
//	gremlin-source = ["people=graphs/people"]    gremlin-source: [people=graphs/people]
//
// Names are those of flags. A name that only other commands have is left to them. A file that has the key itself, and
// not where it is, must be readable by its owner only. Errors name the file and the line, and show no key.
func fromFile(name string, cmd *cobra.Command) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	read := readTOML
	if end := strings.ToLower(filepath.Ext(name)); end == ".yaml" || end == ".yml" {
		read = readYAML
	}
	all, err := read(bytes.TrimPrefix(raw, transfer.BOM))
	if err != nil {
		return fmt.Errorf("--config %s%w", name, err)
	}
	seen := map[string]bool{}
	for _, s := range all {
		where := fmt.Sprintf("--config %s, line %d", name, s.line)
		f := cmd.Flags().Lookup(s.flag)
		if f != nil && f.Hidden {
			f = nil
		}
		switch {
		case s.flag == "config" || s.flag == "help" || f == nil && !flagOfAny(cmd.Root(), s.flag):
			return fmt.Errorf("%s: no command has a flag called %s", where, s.flag)
		case s.fault != "":
			return fmt.Errorf("%s: %s %s", where, s.flag, s.fault)
		case seen[s.flag]:
			return fmt.Errorf("%s: %s is there twice", where, s.flag)
		case s.flag == "key" && len(s.values) == 1 && !isReference(s.values[0]):
			if info, err := os.Stat(name); err != nil || !onlyOwner(info) {
				return fmt.Errorf("%s: the file has a key and others can read it: chmod 600 it, or use key-file", where)
			}
		}
		seen[s.flag] = true
		if f == nil || f.Changed {
			continue
		}
		if err := s.set(cmd.Flags(), f); err != nil {
			return fmt.Errorf("%s: %s: %w", where, s.flag, err)
		}
	}
	return nil
}

// set sets a flag.
func (s *setting) set(flags *pflag.FlagSet, f *pflag.Flag) error {
	many, ok := f.Value.(pflag.SliceValue)
	switch {
	case s.list && ok:
		f.Changed = true
		return many.Replace(s.values) // Set would cut values at commas, and keep the default of an empty list
	case s.list && len(s.values) != 1 && f.Value.Type() != repeatable:
		return errors.New("want one value, not a list")
	}
	for _, v := range s.values {
		if err := flags.Set(f.Name, v); err != nil {
			if s.flag == "key" {
				return errors.New("want base64")
			}
			return err
		}
	}
	return nil
}

// repeatable is the type of flags that a function reads, one value after the other.
const repeatable = "func"

// The faults of values.
const (
	isTable = "is a table, want a value"
	isNone  = "has no value"
	isDeep  = "has a list within its list, want values"
)

// readTOML reads a file in TOML. An error begins with the place in the file.
func readTOML(raw []byte) (all []setting, err error) {
	values := map[string]any{}
	if err := toml.Unmarshal(raw, &values); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			row, column := at.Position()
			return nil, fmt.Errorf(", line %d, column %d: no TOML", row, column) // its text may have a key
		}
		return nil, errors.New(": no TOML")
	}
	p := unstable.Parser{} // for the lines, and the order
	p.Reset(raw)
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.KeyValue && e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
			continue
		}
		key := e.Key()
		key.Next()
		s := setting{flag: string(key.Node().Data), line: p.Shape(key.Node().Raw).Start.Line}
		v := values[s.flag]
		of, list := v.([]any)
		if s.list = list; !list {
			of = []any{v}
		}
		for _, v := range of {
			switch v.(type) {
			case map[string]any:
				s.fault = isTable
			case []any:
				s.fault = isDeep
			}
			s.values = append(s.values, fmt.Sprint(v))
		}
		all = append(all, s)
		if e.Kind != unstable.KeyValue {
			break // what follows belongs to the table, which is refused
		}
	}
	return all, p.Error()
}

// readYAML reads a file in YAML. Values are taken as they are written, so that 010 isn't 8.
func readYAML(raw []byte) (all []setting, err error) {
	var root yaml.Node
	if err := yaml.Unmarshal(raw, &root); err != nil {
		var line int
		if _, e := fmt.Sscanf(err.Error(), "yaml: line %d:", &line); e == nil {
			return nil, fmt.Errorf(", line %d: no YAML", line) // its text may have a key
		}
		return nil, errors.New(": no YAML")
	}
	if len(root.Content) == 0 {
		return nil, nil
	}
	top := root.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf(", line %d: want NAME: VALUE", top.Line)
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		s := setting{flag: top.Content[i].Value, line: top.Content[i].Line}
		v := plain(top.Content[i+1])
		of := []*yaml.Node{v}
		if s.list = v.Kind == yaml.SequenceNode; s.list {
			of = v.Content
		}
		for _, v := range of {
			switch v = plain(v); {
			case v.Kind == yaml.MappingNode:
				s.fault = isTable
			case v.Kind == yaml.SequenceNode:
				s.fault = isDeep
			case v.Tag == "!!null":
				s.fault = isNone
			}
			s.values = append(s.values, v.Value)
		}
		all = append(all, s)
	}
	return all, nil
}

// plain returns what an alias stands for.
func plain(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// flagOfAny reports whether any command has a flag that is shown.
func flagOfAny(root *cobra.Command, flag string) bool {
	for _, c := range root.Commands() {
		for _, flags := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			if f := flags.Lookup(flag); f != nil && !f.Hidden {
				return true
			}
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
