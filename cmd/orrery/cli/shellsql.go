package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// sqlSession runs NoSQL queries.
type sqlSession struct {
	c     *shellCmd
	of    string   // the container whose paths are known: DATABASE/CONTAINER
	paths []string // of its first items, such as address.city
}

func openSQL(c *shellCmd) (shellSession, error) {
	if err := c.nosql(); err != nil {
		return nil, err
	}
	return &sqlSession{c: c}, nil
}

// prompt implements shellSession.
func (s *sqlSession) prompt() string { return s.c.placePrompt() }

// placePrompt is the prompt of languages whose texts are about one container.
func (c *shellCmd) placePrompt() string {
	switch {
	case c.DB == "":
		return "orrery> "
	case c.Container == "":
		return c.DB + "> "
	}
	return c.DB + "/" + c.Container + "> "
}

// use implements shellSession.
func (s *sqlSession) use() error { return nil }

// close implements shellSession.
func (s *sqlSession) close() error { return nil }

// unfinished implements shellSession: a text goes on if its end is what is wrong with it.
func (s *sqlSession) unfinished(text string) bool {
	if text = strings.TrimSpace(text); text == "" || strings.HasPrefix(text, "--") || strings.HasSuffix(text, ";") {
		return false
	}
	_, err := syntax.Parse(text, syntax.DefaultLimits())
	var e *syntax.Error
	return errors.As(err, &e) && e.Code == syntax.CodeEOF
}

// run implements shellSession.
func (s *sqlSession) run(ctx context.Context, text string) error { return s.query(ctx, text, false) }

// explain implements shellSession.
func (s *sqlSession) explain(ctx context.Context, text string) error { return s.query(ctx, text, true) }

// query runs a query.
func (s *sqlSession) query(ctx context.Context, text string, explain bool) error {
	c := s.c
	if strings.HasPrefix(text, "--") || strings.Trim(text, "; ") == "" {
		return nil
	}
	if c.Container == "" {
		return c.noContainer()
	}
	q := &queryCmd{Endpoint: c.srv.NoSQL, DB: c.DB, Container: c.Container, Text: strings.TrimSuffix(text, ";"),
		Explain: explain}
	q.Key = c.srv.Key
	out, flush := c.rows()
	ex, err := q.pages(ctx, door.Client(0).Do, out)
	err = flush(err, q.charge)
	if err == nil && explain {
		err = writeExplanation(c.out, ex)
	}
	return err
}

// rows returns what rows are written to as JSON lines: the output, or a table. flush ends them, and returns the error
// of the query, if there was one.
func (c *shellCmd) rows() (out io.Writer, flush func(failed error, charge float64) error) {
	if c.JSON {
		return c.out, func(failed error, _ float64) error { return failed }
	}
	t, clk := &rowTable{out: c.out, width: c.width}, clock.New()
	began := clk.Now()
	return t, func(failed error, charge float64) error {
		if failed != nil {
			return errors.Join(failed, t.draw())
		}
		return t.flush(charge, clk.Now().Sub(began))
	}
}

// sqlWords are completed in queries.
var sqlWords = []string{"SELECT", "FROM", "WHERE", "ORDER BY", "GROUP BY", "VALUE", "DISTINCT", "TOP", "OFFSET",
	"LIMIT",
	"JOIN", "EXISTS", "ARRAY", "COUNT(1)", "CONTAINS(", "STARTSWITH(", "IS_DEFINED(", "ARRAY_CONTAINS("}

// words implements shellSession. Behind an alias and a dot these are the paths of items.
func (s *sqlSession) words(line string) ([]string, string) {
	word := line[strings.LastIndexAny(line, " (,=<>")+1:]
	alias, _, ok := strings.Cut(word, ".")
	if !ok || s.c.Container == "" {
		return sqlWords, line[strings.LastIndexByte(line, ' ')+1:]
	}
	if place := s.c.DB + "/" + s.c.Container; s.of != place {
		s.of, s.paths = place, s.itemPaths()
	}
	of := make([]string, len(s.paths))
	for i, p := range s.paths {
		of[i] = alias + "." + p
	}
	return of, word
}

// itemPaths asks for some items and returns their paths. Without an answer there are none.
func (s *sqlSession) itemPaths() []string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	q := &queryCmd{Endpoint: s.c.srv.NoSQL, DB: s.c.DB, Container: s.c.Container, Text: "SELECT TOP 20 * FROM c"}
	q.Key = s.c.srv.Key
	var rows bytes.Buffer
	if _, err := q.pages(ctx, door.Client(0).Do, &rows); err != nil {
		return nil
	}
	var paths []string
	for line := range bytes.Lines(rows.Bytes()) {
		paths = appendPaths(paths, "", line, 0)
	}
	return paths
}

// appendPaths adds the paths of an object's members that can be written with dots.
func appendPaths(paths []string, before string, raw []byte, depth int) []string {
	const deepest = 4
	if depth == deepest {
		return paths
	}
	_ = json.EachMember(raw, func(name string, value []byte) error { // what is no object has none
		if plainName.MatchString(name) && !slices.Contains(systemFields, name) {
			if path := before + name; !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
			paths = appendPaths(paths, before+name+".", value, depth+1)
		}
		return nil
	})
	return paths
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*$`)
