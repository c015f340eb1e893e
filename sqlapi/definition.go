package sqlapi

import (
	"bytes"
	"encoding/json"
	"sort"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/sqlapi/wire"

	cjson "github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
)

// definitionJSON is a container as a client sends it. Unknown members are ignored, as the service does with system
// fields.
type definitionJSON struct {
	ID             *string         `json:"id"`
	PartitionKey   json.RawMessage `json:"partitionKey"`
	IndexingPolicy json.RawMessage `json:"indexingPolicy"`
	DefaultTTL     json.RawMessage `json:"defaultTtl"`
	UniqueKeys     json.RawMessage `json:"uniqueKeyPolicy"`
	Conflict       json.RawMessage `json:"conflictResolutionPolicy"`
	Computed       json.RawMessage `json:"computedProperties"`
	Geospatial     json.RawMessage `json:"geospatialConfig"`
	ChangeFeed     json.RawMessage `json:"changeFeedPolicy"`
	Vector         json.RawMessage `json:"vectorEmbeddingPolicy"`
	FullText       json.RawMessage `json:"fullTextPolicy"`
	Encryption     json.RawMessage `json:"clientEncryptionPolicy"`
	AnalyticalTTL  json.RawMessage `json:"analyticalStorageTtl"`
}

// propertyPrefix starts the name under which a member of the definition is kept with the container.
const propertyPrefix = "nosql."

// Members that each container has, with the service's default values.
var defaultMembers = map[string]string{
	"conflictResolutionPolicy": `{"mode":"LastWriterWins","conflictResolutionPath":"/_ts",` +
		`"conflictResolutionProcedure":""}`,
	"geospatialConfig": configGeography,
}

const systemKeyPath = "/_partitionKey"

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// parseDefinition reads and validates a container's definition. old is the present one when it is replaced, nil on
// create. If whole is set, a replacement without the unique keys is refused as one that changes them.
func parseDefinition(body []byte, old *core.ContainerSpec, whole bool) (core.ContainerSpec, error) {
	var none core.ContainerSpec
	var d definitionJSON
	if err := json.Unmarshal(body, &d); err != nil {
		return none, status.New(status.BadRequest, "The request body is not a valid container definition.")
	}
	if d.ID == nil {
		return none, missing("id")
	}
	if err := validName(*d.ID); err != nil {
		return none, err
	}
	spec := core.ContainerSpec{ID: *d.ID, Origin: "nosql", Properties: map[string][]byte{}}
	if old != nil {
		spec.Origin, spec.Throughput, spec.ExtendedJSON = old.Origin, old.Throughput, old.ExtendedJSON
		for k, v := range old.Properties {
			if !strings.HasPrefix(k, propertyPrefix) {
				spec.Properties[k] = v
			}
		}
	}
	var err error
	if spec.PartitionKey, err = parseKeyDef(d.PartitionKey); err != nil {
		return none, err
	}
	if spec.UniqueKeys, err = parseUniqueKeys(d.UniqueKeys); err != nil {
		return none, err
	}
	if old != nil {
		if err := d.keepFixed(&spec, old, whole); err != nil {
			return none, err
		}
	}
	if spec.IndexingPolicy, err = normalIndexing(d.IndexingPolicy); err != nil {
		return none, err
	}
	if d.DefaultTTL != nil { // null is not absent here
		n, err := strconv.ParseInt(string(d.DefaultTTL), 10, 64)
		if err != nil || !validTTL(n) {
			return none, badTTL(string(d.DefaultTTL))
		}
		ttl := int32(n)
		spec.DefaultTTL = &ttl
	}
	if spec.LogMinutes, err = parseChangeFeedPolicy(d.ChangeFeed); err != nil {
		return none, err
	}
	if err := d.keepMembers(&spec); err != nil {
		return none, err
	}
	spec.IndexingPolicy = indexTexts(&spec)
	if old != nil {
		if err := keepVectors(&spec, old); err != nil {
			return none, err
		}
		spec.IndexingPolicy = keepForeignRules(spec.IndexingPolicy, old.IndexingPolicy)
	}
	return spec, nil
}

