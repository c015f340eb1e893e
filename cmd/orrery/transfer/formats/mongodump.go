package formats

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// mongodump is a folder as mongodump writes it, that of one database in it, or a single .bson file:
//
//	dump/shop/orders.bson            the documents, one behind the other
//	dump/shop/orders.metadata.json   {"options": {..}, "indexes": [{"v": 2, "key": {"n": 1}, "name": "n_1"}, ..], ..}
//
// MongoDB's tools neither write nor read search indexes. Here they are another field, which those tools ignore:
//
//	"searchIndexes": [{"name": "near", "type": "vectorSearch", "definition": {..}}, ..]
//
// All files may be packed by gzip. Collections called system.* are left out: they are MongoDB's own.
var mongodump = &Format{Name: "mongodump", About: "a folder of mongodump, or a .bson file", Suffixes: []string{".bson"},
	Door: Mongo, Whole: true, Typed: true, Read: readDump, Write: writeDump,
	Aside: func(name string) bool {
		bare := path.Base(strings.TrimSuffix(name, ".gz"))
		return strings.HasSuffix(bare, metadataSuffix) || bare == "prelude.json"
	}}

const (
	bsonSuffix     = ".bson"
	metadataSuffix = ".metadata.json"
)

func readDump(f *File) (transfer.Reader, error) {
	d := &dump{f: f}
	if !f.In.Dir() {
		d.files = []string{""}
		return d, nil
	}
	for _, name := range f.In.Files() {
		bare := strings.TrimSuffix(name, ".gz")
		switch {
		case strings.HasPrefix(path.Base(name), "system."):
		case strings.HasSuffix(bare, metadataSuffix):
			if err := d.define(name); err != nil {
				return nil, err
			}
		case strings.HasSuffix(bare, bsonSuffix) && path.Base(bare) != "oplog.bson":
			d.files = append(d.files, name)
		}
	}
	if len(d.files) == 0 && len(d.defs) == 0 {
		return nil, fmt.Errorf("%s has no .bson files", f.In.Path)
	}
	return d, nil
}

type dump struct {
	f     *File
	files []string
	defs  []transfer.Definition
	in    *documents
	place string
}

// placeOf returns the namespace of a file of the folder, such as "shop/orders" or "orders".
func placeOf(name string) string {
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	for _, suffix := range []string{".gz", bsonSuffix, metadataSuffix} {
		parts[last] = strings.TrimSuffix(parts[last], suffix)
	}
	for i := range parts {
		if p, err := url.PathUnescape(parts[i]); err == nil {
			parts[i] = p
		}
	}
	return strings.Join(parts[max(0, last-1):], "/")
}

func (d *dump) Definitions() []transfer.Definition { return d.defs }

// searchIndexes is the field of metadata with the search indexes.
const searchIndexes = "searchIndexes"

// mostMetadata is the size of the largest metadata in bytes.
const mostMetadata = 16 << 20

// define reads a file of metadata.
func (d *dump) define(name string) error {
	f, err := d.f.In.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostMetadata))
	if err != nil {
		return err
	}
	def, err := definition(placeOf(name), text)
	if err != nil {
		return fmt.Errorf("%s: %w", d.f.In.Shown(name), err)
	}
	d.defs = append(d.defs, def)
	return nil
}

// definition reads metadata, which are Extended JSON.
func definition(place string, text []byte) (transfer.Definition, error) {
	def := transfer.Definition{Place: place}
	if len(text) == 0 {
		return def, nil
	}
	meta, err := doc.FromExtJSON(nil, text)
	if err != nil {
		return def, err
	}
	if o := doc.Get(meta, "options"); o.Kind() == value.Object && len(o.Bytes()) > len(bson.Empty) {
		def.Options = o.Bytes()
	}
	for it := doc.Get(meta, "indexes").Iter(); it.Next(); {
		spec := it.Value()
		key := spec.Get("key")
		if spec.Kind() == value.Object && !(key.Len() == 1 && key.Get("_id").IsDefined()) {
			def.Indexes = append(def.Indexes, spec.Bytes())
		}
	}
	for it := doc.Get(meta, searchIndexes).Iter(); it.Next(); {
		if it.Value().Kind() == value.Object {
			def.Search = append(def.Search, it.Value().Bytes())
		}
	}
	return def, nil
}

