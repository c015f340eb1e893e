package mongoshell_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/cmd/orrery/mongoshell"
	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// newShell returns a shell of a server of its own.
func newShell(t testing.TB, change func(*mongoshell.Options)) (*mongoshell.Shell, *bytes.Buffer) {
	t.Helper()
	cfg := server.Ephemeral()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	srv, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	client := door.NewMongoClient(&door.Server{Mongo: srv.Addr(server.Mongo), Account: cfg.Account, Key: cfg.Key})
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), srv.Stop(context.Background())); err != nil {
			t.Error(err)
		}
	})
	out := &bytes.Buffer{}
	o := mongoshell.Options{Client: client, Out: out, Prompt: true, Version: "1.2.3",
		Env: map[string]string{"HOME": "/home/ann"}}
	if change != nil {
		change(&o)
	}
	s, err := mongoshell.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, out
}

// The scripts of testdata: each block is entered as a person does, and what the shell writes follows. In json files
// results are JSON lines.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s, out := newShell(t, func(o *mongoshell.Options) {
			o.JSON = strings.Contains(path, "json")
			o.Prompt = !o.JSON
		})
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string {
			out.Reset()
			if err := s.Line(context.Background(), d.Input); err != nil {
				return out.String() + err.Error() + "\n"
			}
			return out.String()
		})
	})
}

// A script that is cancelled ends, whether it computes or waits for the server, and the shell goes on.
func TestCancel(t *testing.T) {
	s, out := newShell(t, nil)
	for _, text := range []string{"for (;;) {}", "sleep(60000)", "for (;;) { db.c.findOne() }",
		"const w = db.c.watch(); for (;;) w.tryNext()"} {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		if err := s.Line(ctx, text); !errors.Is(err, mongoshell.ErrCancelled) {
			t.Errorf("%s: %v", text, err)
		}
		cancel()
		out.Reset()
		if err := s.Line(context.Background(), "1 + 1"); err != nil || out.String() != "2\n" {
			t.Errorf("after %s: %q, %v", text, out.String(), err)
		}
	}
}

// Errors of scripts name the file and the line of the script, also where the shell's own functions throw.
func TestErrorsHaveLines(t *testing.T) {
	s, _ := newShell(t, nil)
	for text, want := range map[string]string{
		"let a = 1;\nnothere()":                                 "a.js:2: ReferenceError: nothere is not defined",
		"\n\ndb.c.updateOne({}, {})":                            "a.js:3: MongoshInvalidInputError: Update document requires atomic operators",
		"db.c.insertOne({_id: 9});\n\ndb.c.insertOne({_id: 9})": "a.js:3: MongoServerError: E11000",
		"if (1) {\n": "a.js:2: SyntaxError: Unexpected end of input",
		"function f() {\nthrow new Error('x') }\nf()": "a.js:2: Error: x",
		"function g() { g() } g()":                    "a.js: RangeError",
		"const d = {}; d.d = d; db.c.insertOne(d)":    "a.js:1: Error: the document has more than 200 levels",
	} {
		err := s.Run(context.Background(), "a.js", text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	var quit *mongoshell.Quit
	if err := s.Run(context.Background(), "", "quit(3)"); !errors.As(err, &quit) || quit.Code != 3 {
		t.Errorf("quit: %v", err)
	}
}

// docs/shell.md names every method, and each name in its table exists.
func TestDocumentedMethods(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/shell.md")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := newShell(t, nil)
	for row, object := range map[string]string{"`db`": "db", "`db.NAME`": "db.c", "cursors": "db.c.find()", "`rs`": "rs",
		"`db.getMongo().startSession()`": "db.getMongo().startSession()"} {
		_, text, ok := strings.Cut(string(raw), "\n| "+row+" | ")
		if !ok {
			t.Fatalf("no row %s", row)
		}
		text, _, _ = strings.Cut(text, " |\n")
		documented := map[string]bool{}
		for _, m := range regexp.MustCompile("`([a-zA-Z]+)`").FindAllStringSubmatch(text, -1) {
			documented[m[1]] = true
		}
		own := map[string]bool{}
		for _, name := range s.Members(object) {
			own[name] = true
			if !documented[name] && !fields[name] && !(name == "options" && object != "db.c") {
				t.Errorf("%s: %s isn't documented", row, name)
			}
		}
		for name := range documented {
			if !own[name] {
				t.Errorf("%s: there is no %s", row, name)
			}
		}
	}
}

// fields are properties that aren't methods, or have no use of their own.
var fields = map[string]bool{"db": true, "command": true, "namespace": true, "started": true, "id": true, "batch": true,
	"at": true, "fn": true, "number": true, "state": true, "set": true, "start": true, "take": true,
	"more": true, "taken": true, "dressed": true, "end": true, "transaction": true}