// keepFixed refuses a replacement that changes the id, the partition key or the unique keys. What the client left out
// stays; with whole, the unique keys may not be left out.
func (d *definitionJSON) keepFixed(spec, old *core.ContainerSpec, whole bool) error {
	switch {
	case spec.ID != old.ID:
		return status.New(status.BadRequest, "The id of a container cannot be changed.")
	case !isNull(d.PartitionKey) && !sameDef(spec.PartitionKey, old.PartitionKey):
		return status.New(status.BadRequest, "Document collection partition key cannot be changed.")
	case (whole || !isNull(d.UniqueKeys)) && !sameUnique(spec.UniqueKeys, old.UniqueKeys):
		return status.New(status.Forbidden, "The unique index cannot be modified. To change the unique index, remove "+
			"the collection and re-create a new one.")
	}
	spec.PartitionKey, spec.UniqueKeys = old.PartitionKey, old.UniqueKeys
	return nil
}

func missing(name string) error {
	return status.New(status.BadRequest, "The input content is invalid because the required properties - '%s; ' - "+
		"are missing", name)
}

// keepMembers checks the shape of the members that are stored as sent, and stores them.
func (d *definitionJSON) keepMembers(spec *core.ContainerSpec) error {
	for _, m := range []struct {
		name  string
		raw   json.RawMessage
		check func(json.RawMessage) error
	}{
		{"conflictResolutionPolicy", d.Conflict, checkConflictPolicy},
		{"geospatialConfig", d.Geospatial, checkGeospatial},
		{"computedProperties", d.Computed, isArray},
		{"changeFeedPolicy", d.ChangeFeed, func(json.RawMessage) error { return nil }}, // it is parsed
		{"vectorEmbeddingPolicy", d.Vector, checkVectorPolicy},
		{"fullTextPolicy", d.FullText, checkFullText},
		{"clientEncryptionPolicy", d.Encryption, checkEncryption},
		{"analyticalStorageTtl", d.AnalyticalTTL, checkAnalyticalTTL},
	} {
		if isNull(m.raw) {
			continue
		}
		if err := m.check(m.raw); err == errInvalid {
			return invalidMember(m.name)
		} else if err != nil {
			return err
		}
		spec.Properties[propertyPrefix+m.name] = compact(m.raw)
	}
	if err := checkBoxes(spec); err != nil {
		return err
	}
	if err := checkVectorIndexes(spec); err != nil {
		return err
	}
	if err := checkTextIndexes(spec); err != nil {
		return err
	}
	return checkComputed(spec)
}

func checkConflictPolicy(raw json.RawMessage) error {
	var p struct {
		Mode string `json:"mode"`
	}
	if json.Unmarshal(raw, &p) != nil || !strings.EqualFold(p.Mode, "LastWriterWins") &&
		!strings.EqualFold(p.Mode, "Custom") {
		return errInvalid
	}
	return nil
}

func checkGeospatial(raw json.RawMessage) error {
	var p struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &p) != nil || p.Type != "Geography" && p.Type != "Geometry" {
		return errInvalid
	}
	return nil
}

// isArray checks that a member is an array. Such a member is validated further when the whole definition is known.
func isArray(raw json.RawMessage) error {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 || raw[0] != '[' {
		return errInvalid
	}
	return nil
}

func checkAnalyticalTTL(raw json.RawMessage) error {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err != nil || n < -1 {
		return errInvalid
	}
	return nil
}

