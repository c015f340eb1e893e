// Package formats has the formats of files: how each is recognised, read and written. One more format is one line of
// the registry, one file, and one case of testdata/cases.txt.
package formats

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
)

// Doors by which rows are written and read.
const (
	NoSQL = "nosql"
	Mongo = "mongo"
	Table = "table"
	Graph = "graph"
)

// Options are what a user may say about a format.
type Options struct {
	Door   string // NoSQL, Mongo or Table: how JSON is to be understood
	Types  bool   // CSV: a cell that looks like a number or a boolean is one
	Nested string // CSV: separator of the names of nested fields in a column's name; "" = none
	Key    string // of a graph: the property that is the partition key; "" = the graph has none
	Place  string // the name of the container that is exported, "database/container"
}

// Format is one format of files.
type Format struct {
	Name     string
	About    string
	Suffixes []string                             // of file names, without .gz
	Output   string                               // the suffix of files that are written in it, if no format is named
	Door     string                               // by which its rows are written unless the user names another
	Whole    bool                                 // an input is a whole directory, not each file of it
	Aside    func(name string) bool               // of a Whole: a file that such a directory has beside its data
	Is       func(name string, head []byte) bool  // reports whether a file has the format; nil: only its suffix
	Read     func(*File) (transfer.Reader, error) // nil: it can't be read
	Write    func(*Output) (transfer.Writer, error)
	Beside   bool // its writer wants the edges of a vertex beside it
	Typed    bool // its writer wants Row.Doc
	mixed    bool // of a directory: each of its files has a format of its own
}

// All is the registry, in the order in which a file is compared with the formats.
var All = []*Format{
	archive, mongodump, graphcsv, tablecsv, csvFormat, graphml, graphson, tablejson, jsonArray, jsonl,
}

// Named returns a format by its name.
func Named(name string) (*Format, error) {
	var names []string
	for _, f := range All {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return nil, fmt.Errorf("--format %s: want one of %s", name, strings.Join(names, ", "))
}

// File is a file that is to be read, or the files of a directory whose format has them together.
type File struct {
	*Options
	In   *transfer.Input
	Name string // in a directory; "" = the input is the file
}

// Open opens the file from its beginning.
func (f *File) Open() (io.ReadCloser, error) { return f.In.Open(f.Name) }

// Shown returns the file's name for messages.
func (f *File) Shown() string { return f.In.Shown(f.Name) }

// Output is a file or a directory that is to be written.
type Output struct {
	*Options
	Path string    // "-": To
	To   io.Writer // the standard output
}

// Found returns the format of a file by its name and its first bytes.
func Found(name string, head []byte) (*Format, error) {
	bare := strings.ToLower(strings.TrimSuffix(name, ".gz"))
	for _, f := range All {
		suffix := false
		for _, s := range f.Suffixes {
			suffix = suffix || strings.HasSuffix(bare, s)
		}
		if f.Is == nil && suffix || f.Is != nil && (suffix || name == "-" || path.Ext(bare) == ".txt") && f.Is(bare,
			head) {
			return f, nil
		}
	}
	return nil, fmt.Errorf("the format of %s is not known by its name and content: give --format", name)
}

// BySuffix returns the format of a file that is to be written, nil if its name doesn't say.
func BySuffix(name string) *Format {
	bare := strings.ToLower(strings.TrimSuffix(name, ".gz"))
	for _, f := range All {
		if f.Output != "" && strings.HasSuffix(bare, f.Output) {
			return f
		}
	}
	return nil
}

// Of returns the format of an input: that of a file by its name and content, that of a directory by its files.
func Of(in *transfer.Input) (*Format, error) {
	if in.Dir() {
		return ofDirectory(in)
	}
	head, err := in.Head("")
	if err != nil {
		return nil, err
	}
	return Found(in.Path, head)
}

// Open returns the reader of an input.
func Open(in *transfer.Input, format *Format, o *Options) (transfer.Reader, error) {
	if in.Dir() && len(in.Files()) == 0 {
		return nil, fmt.Errorf("%s has no files", in.Path)
	}
	if in.Dir() && !format.Whole {
		return &each{o: o, in: in, format: format, files: in.Files()}, nil
	}
	return format.read(&File{o, in, ""})
}

func (f *Format) read(file *File) (transfer.Reader, error) {
	if f.Read == nil {
		return nil, fmt.Errorf("--format %s can't be imported", f.Name)
	}
	return f.Read(file)
}

// foundIn returns the format of a file of a directory.
func foundIn(in *transfer.Input, name string) (*Format, error) {
	head, err := in.Head(name)
	if err != nil {
		return nil, err
	}
	f, err := Found(name, head)
	if err != nil {
		return nil, fmt.Errorf("the format of %s is not known by its name and content: take it out of the folder, or "+
			"give --format", in.Shown(name))
	}
	return f, nil
}

// ofDirectory returns the format of a directory: a whole one if a file has such a format, else that of all its files.
// No file may be left out, or be read as what it isn't. So they may differ only if one API writes all of them.
func ofDirectory(in *transfer.Input) (*Format, error) {
	found := make([]*Format, len(in.Files()))
	var unknown error
	whole := -1
	for i, name := range in.Files() {
		var err error
		found[i], err = foundIn(in, name)
		unknown = cmp.Or(unknown, err)
		if err == nil && found[i].Whole && whole < 0 {
			whole = i
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("%s has no files", in.Path)
	case whole < 0 && unknown != nil: // a whole format reads the files that it knows
		return nil, unknown
	}
	first := max(0, whole)
	of := found[first]
	for i, name := range in.Files() {
		switch f := found[i]; {
		case f == nil || f == of || of.Aside != nil && of.Aside(name):
		case of.Whole || f.Door != of.Door:
			return nil, fmt.Errorf("%s is %s, and %s is %s: import them one after the other", in.Shown(
				in.Files()[first]), found[first].Name, in.Shown(name), f.Name)
		case !of.mixed:
			mixed := *of
			mixed.Name, mixed.mixed = "folder", true
			of = &mixed
		}
	}
	return of, nil
}

// each reads the files of a directory one after the other. The name of a file is the name of its container.
type each struct {
	o      *Options
	in     *transfer.Input
	format *Format
	files  []string
	r      transfer.Reader
	place  string
}

func (e *each) Next(r *transfer.Row) error {
	for {
		if e.r == nil {
			if len(e.files) == 0 {
				return io.EOF
			}
			name := e.files[0]
			e.files = e.files[1:]
			format, err := e.format, error(nil)
			if format.mixed {
				format, err = foundIn(e.in, name)
			}
			if err == nil {
				e.r, err = format.read(&File{e.o, e.in, name})
			}
			if err != nil {
				return err
			}
			e.place = transfer.Base(name)
		}
		err := e.r.Next(r)
		var bad *transfer.Bad
		switch {
		case err == nil && r.Place == "":
			r.Place = e.place
		case errors.As(err, &bad) && bad.Place == "":
			bad.Place = e.place
		case err == io.EOF:
			err = e.r.Close()
			if e.r = nil; err == nil {
				continue
			}
		}
		return err
	}
}

func (e *each) Close() error {
	if e.r != nil {
		return e.r.Close()
	}
	return nil
}

// firstByte returns the first byte that isn't white space or a byte order mark; 0 = there is none.
func firstByte(head []byte) byte {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, transfer.BOM), " \t\r\n")
	if len(head) == 0 {
		return 0
	}
	return head[0]
}
