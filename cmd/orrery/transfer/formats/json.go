package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/json"
)

// JSON lines: one object a line, also what mongoexport writes. Empty lines are skipped. A file without any line, as an
// export of an empty container is, has a name that says so.
var jsonl = &Format{Name: "jsonl", About: "JSON lines, and what mongoexport writes",
	Suffixes: []string{".jsonl", ".ndjson", ".json"}, Output: ".jsonl", Door: NoSQL,
	Is: func(name string, head []byte) bool {
		named := name != "-" && path.Ext(name) != ".txt"
		return firstByte(head) == '{' || named && len(bytes.TrimSpace(head)) == 0
	},
	Read: func(f *File) (transfer.Reader, error) {
		in, err := f.openText()
		if err != nil {
			return nil, err
		}
		return &jsonLines{chunks: newChunks(in), door: f.Door}, nil
	},
	Write: func(o *Output) (transfer.Writer, error) {
		f, err := o.create(o.Path)
		return &jsonWriter{file: f, door: o.Door}, err
	}}

// jsonArray is one array of objects, or one object with such an array ("value", as OData wraps it; "Documents", as a
// reply of the NoSQL API does). It is also what the service's data migration tool writes.
var jsonArray = &Format{Name: "json", About: "an array of objects, as the service's data migration tool writes it",
	Suffixes: []string{".json"}, Output: ".json", Door: NoSQL,
	Is: func(_ string, head []byte) bool { return firstByte(head) == '[' },
	Read: func(f *File) (transfer.Reader, error) {
		in, err := f.openText()
		if err != nil {
			return nil, err
		}
		return &jsonElements{elements: elements{chunks: newChunks(in)}, door: f.Door}, nil
	},
	Write: func(o *Output) (transfer.Writer, error) {
		f, err := o.create(o.Path)
		return &jsonWriter{file: f, door: o.Door, array: true}, err
	}}

type jsonLines struct {
	*chunks
	door string
	room []byte
}

func (j *jsonLines) Next(r *transfer.Row) error {
	for {
		line, err := j.next()
		if err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			*r = transfer.Row{Line: j.line}
			return asJSON(r, line, j.door, &j.room)
		}
	}
}

// asJSON sets the content of r to an object in JSON. For MongoDB the object is Extended JSON, and is converted.
func asJSON(r *transfer.Row, text []byte, door string, room *[]byte) error {
	if end := json.Skip(text, 0); text[0] != '{' || end != len(text) {
		return &transfer.Bad{Line: r.Line, Reason: "the row is not one JSON object", Text: text}
	}
	if door != Mongo {
		r.Text = text
		return nil
	}
	d, err := doc.FromExtJSON((*room)[:0], text)
	if err != nil {
		return &transfer.Bad{Line: r.Line, Reason: err.Error(), Text: text}
	}
	*room, r.Doc = d, d
	return nil
}

// elements finds the objects in an array, or in the first array of objects below the root, without holding the array.
type elements struct {
	*chunks
	depth int  // of arrays and objects that are open
	in    bool // inside of the array
	had   bool // the array was there
	some  bool // the file has anything
	n     int64
}

// maxWrap is the depth of the array of objects.
const maxWrap = 4

// find returns the next element that is an object.
func (e *elements) find() ([]byte, error) {
	for {
		i := json.Space(e.rest(), 0)
		e.from += i
		if len(e.rest()) == 0 {
			if err := e.more(); err == io.EOF {
				switch {
				case e.depth > 0:
					return nil, fmt.Errorf("the JSON ends within an array or object, after %d rows", e.n)
				case e.some && !e.had:
					return nil, errors.New("the JSON has no array of objects; objects that stand one on each line " +
						"have the format jsonl")
				}
				return nil, io.EOF
			} else if err != nil {
				return nil, err
			}
			continue
		}
		e.some = true
		switch ch := e.rest()[0]; {
		case ch == ',' || ch == ':':
			e.from++
		case ch == '[' && !e.in:
			e.depth, e.in, e.had = e.depth+1, true, true
			e.from++
		case ch == ']' && e.in:
			e.depth, e.in = e.depth-1, false
			e.from++
		case ch == '{' && !e.in && e.depth < maxWrap:
			e.depth++
			e.from++
		case ch == '}' && !e.in && e.depth > 0:
			e.depth--
			e.from++
		default:
			text, err := e.value()
			if err != nil || e.in {
				e.n++
				return text, err
			}
		}
	}
}