// parseKeyDef parses a partition key definition. An absent one gives the system key, with which items need no key.
func parseKeyDef(raw json.RawMessage) (core.PartitionKeyDef, error) {
	var none core.PartitionKeyDef
	if isNull(raw) {
		return core.PartitionKeyDef{Paths: []string{systemKeyPath}, Kind: "Hash", Version: 2, SystemKey: true,
			Scalar: true}, nil
	}
	var k struct {
		Paths     []string        `json:"paths"`
		Kind      string          `json:"kind"`
		Version   json.RawMessage `json:"version"`
		SystemKey bool            `json:"systemKey"`
	}
	bad := func(format string, args ...any) (core.PartitionKeyDef, error) {
		return none, status.New(status.BadRequest, "The partition key definition is invalid: "+format, args...)
	}
	if json.Unmarshal(raw, &k) != nil {
		return bad("it is not of the documented shape.")
	}
	if len(k.Paths) == 0 {
		return bad("it has no path.")
	}
	def := core.PartitionKeyDef{Paths: k.Paths, Kind: "Hash", Version: 1, SystemKey: k.SystemKey, Scalar: true}
	switch k.Kind {
	case "", "Hash", "Range":
		if len(k.Paths) > 1 {
			return bad("Too many partition key paths: only kind MultiHash has more than one.")
		}
	case "MultiHash":
		def.Kind, def.Version = "MultiHash", 2
		if len(k.Paths) > maxKeyPaths {
			return bad("Too many partition key paths: at most %d are allowed.", maxKeyPaths)
		}
	default:
		return bad("unknown kind '%s'.", clip(k.Kind))
	}
	if !isNull(k.Version) {
		switch v := strings.TrimPrefix(strings.Trim(string(k.Version), `"`), "V"); { // Java writes "V2"
		case v == "1" && def.Kind != "MultiHash":
			def.Version, def.Versioned = 1, true
		case v == "2":
			def.Version = 2
		default:
			return bad("unknown version %s.", clip(string(k.Version)))
		}
	}
	for i, p := range k.Paths {
		if !validPath(p) || strings.Contains(p, "[]") {
			return bad("the path '%s' could not be accepted.", clip(p))
		}
		switch p {
		case "/_rid", "/_self", "/_etag", "/_ts", "/_attachments":
			return bad("the path '%s' names a system property.", p)
		case systemKeyPath:
			def.SystemKey = true
		}
		for _, q := range k.Paths[:i] {
			if p == q {
				return bad("the path '%s' is given twice.", clip(p))
			}
		}
	}
	return def, nil
}

// parseUniqueKeys reads a unique key policy.
func parseUniqueKeys(raw json.RawMessage) ([][]string, error) {
	if isNull(raw) {
		return nil, nil
	}
	var p struct {
		UniqueKeys []struct {
			Paths []string `json:"paths"`
		} `json:"uniqueKeys"`
	}
	bad := func(format string, args ...any) ([][]string, error) {
		return nil, status.New(status.BadRequest, "The unique key policy is invalid: "+format, args...)
	}
	if json.Unmarshal(raw, &p) != nil {
		return bad("it is not of the documented shape.")
	}
	if len(p.UniqueKeys) > maxUniqueKeys {
		return bad("more than %d constraints.", maxUniqueKeys)
	}
	var out [][]string
	for _, k := range p.UniqueKeys {
		if len(k.Paths) == 0 || len(k.Paths) > maxUniquePaths {
			return bad("a constraint has 1 to %d paths.", maxUniquePaths)
		}
		for _, path := range k.Paths {
			if !validPath(path) || strings.Contains(path, "[]") {
				return bad("the path '%s' could not be accepted.", clip(path))
			}
		}
		out = append(out, k.Paths)
	}
	return out, nil
}

// sameDef reports whether a replacement has the same partition key. Its version may be absent.
func sameDef(a, b core.PartitionKeyDef) bool {
	if len(a.Paths) != len(b.Paths) || a.Kind != b.Kind {
		return false
	}
	for i := range a.Paths {
		if a.Paths[i] != b.Paths[i] {
			return false
		}
	}
	return true
}

func sameUnique(a, b [][]string) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y) || len(a)+len(b) == 0
}

