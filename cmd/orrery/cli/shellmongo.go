package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/mongoshell"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/core/plan"
)

// mongoSession runs the language of MongoDB's shell.
type mongoSession struct {
	c      *shellCmd
	client *door.MongoClient
	shell  *mongoshell.Shell
	db     string // of the shell, when it was asked last
	colls  []string
}

func openMongo(c *shellCmd) (shellSession, error) {
	if c.srv.Mongo == "" {
		return nil, errors.New("the server has no MongoDB API, or its address isn't known: give --mongo-endpoint")
	}
	s := &mongoSession{c: c, client: door.NewMongoClient(c.srv)}
	return s, s.use()
}

// use implements shellSession.
func (s *mongoSession) use() (err error) {
	if s.shell != nil {
		s.shell.SetJSON(s.c.JSON)
		if s.c.DB != s.db {
			err = s.shell.Use(s.c.DB)
			s.learned()
		}
		return err
	}
	interactive := s.c.width > 0 || !s.c.JSON && len(s.c.Evals)+len(s.c.Files) == 0
	s.shell, err = mongoshell.New(mongoshell.Options{Client: s.client, Database: s.c.DB, Out: s.c.out, JSON: s.c.JSON,
		Version: version(), Prompt: interactive, Env: environment(),
		Load: func(name string) (string, error) {
			text, err := os.ReadFile(name)
			return string(text), err
		}})
	if err == nil {
		s.learned()
	}
	return err
}

// environment returns the variables of the process.
func environment() map[string]string {
	out := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		out[name] = value
	}
	return out
}

// learned notes the database of the shell, which "use" changes.
func (s *mongoSession) learned() {
	if db := s.shell.DB(); db != s.db {
		s.db, s.c.DB, s.colls = db, db, nil
	}
}

// prompt implements shellSession.
func (s *mongoSession) prompt() string { return s.db + "> " }

// close implements shellSession.
func (s *mongoSession) close() error { return s.client.Close() }

// unfinished implements shellSession.
func (s *mongoSession) unfinished(text string) bool { return mongoshell.Unfinished(text) }

// exitCode is the code of a script that has called quit.
type exitCode int

// Error implements error.
func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ended returns the error of a script for the shell.
func (s *mongoSession) ended(err error) error {
	s.learned()
	var q *mongoshell.Quit
	if !errors.As(err, &q) {
		return err
	}
	if q.Code == 0 {
		return errQuit
	}
	return exitCode(q.Code)
}

// run implements shellSession.
func (s *mongoSession) run(ctx context.Context, text string) error {
	return s.ended(s.shell.Line(ctx, text))
}

// file runs a script of a file, which writes only what it prints.
func (s *mongoSession) file(ctx context.Context, name, text string) error {
	return s.ended(s.shell.Run(ctx, name, text))
}

// mongoExplanation is what is shown of a reply of explain.
type mongoExplanation struct {
	QueryPlanner *struct {
		WinningPlan struct{ Orrery string }
		Orrery      *plan.Explanation
	}
	ExecutionStats *struct{ NReturned, TotalKeysExamined, TotalDocsExamined, ExecutionTimeMillis float64 }
	Stages         []struct {
		Cursor *mongoExplanation `json:"$cursor"`
	}
}

// explain implements shellSession.
func (s *mongoSession) explain(ctx context.Context, text string) error {
	reply, err := s.shell.Explain(ctx, text)
	if err != nil {
		return err
	}
	e := &mongoExplanation{}
	if err := json.Unmarshal([]byte(reply), e); err != nil {
		return err
	}
	if len(e.Stages) > 0 && e.Stages[0].Cursor != nil {
		e = e.Stages[0].Cursor
	}
	if e.QueryPlanner == nil {
		_, err := fmt.Fprintln(s.c.out, reply)
		return err
	}
	return writeMongoExplanation(s.c.out, e)
}

func writeMongoExplanation(w io.Writer, e *mongoExplanation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s%s\n", "plan", e.QueryPlanner.WinningPlan.Orrery)
	if tree := e.QueryPlanner.Orrery; tree != nil {
		for step := range strings.Lines(tree.String()) {
			fmt.Fprintf(&b, "        %s", step)
		}
		b.WriteByte('\n')
	}
	if x := e.ExecutionStats; x != nil {
		fmt.Fprintf(&b, "%-8s%.0f index entries, %.0f documents, in %.0f ms\n%-8s%.0f documents\n", "read",
			x.TotalKeysExamined, x.TotalDocsExamined, x.ExecutionTimeMillis, "kept", x.NReturned)
	}
	_, err := io.WriteString(w, strings.ReplaceAll(b.String(), "\n\n", "\n"))
	return err
}

// beforeDot is the end of a line that names a property of db, or of one of its collections.
var beforeDot = regexp.MustCompile(`(?:^|[^\w$.])((?:db|rs)(?:\.[\w$]+)*)\.([\w$]*)$`)

// lastWord is the word at the end of a line.
var lastWord = regexp.MustCompile(`[\w$]*$`)

// mongoWords are completed where no object is named.
var mongoWords = strings.Fields("db. rs. show use ObjectId( ISODate( NumberLong( NumberDecimal( UUID( " +
	"$match $group $project $sort $limit $skip $unwind $lookup $count $addFields $set $unset $facet $eq $ne $gt $gte " +
	"$lt $lte $in $nin $exists $regex $and $or $not $elemMatch $sum $avg $min $max $first $last $push $inc")

// words implements shellSession.
func (s *mongoSession) words(line string) ([]string, string) {
	if at := beforeDot.FindStringSubmatch(line); at != nil {
		names := s.shell.Members(at[1])
		if at[1] == "db" {
			names = append(names, s.collections()...)
		}
		return names, at[2]
	}
	if name, ok := strings.CutPrefix(line, "use "); ok {
		var dbs []string
		for db := range s.c.names {
			dbs = append(dbs, db)
		}
		return dbs, name
	}
	return mongoWords, lastWord.FindString(line)
}

// collections returns the names of the collections, which are asked for once for each line.
func (s *mongoSession) collections() []string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.colls == nil {
		s.colls, _ = s.client.Collections(ctx, s.db) // without an answer there are none
	}
	return s.colls
}
