package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// gremlinSession runs traversals on one graph.
type gremlinSession struct {
	c      *shellCmd
	client *door.GremlinClient
}

func openGremlin(c *shellCmd) (shellSession, error) {
	if c.srv.Gremlin == "" {
		return nil, errors.New("the server has no Gremlin API, or its address isn't known: give --gremlin-endpoint")
	}
	s := &gremlinSession{c: c}
	return s, s.use()
}

// prompt implements shellSession.
func (s *gremlinSession) prompt() string { return s.c.placePrompt() }

// use implements shellSession. Without a graph it is the one that always exists.
func (s *gremlinSession) use() error {
	if s.c.DB == "" && s.c.Container == "" {
		s.c.DB, s.c.Container = "graphs", "g"
	}
	err := s.close()
	s.client = nil
	if s.c.Container != "" {
		s.client = door.NewGremlinClient(s.c.srv, s.c.DB, s.c.Container)
	}
	return err
}

// close implements shellSession.
func (s *gremlinSession) close() error {
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

// unfinished implements shellSession: a traversal goes on while a bracket is open, or where it ends with a dot.
func (s *gremlinSession) unfinished(text string) bool {
	open, quote := 0, rune(0)
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
		case quote != 0 && r == '\\':
			escaped = true
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '(' || r == '[':
			open++
		case r == ')' || r == ']':
			open--
		}
	}
	return open > 0 || quote == 0 && strings.HasSuffix(strings.TrimSpace(text), ".")
}

// run implements shellSession.
func (s *gremlinSession) run(ctx context.Context, text string) error {
	if s.client == nil {
		return s.c.noContainer()
	}
	if strings.HasPrefix(text, "//") {
		return nil
	}
	out, flush := s.c.rows()
	err := s.client.Eval(ctx, text, func(raw json.RawMessage) error {
		if !s.c.JSON {
			raw = flatElement(raw)
		}
		var line bytes.Buffer
		if err := json.Compact(&line, raw); err != nil {
			return err
		}
		line.WriteByte('\n')
		_, err := out.Write(line.Bytes())
		return err
	})
	return flush(err, s.client.Charge)
}