// appendContainer appends a container as the service shows it, with the system key or without it.
func appendContainer(dst []byte, ct core.Definition, systemKey bool) []byte {
	spec := ct.Spec()
	dst = append(dst, `{"id":`...)
	dst = cjson.AppendString(dst, spec.ID)
	dst = append(dst, `,"indexingPolicy":`...)
	if len(spec.IndexingPolicy) > 0 {
		dst = append(dst, ownRules(spec.IndexingPolicy)...)
	} else {
		dst = append(dst, core.DefaultIndexing...)
	}
	if systemKey || !spec.PartitionKey.SystemKey {
		dst = appendKeyDef(dst, &spec.PartitionKey)
	}
	if spec.DefaultTTL != nil {
		dst = append(dst, `,"defaultTtl":`...)
		dst = strconv.AppendInt(dst, int64(*spec.DefaultTTL), 10)
	}
	if len(spec.UniqueKeys) > 0 {
		dst = append(dst, `,"uniqueKeyPolicy":{"uniqueKeys":[`...)
		for i, k := range spec.UniqueKeys {
			if i > 0 {
				dst = append(dst, ',')
			}
			paths, _ := marshal(k) // marshalling strings can't fail
			dst = append(dst, `{"paths":`...)
			dst = append(append(dst, paths...), '}')
		}
		dst = append(dst, `]}`...)
	}
	dst = appendMembers(dst, spec)
	return appendContainerSystem(dst, ct)
}

// appendKeyDef appends the member with the partition key definition.
func appendKeyDef(dst []byte, k *core.PartitionKeyDef) []byte {
	dst = append(dst, `,"partitionKey":{"paths":[`...)
	for i, p := range k.Paths {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = cjson.AppendString(dst, p)
	}
	dst = append(dst, `],"kind":`...)
	dst = cjson.AppendString(dst, k.Kind)
	if k.Version > 1 || k.Versioned {
		dst = append(dst, `,"version":`...)
		dst = strconv.AppendInt(dst, int64(k.Version), 10)
	}
	if k.SystemKey {
		dst = append(dst, `,"systemKey":true`...)
	}
	return append(dst, '}')
}

// appendMembers appends the kept members in a fixed order.
func appendMembers(dst []byte, spec *core.ContainerSpec) []byte {
	names := make([]string, 0, len(defaultMembers)+len(spec.Properties))
	for n := range defaultMembers {
		names = append(names, n)
	}
	for k := range spec.Properties {
		if n, ok := strings.CutPrefix(k, propertyPrefix); ok && defaultMembers[n] == "" {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	for _, n := range names {
		v := string(spec.Properties[propertyPrefix+n])
		if v == "" {
			v = defaultMembers[n]
		}
		dst = append(dst, ',')
		dst = cjson.AppendString(dst, n)
		dst = append(dst, ':')
		dst = append(dst, v...)
	}
	return dst
}

func appendContainerSystem(dst []byte, ct core.Definition) []byte {
	rid := ct.RID()
	dst = append(dst, `,"_rid":"`...)
	dst = wire.AppendRID(dst, rid[:])
	dst = append(dst, `","_ts":`...)
	dst = strconv.AppendInt(dst, ct.TS(), 10)
	dst = append(dst, `,"_self":"`...)
	dst = appendContainerSelf(dst, rid)
	dst = append(dst, `","_etag":`...)
	dst = appendQuotedETag(dst, ct.ETag())
	return append(dst, `,"_docs":"docs/","_sprocs":"sprocs/","_triggers":"triggers/","_udfs":"udfs/",`+
		`"_conflicts":"conflicts/"}`...)
}

// appendContainerSelf appends dbs/<rid>/colls/<rid>/.
func appendContainerSelf(dst []byte, rid [8]byte) []byte {
	dst = append(dst, "dbs/"...)
	dst = wire.AppendRID(dst, rid[:4])
	dst = append(dst, "/colls/"...)
	dst = wire.AppendRID(dst, rid[:])
	return append(dst, '/')
}
