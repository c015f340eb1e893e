package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// sqlSession runs NoSQL queries.
type sqlSession struct{ c *shellCmd }

func openSQL(c *shellCmd) (shellSession, error) {
	if err := c.nosql(); err != nil {
		return nil, err
	}
	return &sqlSession{c}, nil
}

// prompt implements shellSession.
func (s *sqlSession) prompt() string { return s.c.placePrompt() }

// placePrompt is the prompt of languages whose texts are about one container.
func (c *shellCmd) placePrompt() string {
	if c.Container == "" {
		return "orrery> "
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
	if strings.HasPrefix(text, "--") {
		return nil
	}
	if c.Container == "" {
		return errNoContainer
	}
	q := &queryCmd{Endpoint: c.srv.NoSQL, DB: c.DB, Container: c.Container, Text: strings.TrimSuffix(text, ";"),
		Explain: explain}
	q.Key = c.srv.Key
	out, flush := c.rows()
	ex, err := q.pages(ctx, door.Client(0).Do, out)
	err = errors.Join(err, flush(err != nil))
	if err == nil && explain {
		err = writeExplanation(c.out, ex)
	}
	return err
}

// rows returns what rows are written to as JSON lines: the output, or a table. flush ends them.
func (c *shellCmd) rows() (out io.Writer, flush func(failed bool) error) {
	if c.JSON {
		return c.out, func(bool) error { return nil }
	}
	t := &rowTable{out: c.out, width: c.width}
	return t, t.flush
}

// sqlWords are completed in queries.
var sqlWords = []string{"SELECT", "FROM", "WHERE", "ORDER BY", "GROUP BY", "VALUE", "DISTINCT", "TOP", "OFFSET",
	"LIMIT",
	"JOIN", "EXISTS", "ARRAY", "COUNT(1)", "CONTAINS(", "STARTSWITH(", "IS_DEFINED(", "ARRAY_CONTAINS("}

// words implements shellSession.
func (s *sqlSession) words(line string) ([]string, string) {
	return sqlWords, line[strings.LastIndexByte(line, ' ')+1:]
}
