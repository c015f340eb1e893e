package sql

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

var rewrite = flag.Bool("rewrite", false, "write the answers of testdata/*.sql anew")

// docSource returns documents as the core would: filtered, in the wanted order, with continuations by number.
type docSource struct {
	docs []doc.Doc
	i    int
}

func newDocSource(p *program, f *frame, docs []doc.Doc, from string) *docSource {
	s := &docSource{i: -1}
	if p.rank != nil {
		if err := p.rank.begin(f); err != nil {
			f.fail(err)
			return s
		}
		for _, d := range docs {
			f.setRoot(d, nil)
			p.rank.count(f)
		}
	}
	for _, d := range docs {
		f.setRoot(d, nil)
		if p.top.rootOnly && p.top.where != nil && !funcs.IsTrue(p.top.where(f)) {
			continue
		}
		s.docs = append(s.docs, d)
	}
	if len(p.order) > 0 && p.order[0].desc { // equal keys are reversed too
		slices.Reverse(s.docs)
	}
	sort.SliceStable(s.docs, func(i, j int) bool {
		for _, o := range p.order {
			f.setRoot(s.docs[i], nil)
			a := o.key(f)
			f.setRoot(s.docs[j], nil)
			if d := value.CompareCosmos(a, o.key(f)); d != 0 {
				return (d < 0) != o.desc
			}
		}
		return false
	})
	if from != "" {
		fmt.Sscan(from, &s.i)
	}
	return s
}

func (s *docSource) next() bool                  { s.i++; return s.i < len(s.docs) }
func (s *docSource) item() (doc.Doc, *core.Item) { return s.docs[s.i], nil }
func (s *docSource) err() error                  { return nil }
func (s *docSource) position() string {
	if s.i >= len(s.docs)-1 {
		return ""
	}
	return fmt.Sprint(s.i)
}

// evalDocs runs a query over documents in pages of size rows and returns its rows.
func evalDocs(text string, params []Param, docs []doc.Doc, size int) ([]string, error) {
	return evalPlaces(text, params, docs, size, false)
}

// evalPlaces is evalDocs for a container with geometries in a plane, or on the earth.
func evalPlaces(text string, params []Param, docs []doc.Doc, size int, planar bool) ([]string, error) {
	p, err := cachedFor(text, nil, planar)
	if err != nil {
		return nil, err
	}
	vals, err := p.bind(params)
	if err != nil {
		return nil, err
	}
	var rows []string
	st, first := state{left: -1}, true
	for {
		f := p.frame(vals)
		f.ctx.Now = time.Date(2024, 3, 1, 12, 30, 0, 0, time.UTC)
		f.ctx.Random = func() float64 { return 0.5 }
		if first || p.top.restarts() && len(st.seen) == 0 {
			drop := st.drop
			if st, err = p.begin(f); err != nil {
				return nil, err
			}
			st.drop = drop
		}
		out := &Page{}
		r := &runner{p: p, f: f, src: newDocSource(p, f, docs, st.core), out: out, pageSize: size, st: st}
		if p.rank != nil && p.rank.fused && f.err == nil {
			begin, _ := p.begin(f)
			r.src = newDocSource(p, f, docs, "")
			if err := r.fuse(begin); err != nil {
				return nil, err
			}
			r.src = r.fused
		}
		f.root = rootRow{}
		if f.err != nil {
			return nil, f.err
		}
		next, more, err := r.run()
		p.release(f)
		if err != nil {
			return nil, err
		}
		if size > 0 && out.Count > size {
			return nil, fmt.Errorf("page of %d rows, wanted at most %d", out.Count, size)
		}
		if out.Count > 0 {
			rows = append(rows, splitRows(string(out.Body))...)
		}
		if !more {
			return rows, nil
		}
		st, first = next, false
	}
}

// splitRows splits the rows of a page.
func splitRows(body string) []string {
	v, err := doc.ValueFromJSON([]byte("[" + body + "]"))
	if err != nil {
		return []string{"bad JSON: " + body}
	}
	var out []string
	for it := v.Iter(); it.Next(); {
		out = append(out, string(doc.AppendJSON(nil, it.Value())))
	}
	return out
}

// script is one file of testdata: documents, parameters, and queries with their answers.
//
//	# comment
//	doc {"id":"1"}       one more document; `reset` removes all
//	planar               geometries are in a plane from here on, until `reset`
//	@p = 5               a parameter for the following queries
//	> c.a + 1            a query, or an expression evaluated without documents; its rows follow, one on each line
//	! SC1001 near 'x'    instead of rows: the error's code and a part of its text
type script struct {
	docs   []doc.Doc
	params []Param
	planar bool
	out    strings.Builder
}

func (s *script) run(t *testing.T, lines []string) {
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		s.out.WriteString(line + "\n")
		switch {
		case strings.HasPrefix(line, "doc "):
			d, err := doc.FromJSON(nil, []byte(line[4:]), doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
			s.docs = append(s.docs, d)
		case line == "planar":
			s.planar = true
		case line == "reset":
			s.docs, s.params, s.planar = nil, nil, false
		case strings.HasPrefix(line, "@"):
			name, text, _ := strings.Cut(line[1:], "=")
			v, err := doc.ValueFromJSON([]byte(strings.TrimSpace(text)))
			if err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
			s.params = append(s.params, Param{Name: "@" + strings.TrimSpace(name), Value: v})
		case strings.HasPrefix(line, "> "):
			n := 0
			for i+n+1 < len(lines) && lines[i+n+1] != "" && !strings.HasPrefix(lines[i+n+1], "> ") {
				n++
			}
			s.query(t, i+1, line[2:], lines[i+1:i+1+n])
			i += n
		}
	}
}

func (s *script) query(t *testing.T, no int, text string, want []string) {
	if !strings.HasPrefix(strings.ToUpper(text), "SELECT") {
		text = "SELECT VALUE " + text
	}
	got, err := evalPlaces(text, s.params, s.docs, 0, s.planar)
	if err == nil {
		for _, size := range []int{1, 2, 3} {
			paged, err := evalPlaces(text, s.params, s.docs, size, s.planar)
			if err != nil || strings.Join(paged, "\n") != strings.Join(got, "\n") {
				t.Errorf("line %d: %s\npages of %d give %v (%v), one page %v", no, text, size, paged, err, got)
			}
		}
	}
	if err != nil {
		got = []string{"! " + err.Error()}
		var e *syntax.Error
		if errors.As(err, &e) && !e.Plain {
			got[0] = fmt.Sprintf("! %s %d-%d %s", e.Code, e.Start, e.End, e.Msg)
		}
	} else if len(got) == 0 {
		got = []string{"(none)"}
	}
	for _, g := range got {
		s.out.WriteString(g + "\n")
	}
	if !*rewrite && strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("line %d: %s\n got %s\nwant %s", no, text, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// TestScripts runs testdata/*.sql, each query in one page and in pages of 1, 2 and 3 rows.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{}
			s.run(t, strings.Split(strings.TrimRight(string(b), "\n"), "\n"))
			if *rewrite {
				if err := os.WriteFile(file, []byte(s.out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