func (d *dump) Next(r *transfer.Row) error {
	for {
		if d.in == nil {
			if len(d.files) == 0 {
				return io.EOF
			}
			name := d.files[0]
			d.files = d.files[1:]
			f, err := d.f.In.Open(name)
			if err != nil {
				return err
			}
			d.in, d.place = &documents{chunks: newChunks(f)}, ""
			if name != "" {
				d.place = placeOf(name)
			}
		}
		text, err := d.in.next()
		if err == io.EOF {
			err = d.in.Close()
			if d.in = nil; err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		*r = transfer.Row{Place: d.place, Line: d.in.n, Doc: text}
		return checked(r)
	}
}

// checked refuses bytes that are no document, so that what follows may trust them.
func checked(r *transfer.Row) error {
	if err := doc.Validate(r.Doc, 0); err != nil {
		return &transfer.Bad{Line: r.Line, Place: r.Place, Reason: err.Error(), Text: []byte(fmt.Sprintf("%x", r.Doc))}
	}
	return nil
}

func (d *dump) Close() error {
	if d.in != nil {
		return d.in.Close()
	}
	return nil
}

// documents are BSON documents one behind the other.
type documents struct {
	*chunks
	n int64
}

// take returns the next n bytes of the file.
func (d *documents) take(n int) ([]byte, error) {
	for len(d.rest()) < n {
		if err := d.more(); err == io.EOF && len(d.rest()) > 0 {
			return nil, fmt.Errorf("the file ends within document %d", d.n+1)
		} else if err != nil {
			return nil, err
		}
	}
	b := d.rest()[:n]
	d.from += n
	return b, nil
}

// length returns the length of the document at the front without taking it.
func (d *documents) length() (int32, error) {
	b, err := d.take(4)
	if err != nil {
		return 0, err
	}
	d.from -= 4
	return int32(binary.LittleEndian.Uint32(b)), nil
}

// next returns the next document, unchecked. The end of a document follows from its length, so one with an absurd
// length ends the file.
func (d *documents) next() ([]byte, error) {
	n, err := d.length()
	if err != nil {
		return nil, err
	}
	if n < int32(len(bson.Empty)) || n > transfer.MaxRow {
		return nil, fmt.Errorf("document %d has the length %d: this is no BSON, or it is damaged", d.n+1, n)
	}
	b, err := d.take(int(n))
	if err == nil {
		d.n++
	}
	return b, err
}

// writeDump writes one collection of a folder.
func writeDump(o *Output) (transfer.Writer, error) {
	db, coll, _ := strings.Cut(o.Place, "/")
	dir, err := o.directory()
	if err != nil {
		return nil, err
	}
	if strings.Contains(db, "..") || db == "" || coll == "" {
		return nil, fmt.Errorf("%s is no name for a folder", o.Place)
	}
	dir = filepath.Join(dir, fileName(db))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	base := filepath.Join(dir, fileName(coll))
	f, err := o.create(base + bsonSuffix)
	if err != nil {
		return nil, err
	}
	return &dumpWriter{file: f, o: o, base: base}, nil
}

type dumpWriter struct {
	*file
	o    *Output
	base string
	def  transfer.Definition
}

// Define implements transfer.Defines.
func (d *dumpWriter) Define(def transfer.Definition) error {
	d.def = def
	return nil
}

func (d *dumpWriter) Add(r *transfer.Row) error {
	_, err := d.b.Write(r.Doc)
	return err
}

func (d *dumpWriter) Close() error {
	f, err := d.o.create(d.base + metadataSuffix)
	if err == nil {
		_, _ = f.b.Write(metadata(d.def))
		err = f.Close()
	}
	return d.file.end(err)
}

// idIndex is the specification of the index that every collection has.
var idIndex = func() []byte {
	at, b := bson.Begin(nil)
	b = bson.AppendInt32(b, "v", 2)
	key, b := bson.BeginObject(b, "key")
	b = bson.End(bson.AppendInt32(b, "_id", 1), key)
	return bson.End(bson.AppendString(b, "name", "_id_"), at)
}()

// metadata returns the text of a definition.
func metadata(def transfer.Definition) []byte {
	_, coll, _ := strings.Cut(def.Place, "/")
	at, b := bson.Begin(nil)
	options := def.Options
	if options == nil {
		options = bson.Empty
	}
	b = bson.AppendDocument(b, "options", options)
	b = appendSpecs(b, "indexes", append([][]byte{idIndex}, def.Indexes...))
	if len(def.Search) > 0 {
		b = appendSpecs(b, searchIndexes, def.Search)
	}
	b = bson.AppendString(b, "collectionName", coll)
	b = bson.End(bson.AppendString(b, "type", "collection"), at)
	return doc.AppendExtJSON(nil, doc.Value(b), false)
}

func appendSpecs(dst []byte, name string, specs [][]byte) []byte {
	list, b := bson.BeginArray(dst, name)
	for i, spec := range specs {
		b = append(bson.AppendIndexHead(b, bson.TypeDocument, i), spec...)
	}
	return bson.End(b, list)
}
