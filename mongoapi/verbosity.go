package mongoapi

import (
	"strings"
	"sync"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// The parameter logComponentVerbosity: how much MongoDB's log says about each of its components. This server's log has
// no such components and no messages for debugging, so the levels are kept and shown, and change nothing else.

// components are the components of MongoDB's log, with those that they are part of before the dot.
const components = "accessControl assert command control executor geo globalIndex index network network.asio " +
	"network.bridge network.connectionPool processHealth query query.ce query.optimizer replication " +
	"replication.election replication.heartbeats replication.initialSync replication.rollback sharding " +
	"sharding.migration sharding.rangeDeleter sharding.reshard sharding.shardingCatalogRefresh storage " +
	"storage.journal storage.recovery write ftdc tenantMigration tracking transaction "

// verbosities has the levels that were set, by the names of components; "" is the level of all.
type verbosities struct {
	mu  sync.Mutex
	set map[string]int32
}

// level returns the level of a component: -1 has that of what it is part of.
func (v *verbosities) level(name string) int32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n, ok := v.set[name]; ok {
		return n
	}
	if name == "" {
		return 0
	}
	return -1
}

// append appends the level of a component and those of its parts.
func (v *verbosities) append(dst []byte, name string) []byte {
	dst = bson.AppendInt32(dst, "verbosity", v.level(name))
	for part := range strings.FieldsSeq(components) {
		if of, own := within(part); of == name {
			at, b := bson.BeginObject(dst, own)
			dst = bson.End(v.append(b, part), at)
		}
	}
	return dst
}

// within splits the name of a component into that of which it is part, and its own.
func within(name string) (of, own string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}

// change sets levels; a negative one takes back what was set.
func (v *verbosities) change(to map[string]int32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.set == nil {
		v.set = map[string]int32{}
	}
	for name, n := range to {
		if v.set[name] = n; n < 0 {
			delete(v.set, name)
		}
	}
}

// readVerbosity reads the levels of a component and of its parts.
func readVerbosity(d value.Value, name string, to map[string]int32) error {
	shown := name
	if name == "" {
		shown = "default"
	}
	return fields(d, func(own string, v value.Value, _ []byte) error {
		n, _ := num.ToInt64(v, true)
		part := strings.TrimPrefix(name+"."+own, ".")
		switch {
		case own == "verbosity" && !v.IsNumber():
			return merr.New(merr.BadValue, "Expected %s.verbosity to be a number, but found %s", shown,
				expr.TypeName(v))
		case own == "verbosity":
			to[name] = int32(n)
		case !strings.Contains(" "+components, " "+part+" "):
			return merr.New(merr.BadValue, "Invalid component name %s.%s", shown, own)
		case v.IsNumber():
			to[part] = int32(n)
		case v.Kind() != value.Object:
			return merr.New(merr.BadValue, "Invalid type %s for component %s.%s", expr.TypeName(v), shown, own)
		default:
			return readVerbosity(v, part, to)
		}
		return nil
	})
}

// setVerbosity sets the parameter logComponentVerbosity.
func setVerbosity(s *Server, v value.Value) error {
	if v.Kind() != value.Object {
		return merr.New(merr.TypeMismatch, "log component verbosity is not a BSON object: logComponentVerbosity: %s",
			update.Show(v))
	}
	to := map[string]int32{}
	if err := readVerbosity(v, "", to); err != nil {
		return err
	}
	s.verbosities.change(to)
	return nil
}

// setLogLevel sets the parameter logLevel, which is the level of all components.
func setLogLevel(s *Server, v value.Value) error {
	n, _ := num.ToInt64(v, true)
	if !v.IsNumber() || n < 0 {
		return merr.New(merr.BadValue, "Invalid value for logLevel: logLevel: %s", update.Show(v))
	}
	s.verbosities.change(map[string]int32{"": int32(n)})
	return nil
}