// value returns the value at the front.
func (e *elements) value() ([]byte, error) {
	var s splitter
	for {
		if end := s.end(e.rest()); end > 0 {
			text := e.rest()[:end]
			e.from += end
			return text, nil
		} else if end < 0 {
			return nil, fmt.Errorf("the JSON is malformed after %d rows", e.n)
		}
		if len(e.rest()) > transfer.MaxRow {
			return nil, fmt.Errorf("row %d has more than %d MiB", e.n+1, transfer.MaxRow>>20)
		}
		if err := e.more(); err == io.EOF {
			return nil, fmt.Errorf("the JSON ends within a value, after %d rows", e.n)
		} else if err != nil {
			return nil, err
		}
	}
}

// splitter finds the end of a JSON value that arrives in pieces: it counts braces outside of strings.
type splitter struct {
	at, depth       int
	text, esc, bare bool
}

// end returns the position behind the value at the front of b, 0 if more is needed, -1 for what is no value. b begins
// with what the last call had.
func (s *splitter) end(b []byte) int {
	for ; s.at < len(b); s.at++ {
		ch := b[s.at]
		switch {
		case s.esc:
			s.esc = false
		case s.text:
			if ch == '\\' {
				s.esc = true
			} else if ch == '"' {
				if s.text = false; s.depth == 0 {
					return s.at + 1
				}
			}
		case s.bare && (ch == ',' || ch == ']' || ch == '}' || ch <= ' '):
			return s.at
		case s.bare:
		case ch == '"':
			s.text = true
		case ch == '{' || ch == '[':
			s.depth++
		case ch == '}' || ch == ']':
			if s.depth--; s.depth < 0 {
				return -1
			} else if s.depth == 0 {
				return s.at + 1
			}
		case s.depth == 0:
			s.bare = true
		}
	}
	return 0
}

type jsonElements struct {
	elements
	door string
	room []byte
}

func (j *jsonElements) Next(r *transfer.Row) error {
	text, err := j.find()
	if err != nil {
		return err
	}
	*r = transfer.Row{Line: j.n}
	return asJSON(r, text, j.door, &j.room)
}

// jsonWriter writes rows as JSON: for MongoDB canonical Extended JSON, else what the API has shown.
type jsonWriter struct {
	*file
	door  string
	array bool
	n     int
	room  []byte
}

func (j *jsonWriter) Add(r *transfer.Row) error {
	text := r.Text
	if text == nil && j.door == Mongo {
		j.room = doc.AppendExtJSON(j.room[:0], doc.Value(r.Doc), false)
		text = j.room
	} else if text == nil {
		j.room = append(doc.AppendJSONFields(append(j.room[:0], '{'), r.Doc, doc.NoSQL), '}')
		text = j.room
	}
	switch {
	case j.array && j.n == 0:
		_, _ = j.b.WriteString("[\n")
	case j.array:
		_, _ = j.b.WriteString(",\n")
	}
	j.n++
	_, _ = j.b.Write(text) // the buffer keeps its error for the end
	if !j.array {
		return j.b.WriteByte('\n')
	}
	return nil
}

func (j *jsonWriter) Close() error {
	if j.array && j.n == 0 {
		_, _ = j.b.WriteString("[")
	}
	if j.array {
		_, _ = j.b.WriteString("\n]\n")
	}
	return j.file.Close()
}
