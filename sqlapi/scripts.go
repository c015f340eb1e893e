package sqlapi

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	cjson "github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// The programs of a container are resources of the catalog. A program's text isn't checked when it is stored, as in the
// service: a program with a mistake fails when it runs.

// Limits of the programs of one container.
const (
	maxProcedures = 100
	maxTriggers   = 25
	maxFunctions  = 50
)

// programs returns the resourceType of one kind of program.
func programs(kind core.ResourceKind, segment, param, feed string, rid byte, most int) *resourceType {
	return &resourceType{
		kind: kind, segment: segment, param: param, feed: feed, renames: true, upserts: true, program: true, most: most,
		parse: parseProgram, members: programMembers, tail: nothing,
		rid: func(dst []byte, o *owner, r *core.Resource) []byte {
			coll := o.ct.RID()
			var b [8]byte
			b[0], b[1], b[2], b[3], b[7] = byte(r.Num), byte(r.Num>>8), byte(r.Num>>16), byte(r.Num>>24), rid<<4
			return append(append(dst, coll[:]...), b[:]...)
		},
	}
}

var (
	procedures = programs(core.Procedure, "sprocs", "id", "StoredProcedures", wire.RIDProcedure, maxProcedures)
	triggers   = triggerType()
	functions  = programs(core.Function, "udfs", "id", "UserDefinedFunctions", wire.RIDFunction, maxFunctions)
)

// A program is stored as a line with its attributes and then its text. Only triggers have attributes: the type and the
// operation, as the client has sent them.
//
// Example: "pre create\nfunction check() { .. }".

// programText returns the attributes and the text of a program.
func programText(r *core.Resource) (attributes, text string) {
	a, t, _ := bytes.Cut(r.Body, []byte("\n"))
	return string(a), string(t)
}

// parseProgram reads the text of a program.
func parseProgram(_ *call, body map[string]json.RawMessage) (r core.Resource, err error) {
	text, err := member(body, "body")
	if err != nil {
		return r, err
	}
	r.Body = append([]byte("\n"), text...)
	return r, nil
}

// member returns a member that must be a string and not empty.
func member(body map[string]json.RawMessage, name string) (string, error) {
	raw, ok := body[name]
	if !ok {
		return "", missing(name)
	}
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil || *s == "" {
		return "", status.New(status.BadRequest, "The input content is invalid because the property '%s' is not a "+
			"string or is empty.", name)
	}
	return *s, nil
}

func programMembers(_ *call, dst []byte, r *core.Resource) ([]byte, error) {
	_, text := programText(r)
	dst = append(dst, `"body":`...)
	dst = cjson.AppendString(dst, text)
	return append(dst, ','), nil
}

// The words of a trigger's definition. Update and Replace are the same operation.
var (
	triggerTypes      = []string{"pre", "post"}
	triggerOperations = []string{"all", "create", "replace", "update", "delete"}
)

func triggerType() *resourceType {
	t := programs(core.Trigger, "triggers", "id", "Triggers", wire.RIDTrigger, maxTriggers)
	t.parse, t.members = parseTrigger, triggerMembers
	return t
}

// parseTrigger reads the text, type and operation of a trigger.
func parseTrigger(c *call, body map[string]json.RawMessage) (r core.Resource, err error) {
	if r, err = parseProgram(c, body); err != nil {
		return r, err
	}
	typ, err := word(body, "triggerType", triggerTypes)
	if err != nil {
		return r, err
	}
	operation, err := word(body, "triggerOperation", triggerOperations)
	if err != nil {
		return r, err
	}
	r.Body = append([]byte(typ+" "+operation), r.Body...)
	return r, nil
}

// word returns a member that must be one of words in any case.
func word(body map[string]json.RawMessage, name string, words []string) (string, error) {
	s, err := member(body, name)
	if err != nil {
		return "", err
	}
	if !slices.Contains(words, strings.ToLower(s)) {
		return "", status.New(status.BadRequest, "The value '%s' of the property '%s' is invalid. It must be one of "+
			"%s.", clip(s), name, strings.Join(words, ", "))
	}
	return s, nil
}

func triggerMembers(c *call, dst []byte, r *core.Resource) ([]byte, error) {
	dst, err := programMembers(c, dst, r)
	attributes, _ := programText(r)
	typ, operation, _ := strings.Cut(attributes, " ")
	dst = append(dst, `"triggerType":`...)
	dst = cjson.AppendString(dst, typ)
	dst = append(dst, `,"triggerOperation":`...)
	dst = cjson.AppendString(dst, operation)
	return append(dst, ','), err
}

// counted returns the number of a container's programs of a type, as text.
func (t *resourceType) counted(ctx context.Context, s *Server, ct *core.Container) (string, error) {
	all, err := s.core.Resources(ctx, ct.Database(), t.kind, ct.Num())
	return strconv.Itoa(len(all)), err
}
