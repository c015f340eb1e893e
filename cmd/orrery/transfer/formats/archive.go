package formats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
)

// archive is a file of mongodump --archive, packed or not:
//
//	6DE29981                                   the magic number, little endian
//	{concurrent_collections, version, ..}      the prelude: a document,
//	{db, collection, metadata, size, type} ..  one for each collection, whose metadata are those of a folder's file,
//	FFFFFFFF                                   and their end
//	{db, collection, EOF: false, CRC: 0}       a block: whose documents follow,
//	document ..
//	FFFFFFFF                                   and their end; blocks of several collections alternate
//	{db, collection, EOF: true, CRC: n}        the end of a collection, with the CRC-64 of its documents
//	FFFFFFFF
var archive = &Format{Name: "archive", About: "a file of mongodump --archive", Suffixes: []string{".archive"},
	Output: ".archive",
	Door:   Mongo, Typed: true,
	Is: func(_ string, head []byte) bool {
		return len(head) >= 4 && binary.LittleEndian.Uint32(head) == archiveMagic
	},
	Read: readArchive,
	Write: func(o *Output) (transfer.Writer, error) {
		f, err := o.create(o.Path)
		if err != nil {
			return nil, err
		}
		db, coll, _ := strings.Cut(o.Place, "/")
		return &archiveWriter{file: f, db: db, coll: coll, crc: crc64.New(archiveTable)}, nil
	}}

const (
	archiveMagic = 0x8199e26d
	terminator   = -1
)

var archiveTable = crc64.MakeTable(crc64.ECMA)

type archiveReader struct {
	documents
	defs  []transfer.Definition
	block bool   // inside of a block
	place string // of the block
	open  map[string]uint64
	ends  map[string]bool // collections whose end must come: an archive may be cut off between two of them
	rows  int64
}

func readArchive(f *File) (transfer.Reader, error) {
	in, err := f.Open()
	if err != nil {
		return nil, err
	}
	a := &archiveReader{documents: documents{chunks: newChunks(in)}, open: map[string]uint64{},
		ends: map[string]bool{}}
	if err := a.prelude(); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, errors.Join(fmt.Errorf("%s: %w", f.Shown(), err), in.Close())
	}
	return a, nil
}

// header returns the next document if it isn't the end of its list. Headers are small, and are checked.
func (a *archiveReader) header() (doc.Doc, bool, error) {
	n, err := a.length()
	if err != nil {
		return nil, false, err
	}
	if n == terminator {
		a.from += 4
		return nil, false, nil
	}
	b, err := a.documents.next()
	if err == nil {
		err = doc.Validate(b, 0)
	}
	return b, true, err
}

func (a *archiveReader) prelude() error {
	magic, err := a.take(4)
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(magic) != archiveMagic {
		return errors.New("this is no archive of mongodump")
	}
	for first := true; ; first = false {
		d, ok, err := a.header()
		if err != nil || !ok {
			return err
		}
		if first {
			if v := doc.Get(d, "version").Str(); v != "" && !strings.HasPrefix(v, "0.") {
				return fmt.Errorf("the archive has the version %.20q, which is not known", v)
			}
			continue
		}
		place, err := namespace(d)
		if err != nil {
			return err
		}
		if strings.Contains(place, "/system.") || doc.Get(d, "type").Str() == "view" {
			continue
		}
		def, err := definition(place, []byte(doc.Get(d, "metadata").Str()))
		if err != nil {
			return fmt.Errorf("metadata of %s: %w", place, err)
		}
		a.defs = append(a.defs, def)
		if doc.Get(d, "type").Str() == "collection" {
			a.ends[place] = true
		}
	}
}

// namespace returns the place that a header names.
func namespace(d doc.Doc) (string, error) {
	db, coll := doc.Get(d, "db").Str(), doc.Get(d, "collection").Str()
	if db == "" || coll == "" || strings.ContainsAny(db, "/\\. \"$\x00") || strings.ContainsAny(coll, "\x00$") ||
		strings.Contains(coll, "..") {
		return "", fmt.Errorf("the archive names a collection %.100q of a database %.100q", coll, db)
	}
	return db + "/" + coll, nil
}

func (a *archiveReader) Definitions() []transfer.Definition { return a.defs }

