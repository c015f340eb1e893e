package compile

import "github.com/orrerydb/orrery/graphapi/gvalue"

// verifier has the settings of the strategies that refuse a traversal because of what it says.
type verifier struct {
	edgeLabels bool     // EdgeLabelVerificationStrategy: each step over edges names their labels
	reserved   []string // ReservedKeysVerificationStrategy: keys that no property() sets
}

// addVerifier adds a verification strategy. Without throwException it would only log a warning.
func (c *Config) addVerifier(s *gvalue.Strategy) {
	if throw, _ := setting(s, "throwException").(bool); !throw {
		return
	}
	if s.Name() == "EdgeLabelVerificationStrategy" {
		c.verify.edgeLabels = true
		return
	}
	c.verify.reserved = []string{"id", "label"}
	if keys := stringsIn(setting(s, "keys", "reservedKeys")); keys != nil {
		c.verify.reserved = keys
	}
}

// stringsIn returns the strings of a list, a set or a single string.
func stringsIn(v any) (out []string) {
	var items []any
	switch l := v.(type) {
	case []any:
		items = l
	case *gvalue.Set:
		items = l.Items()
	case string:
		items = []any{l}
	}
	for _, it := range items {
		if s, ok := it.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// overEdges are the steps that follow edges, with the number of their arguments that are no labels.
var overEdges = map[string]int{
	"out": 0, "in": 0, "both": 0, "outE": 0, "inE": 0, "bothE": 0, "to": 1, "toE": 1,
}

func (v *verifier) instruction(in gvalue.Instruction) error {
	if n, ok := overEdges[in.Op]; ok && v.edgeLabels && len(in.Args) == n && (n == 0 || isDirection(in.Args[0])) {
		return Refusal("The provided traversal contains a vertex step without any specified edge label: " + in.Op)
	}
	if in.Op != "property" {
		return nil
	}
	args := in.Args
	if len(args) > 0 {
		if _, ok := args[0].(gvalue.Cardinality); ok {
			args = args[1:]
		}
	}
	if len(args) == 0 {
		return nil
	}
	keys := args[:1]
	if m, ok := args[0].(*gvalue.Map); ok {
		keys = nil
		for _, e := range m.Entries() {
			keys = append(keys, e.Key)
		}
	}
	for _, k := range keys {
		for _, r := range v.reserved {
			if k == r {
				return Refusal("The provided traversal is setting a property key to a reserved word: " + r)
			}
		}
	}
	return nil
}

// productive are the settings of ProductiveByStrategy: a by() without a result gives null.
type productive struct {
	on   bool
	keys []string // properties that all elements have: by(key) stays as it is
}

// Productive reports whether a by() with these arguments gives null where it would have no result.
func (c *Config) Productive(args []any) bool {
	if !c.productive.on {
		return false
	}
	for _, a := range args {
		for _, k := range c.productive.keys {
			if a == k {
				return false
			}
		}
	}
	return true
}
