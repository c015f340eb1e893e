package formats

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/doc"
)

// shown reads an input and returns its rows as text, with the errors where they are.
func shown(path string, format *Format, o *Options) string {
	var b strings.Builder
	in, err := transfer.OpenInput(path, nil)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	defer in.Close()
	if format == nil {
		if format, err = Of(in); err != nil {
			return "error: " + err.Error() + "\n"
		}
	}
	if o.Door == "" {
		o.Door = format.Door
	}
	r, err := Open(in, format, o)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	defer r.Close()
	if d, ok := r.(transfer.Defined); ok {
		for _, def := range d.Definitions() {
			fmt.Fprintf(&b, "define %s", def.Place)
			for _, spec := range def.Indexes {
				b.WriteByte(' ')
				b.Write(doc.AppendExtJSON(nil, doc.Value(spec), true))
			}
			for _, spec := range def.Search {
				b.WriteString(" search ")
				b.Write(doc.AppendExtJSON(nil, doc.Value(spec), true))
			}
			b.WriteByte('\n')
		}
	}
	for {
		var row transfer.Row
		err := r.Next(&row)
		var bad *transfer.Bad
		switch {
		case err == io.EOF:
			return b.String()
		case errors.As(err, &bad):
			fmt.Fprintf(&b, "bad %s\n", bad.Error())
			continue
		case err != nil:
			b.WriteString("error: " + err.Error() + "\n")
			return b.String()
		}
		kind := [...]string{"", "vertex ", "edge "}[row.Kind]
		text := row.Text
		if row.Doc != nil {
			text = doc.AppendExtJSON(nil, doc.Value(row.Doc), false)
		}
		place := ""
		if row.Place != "" {
			place = row.Place + " "
		}
		fmt.Fprintf(&b, "%d: %s%s%s\n", row.Line, place, kind, text)
	}
}

// The readers, by cases. `file name=..` has the content of a file, `read` reads the directory of all files so far, or
// the one file called so.
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		dir := t.TempDir()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			arg := func(name, is string) string {
				if d.HasArg(name) {
					d.ScanArgs(t, name, &is)
				}
				return is
			}
			switch d.Cmd {
			case "new":
				dir = t.TempDir()
			case "file":
				name := filepath.Join(dir, arg("name", ""))
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					t.Fatal(err)
				}
				content := []byte(strings.ReplaceAll(strings.ReplaceAll(d.Input, "␍", "\r"), "␀", "\x00"))
				if d.HasArg("documents") {
					content = nil
					for line := range strings.Lines(d.Input) {
						b, err := doc.FromExtJSON(nil, []byte(strings.TrimSpace(line)))
						if err != nil {
							t.Fatal(err)
						}
						content = append(content, b...)
					}
				}
				if err := os.WriteFile(name, content, 0o600); err != nil {
					t.Fatal(err)
				}
			case "link":
				if err := os.Symlink(arg("to", ""), filepath.Join(dir, arg("name", ""))); err != nil {
					t.Fatal(err)
				}
			case "read":
				path := dir
				if d.HasArg("name") {
					path = filepath.Join(dir, arg("name", ""))
				}
				var format *Format
				if f := arg("format", ""); f != "" {
					var err error
					if format, err = Named(f); err != nil {
						t.Fatal(err)
					}
				}
				o := &Options{Door: arg("door", ""), Types: !d.HasArg("plain"), Nested: arg("nested", ""),
					Key: arg("key", "")}
				return strings.ReplaceAll(shown(path, format, o), dir, "DIR")
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			return ""
		})
	})
}

// Every format of the registry has a case.
func TestEveryFormatHasACase(t *testing.T) {
	var all strings.Builder
	files, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, f := range All {
		if !strings.Contains(all.String(), "format="+f.Name+"\n") && f.Name != "archive" {
			t.Errorf("no case has format=%s", f.Name)
		}
	}
}