func (a *archiveReader) Next(r *transfer.Row) error {
	for {
		if !a.block {
			if err := a.begin(); err != nil {
				return err
			}
			continue
		}
		n, err := a.length()
		if err == io.EOF {
			return fmt.Errorf("the archive ends within a block of %s", a.place)
		} else if err != nil {
			return err
		}
		if n == terminator {
			a.from += 4
			a.block = false
			continue
		}
		b, err := a.documents.next()
		if err != nil {
			return err
		}
		a.open[a.place] = crc64.Update(a.open[a.place], archiveTable, b)
		if _, coll, _ := strings.Cut(a.place, "/"); strings.HasPrefix(coll, "system.") {
			continue
		}
		a.rows++
		*r = transfer.Row{Place: a.place, Line: a.rows, Doc: b}
		return checked(r)
	}
}

// begin reads the header of a block.
func (a *archiveReader) begin() error {
	d, ok, err := a.header()
	if err == io.EOF {
		for _, of := range slices.Sorted(maps.Keys(a.ends)) {
			return fmt.Errorf("the archive ends before the end of %s", of)
		}
		for place := range a.open {
			return fmt.Errorf("the archive ends before the end of %s", place)
		}
	}
	if err != nil {
		return err
	}
	if !ok {
		return errors.New("the archive has an end of a block where none has begun")
	}
	place, err := namespace(d)
	if err != nil {
		return err
	}
	a.block, a.place = true, place
	if !doc.Get(d, "EOF").Bool() {
		a.open[place] += 0
		return nil
	}
	if want := uint64(doc.Get(d, "CRC").Int()); want != a.open[place] {
		return fmt.Errorf("the archive is damaged: the documents of %s have another checksum", place)
	}
	delete(a.open, place)
	delete(a.ends, place)
	return nil
}

// blockSize is the size of a block of a written archive in bytes.
const blockSize = 8 << 20

type archiveWriter struct {
	*file
	db, coll string
	def      transfer.Definition
	begun    bool
	size     int // of the open block; 0 = none is open
	crc      interface {
		io.Writer
		Sum64() uint64
	}
}

// Define implements transfer.Defines.
func (a *archiveWriter) Define(def transfer.Definition) error {
	a.def = def
	return nil
}

var endOfBlock = []byte{0xff, 0xff, 0xff, 0xff}

func (a *archiveWriter) begin() {
	if a.begun {
		return
	}
	a.begun = true
	a.def.Place = a.db + "/" + a.coll
	_, _ = a.b.Write(binary.LittleEndian.AppendUint32(nil, archiveMagic))
	at, b := bson.Begin(nil)
	b = bson.AppendInt32(b, "concurrent_collections", 1)
	b = bson.AppendString(b, "version", "0.1")
	b = bson.AppendString(b, "server_version", "7.0.0")
	b = bson.End(bson.AppendString(b, "tool_version", "orrery"), at)
	at, b = bson.Begin(b)
	b = bson.AppendString(bson.AppendString(b, "db", a.db), "collection", a.coll)
	b = bson.AppendString(b, "metadata", string(metadata(a.def)))
	b = bson.AppendInt32(b, "size", 0)
	b = bson.End(bson.AppendString(b, "type", "collection"), at)
	_, _ = a.b.Write(append(b, endOfBlock...))
}

func (a *archiveWriter) header(end bool, crc uint64) {
	at, b := bson.Begin(nil)
	b = bson.AppendString(bson.AppendString(b, "db", a.db), "collection", a.coll)
	b = bson.AppendInt64(bson.AppendBool(b, "EOF", end), "CRC", int64(crc))
	_, _ = a.b.Write(bson.End(b, at))
}

func (a *archiveWriter) Add(r *transfer.Row) error {
	a.begin()
	if a.size == 0 {
		a.header(false, 0)
	}
	_, _ = a.crc.Write(r.Doc)
	_, err := a.b.Write(r.Doc)
	if a.size += len(r.Doc); a.size >= blockSize {
		a.size = 0
		_, err = a.b.Write(endOfBlock)
	}
	return err
}

func (a *archiveWriter) Close() error {
	a.begin()
	if a.size > 0 {
		_, _ = a.b.Write(endOfBlock)
	}
	a.header(true, a.crc.Sum64())
	_, _ = a.b.Write(endOfBlock)
	return a.file.Close()
}
