package graphapi

import (
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/wire/graphbinary"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// work is one request with everything that its reply needs.
type work struct {
	conn    *conn
	req     *message.Request
	reply   *reply
	ser     serializer
	size    int // bytes of the frame
	held    *budget.Account
	session *session
}

// operation is one row of the table of operations. run is called on the reading goroutine and must not block.
type operation struct {
	processors string // the allowed processors, each between spaces
	run        func(w *work)
}

// operations is the table of operations. Authentication is handled before (see admit).
var operations = map[string]operation{
	"eval":     {" session ", (*work).eval}, // also allowed without a processor
	"bytecode": {" traversal session ", (*work).bytecode},
	"close":    {" session ", (*work).closeSession},
	"invalid": {" traversal session ", func(w *work) {
		w.reply.fail(
			fail(kindMalformed, "Message could not be parsed. Check the format of the request. [%s]", w.req.ID))
	}},
}

// dispatch finds the operation of a request and starts it.
func (c *conn) dispatch(w *work) {
	op, ok := operations[w.req.Op]
	w.begin(ok)
	if !ok {
		w.reply.fail(fail(kindMalformed, "Message with op code [%.50s] is not recognized.", w.req.Op))
		return
	}
	p := w.req.Processor
	if p != "" && (strings.Contains(p, " ") || !strings.Contains(op.processors, " "+p+" ")) {
		w.reply.fail(fail(kindArguments, "Invalid OpProcessor requested [%.50s]", p))
		return
	}
	if p == "session" {
		id, ok := w.req.String("session")
		if v, _ := w.req.Args.GetString("session"); !ok {
			var u gvalue.UUID
			if u, ok = v.(gvalue.UUID); ok {
				id = u.String()
			}
		}
		if !ok || id == "" || len(id) > 256 {
			w.reply.fail(fail(kindArguments, "A message with an [%s] op code requires a [session] argument", w.req.Op))
			return
		}
		var f *failure
		if w.session, f = c.session(id); f != nil {
			w.reply.fail(f)
			return
		}
	}
	op.run(w)
}

func (w *work) eval() {
	script, ok := w.req.String("gremlin")
	if !ok {
		w.reply.fail(fail(kindArguments, "A message with an [eval] op code requires a [gremlin] argument."))
		return
	}
	w.req.Script = script
	w.evaluate()
}

func (w *work) bytecode() {
	v, _ := w.req.Args.GetString("gremlin")
	b, ok := v.(*gvalue.Bytecode)
	if !ok {
		w.reply.fail(fail(kindArguments, "A message with [bytecode] op code requires a [gremlin] argument that is "+
			"of type Bytecode."))
		return
	}
	w.req.Bytecode, w.reply.bytecode = b, true
	w.evaluate()
}

// evaluate starts an evaluation.
func (w *work) evaluate() {
	w.req.Service = w.reply.service
	if f := w.conn.srv.readEvaluation(w.req); f != nil {
		w.reply.fail(f)
		return
	}
	if _, binary := w.ser.codec.(graphbinary.Codec); binary && w.conn.bare {
		w.req.Tokens = true
	}
	batch := int64(defaultBatchSize)
	if n, ok := w.req.Int("batchSize"); ok && n > 0 {
		batch = min(n, maxBatchSize)
	}
	w.conn.start(w, func() { w.run(int(batch)) })
}

// readsBareElements reports whether a client, of which agent is the User-Agent, reads elements in GraphBinary only if
// they have no properties. gremlinpython before 3.7 skips the two bytes of an absent list in place of reading the list,
// and what follows in the same message is wrong: the second element of a path, or the second result.
func readsBareElements(agent string) bool {
	_, version, ok := strings.Cut(agent, "Gremlin-Python.")
	return ok && (strings.HasPrefix(version, "3.6.") || strings.HasPrefix(version, "3.5.") ||
		strings.HasPrefix(version, "3.4."))
}

// readEvaluation reads the common arguments of all evaluations. The timeout is limited to the server's.
func (s *Server) readEvaluation(r *message.Request) (f *failure) {
	if r.Source, f = readSource(r); f != nil {
		return f
	}
	if r.Bindings, f = readBindings(r); f != nil {
		return f
	}
	r.Timeout = defaultTimeout
	for _, name := range []string{"scriptEvaluationTimeout", "evaluationTimeout"} {
		if ms, ok := r.Int(name); ok {
			r.Timeout = time.Duration(min(max(ms, 0), int64(1<<31))) * time.Millisecond
		}
	}
	if m := s.o.MaxTime; m > 0 && (r.Timeout <= 0 || r.Timeout > m) {
		r.Timeout = m
	}
	m, _ := r.String("materializeProperties")
	r.Tokens = m == "tokens"
	return nil
}

// readSource returns the traversal source for which g is an alias.
func readSource(r *message.Request) (string, *failure) {
	aliases := r.Map("aliases")
	switch {
	case aliases.Len() == 0:
		return "g", nil
	case aliases.Len() > 1:
		return "", fail(kindArguments, "A message with [%s] op code requires the [aliases] argument to be a Map "+
			"containing one alias assignment.", r.Op)
	}
	s, ok := aliases.Entries()[0].Value.(string)
	if !ok {
		return "", fail(kindArguments, "The [aliases] argument maps names to names of traversal sources")
	}
	return s, nil
}

// reserved are the names that a TinkerPop client may not bind. The service allows all names.
var reserved = func() map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields("T id label key value Direction OUT IN BOTH Order asc desc shuffle Scope local " +
		"global Pop first last all mixed " +
		"Column keys values Cardinality single list set Barrier normSack Operator Pick P TextP __ g") {
		m[n] = true
	}
	return m
}()

func readBindings(r *message.Request) (map[string]any, *failure) {
	b := r.Map("bindings")
	if b.Len() == 0 {
		return nil, nil
	}
	m := make(map[string]any, b.Len())
	var bad []string
	for _, e := range b.Entries() {
		name, ok := e.Key.(string)
		if !ok {
			return nil, fail(kindArguments, "The [%s] message is using one or more invalid binding keys - they must "+
				"be of type String and cannot be null", r.Op)
		}
		if reserved[name] && !r.Service {
			bad = append(bad, name)
		}
		m[name] = e.Value
	}
	if len(bad) > 0 {
		return nil, fail(kindArguments, "The [%s] message supplies one or more invalid parameters key of [%s] - "+
			"these are reserved names.", r.Op,
			strings.Join(bad, ", "))
	}
	return m, nil
}
