package gvalue

// Enum is a constant of the Gremlin language. EnumType is the name of its type in requests ("T", "Direction", ..),
// EnumName that of the constant ("id", "OUT", ..).
type Enum interface {
	EnumType() string
	EnumName() string
}

// The enumerations. The string is the name in requests.
type (
	T           string
	Direction   string
	Order       string
	Scope       string
	Pop         string
	Column      string
	Cardinality string
	Barrier     string
	Operator    string
	Pick        string
	Merge       string
	DT          string
	GType       string
)

// Constants of the enumerations.
const (
	TID    T = "id"
	TLabel T = "label"
	TKey   T = "key"
	TValue T = "value"

	OUT  Direction = "OUT"
	IN   Direction = "IN"
	BOTH Direction = "BOTH"

	Asc     Order = "asc"
	Desc    Order = "desc"
	Shuffle Order = "shuffle"
	Incr    Order = "incr" // the name of asc before TinkerPop 3.4, and the service's
	Decr    Order = "decr" // the name of desc before TinkerPop 3.4, and the service's

	Local  Scope = "local"
	Global Scope = "global"

	First Pop = "first"
	Last  Pop = "last"
	All   Pop = "all"
	Mixed Pop = "mixed"

	Keys   Column = "keys"
	Values Column = "values"

	Single      Cardinality = "single"
	ListCard    Cardinality = "list"
	SetCard     Cardinality = "set"
	NormSack    Barrier     = "normSack"
	OpSum       Operator    = "sum"
	OpSumLong   Operator    = "sumLong"
	OpMinus     Operator    = "minus"
	OpMult      Operator    = "mult"
	OpDiv       Operator    = "div"
	OpMin       Operator    = "min"
	OpMax       Operator    = "max"
	OpAssign    Operator    = "assign"
	OpAnd       Operator    = "and"
	OpOr        Operator    = "or"
	OpAddAll    Operator    = "addAll"
	PickAny     Pick        = "any"
	PickNone    Pick        = "none"
	PickUnprod  Pick        = "unproductive"
	MergeCreate Merge       = "onCreate"
	MergeMatch  Merge       = "onMatch"
	MergeOutV   Merge       = "outV"
	MergeInV    Merge       = "inV"
)

// EnumType and EnumName implement Enum.
func (T) EnumType() string           { return "T" }
func (e T) EnumName() string         { return string(e) }
func (Direction) EnumType() string   { return "Direction" }
func (e Direction) EnumName() string { return string(e) }
func (Order) EnumType() string       { return "Order" }
func (e Order) EnumName() string     { return string(e) }
func (Scope) EnumType() string       { return "Scope" }
func (e Scope) EnumName() string     { return string(e) }
func (Pop) EnumType() string         { return "Pop" }
func (e Pop) EnumName() string       { return string(e) }
func (Column) EnumType() string      { return "Column" }
func (e Column) EnumName() string    { return string(e) }
func (Cardinality) EnumType() string { return "Cardinality" }

// EnumName implements Enum.
func (e Cardinality) EnumName() string { return string(e) }
func (Barrier) EnumType() string       { return "Barrier" }
func (e Barrier) EnumName() string     { return string(e) }
func (Operator) EnumType() string      { return "Operator" }
func (e Operator) EnumName() string    { return string(e) }
func (Pick) EnumType() string          { return "Pick" }
func (e Pick) EnumName() string        { return string(e) }
func (Merge) EnumType() string         { return "Merge" }
func (e Merge) EnumName() string       { return string(e) }
func (DT) EnumType() string            { return "DT" }
func (e DT) EnumName() string          { return string(e) }
func (GType) EnumType() string         { return "GType" }
func (e GType) EnumName() string       { return string(e) }

// enumValues has, for each type, the constants, and a function that converts a name. DT and GType accept any name,
// because their lists grow with the language; the step that uses the value checks it.
var enumValues = map[string]struct {
	names []string
	make  func(string) Enum
}{
	"T":           {[]string{"id", "label", "key", "value"}, func(s string) Enum { return T(s) }},
	"Direction":   {[]string{"OUT", "IN", "BOTH"}, func(s string) Enum { return Direction(s) }},
	"Order":       {[]string{"asc", "desc", "shuffle", "incr", "decr"}, func(s string) Enum { return Order(s) }},
	"Scope":       {[]string{"local", "global"}, func(s string) Enum { return Scope(s) }},
	"Pop":         {[]string{"first", "last", "all", "mixed"}, func(s string) Enum { return Pop(s) }},
	"Column":      {[]string{"keys", "values"}, func(s string) Enum { return Column(s) }},
	"Cardinality": {[]string{"single", "list", "set"}, func(s string) Enum { return Cardinality(s) }},
	"Barrier":     {[]string{"normSack"}, func(s string) Enum { return Barrier(s) }},
	"Operator": {[]string{"sum", "sumLong", "minus", "mult", "div", "min", "max", "assign", "and", "or", "addAll"},
		func(s string) Enum { return Operator(s) }},
	"Pick":  {[]string{"any", "none", "unproductive"}, func(s string) Enum { return Pick(s) }},
	"Merge": {[]string{"onCreate", "onMatch", "outV", "inV"}, func(s string) Enum { return Merge(s) }},
	"DT":    {nil, func(s string) Enum { return DT(s) }},
	"GType": {nil, func(s string) Enum { return GType(s) }},
}

// MakeEnum returns the constant name of the enumeration typ. ok is false if there is no such type or constant.
// Direction also accepts the aliases from and to, and lower case.
func MakeEnum(typ, name string) (e Enum, ok bool) {
	def, ok := enumValues[typ]
	if !ok {
		return nil, false
	}
	if typ == "Direction" {
		switch name {
		case "from", "out":
			name = "OUT"
		case "to", "in":
			name = "IN"
		case "both":
			name = "BOTH"
		}
	}
	if def.names == nil {
		return def.make(name), name != ""
	}
	for _, n := range def.names {
		if n == name {
			return def.make(name), true
		}
	}
	return nil, false
}