// flatElement returns a vertex or an edge with its properties as columns, a path as the ids and values on it, and other
// results as they are.
//
//	{"id":"1","label":"person","type":"vertex","properties":{"name":[{"id":"..","value":"Ann"}]}}
//	-> {"id":"1","label":"person","name":"Ann"}
func flatElement(raw json.RawMessage) json.RawMessage {
	var e struct {
		ID, Label, Type, InV, OutV json.RawMessage
		Properties                 json.RawMessage
	}
	if json.Unmarshal(raw, &e) != nil || e.ID == nil || e.Label == nil {
		return flatPath(raw)
	}
	kind := string(e.Type)
	if kind != `"vertex"` && kind != `"edge"` {
		return raw
	}
	var b bytes.Buffer
	put := func(name string, value json.RawMessage) {
		if b.Len() == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(name)
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	put("id", e.ID)
	put("label", e.Label)
	if kind == `"edge"` {
		put("outV", e.OutV)
		put("inV", e.InV)
	}
	d := json.NewDecoder(bytes.NewReader(e.Properties))
	if t, err := d.Token(); err == nil && t == json.Delim('{') {
		for d.More() { // in the order of the reply
			name, err := d.Token()
			var value json.RawMessage
			if err != nil || d.Decode(&value) != nil {
				return raw
			}
			put(fmt.Sprint(name), propertyValue(value))
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}

// flatPath returns a path in one column.
//
//	{"labels":[[],[]],"objects":[{"id":"SEA","label":"airport","type":"vertex"},3]}   ->   {"path":"SEA → 3"}
func flatPath(raw json.RawMessage) json.RawMessage {
	var p struct{ Labels, Objects []json.RawMessage }
	if json.Unmarshal(raw, &p) != nil || len(p.Objects) == 0 || len(p.Labels) != len(p.Objects) {
		return raw
	}
	var steps []string
	for _, o := range p.Objects {
		var e struct{ ID, Label json.RawMessage }
		if json.Unmarshal(o, &e) == nil && e.ID != nil && e.Label != nil {
			o = e.ID
		}
		text := string(o)
		if s := ""; json.Unmarshal(o, &s) == nil {
			text = s
		}
		steps = append(steps, text)
	}
	row, err := json.Marshal(map[string]string{"path": strings.Join(steps, " → ")})
	if err != nil {
		return raw
	}
	return row
}

// propertyValue returns the value of a vertex's property, or the list of them if it has several.
func propertyValue(raw json.RawMessage) json.RawMessage {
	var many []struct{ Value json.RawMessage }
	if json.Unmarshal(raw, &many) != nil || len(many) == 0 || many[0].Value == nil {
		return raw
	}
	if len(many) == 1 {
		return many[0].Value
	}
	var values []json.RawMessage
	for _, one := range many {
		values = append(values, one.Value)
	}
	list, err := json.Marshal(values)
	if err != nil {
		return raw
	}
	return list
}

// gremlinProfile is a result of executionProfile().
type gremlinProfile struct {
	TotalTime float64
	Metrics   []struct {
		Name        string
		Time        float64
		Annotations struct{ PercentTime float64 }
		Counts      struct{ ResultCount int64 }
		StoreOps    []struct {
			Count, Size int64
			Plan        string
		}
	}
}

// explain implements shellSession.
func (s *gremlinSession) explain(ctx context.Context, text string) error {
	if s.client == nil {
		return s.c.noContainer()
	}
	text = strings.TrimSuffix(strings.TrimSpace(text), ";")
	if !strings.HasSuffix(strings.ToLower(text), ".executionprofile()") {
		text += ".executionProfile()"
	}
	return s.client.Eval(ctx, text, func(raw json.RawMessage) error {
		var p gremlinProfile
		if err := json.Unmarshal(raw, &p); err != nil {
			return errors.New("the server doesn't explain traversals in a form that is known here")
		}
		return writeProfile(s.c.out, &p)
	})
}

// writeProfile writes a profile in readable form: each step with its results, time and look-ups.
func writeProfile(w io.Writer, p *gremlinProfile) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s %10s %8s %7s  %s\n", "step", "results", "ms", "time", "read")
	for _, m := range p.Metrics {
		read := ""
		for _, op := range m.StoreOps {
			read = fmt.Sprintf("%s, %d bytes", counted(op.Count, "look-up"), op.Size)
		}
		line := fmt.Sprintf("%-24s %10d %8.0f %6.1f%%  %s", m.Name, m.Counts.ResultCount, m.Time,
			m.Annotations.PercentTime, read)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		for _, op := range m.StoreOps {
			for plan := range strings.Lines(op.Plan) {
				b.WriteString("    " + strings.TrimRight(plan, "\n") + "\n")
			}
		}
	}
	fmt.Fprintf(&b, "%.0f ms\n", p.TotalTime)
	_, err := io.WriteString(w, b.String())
	return err
}

// gremlinWords are completed in traversals.
var gremlinWords = []string{"g.V()", "g.E()", "g.addV(", "g.addE(", ".has(", ".hasLabel(", ".hasId(", ".out(", ".in(",
	".both(", ".outE(", ".inE(", ".bothE(", ".outV()", ".inV()", ".otherV()", ".values(", ".valueMap(", ".properties(",
	".property(", ".limit(", ".order()", ".by(", ".count()", ".group()", ".groupCount()", ".path()", ".project(",
	".select(", ".repeat(", ".times(", ".until(", ".where(", ".dedup()", ".drop()", ".executionProfile()"}

// words implements shellSession.
func (s *gremlinSession) words(line string) ([]string, string) {
	return gremlinWords, line[max(0, strings.LastIndexByte(line, '.')):]
}
