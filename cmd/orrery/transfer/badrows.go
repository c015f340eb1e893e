package transfer

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/orrerydb/orrery/core/doc"
)

// BadRows is a file of rows that were left out, as JSON lines:
//
//	{"line":7,"place":"shop/orders","reason":"the id is missing","row":"{\"n\":1}"}
//
// It appears with the first of them. What an earlier run wrote behind Size is cut off then, because its state doesn't
// count it. Not safe for concurrent use.
type BadRows struct {
	Path string
	Size int64 // bytes of the rows that the state counts

	f *os.File
}

// mostOfBad is how many bytes of a bad row are kept.
const mostOfBad = 64 << 10

// Cut makes the text of a bad row what is kept of it: readable, a copy, and not too long.
func (b *Bad) Cut() {
	b.Text = readable(b.Text)
	b.Text = slices.Clone(b.Text[:min(len(b.Text), mostOfBad)])
}

// readable returns a row as text: a document as Extended JSON.
func readable(row []byte) []byte {
	if n := len(row); n < 5 || int(binary.LittleEndian.Uint32(row)) != n || doc.Validate(row, 0) != nil {
		return row
	}
	return doc.AppendExtJSON(nil, doc.Value(row), true)
}

// Add appends a row.
func (b *BadRows) Add(bad *Bad) error {
	if b.f == nil {
		f, err := os.OpenFile(b.Path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			err = f.Truncate(b.Size)
		}
		if err != nil {
			return fmt.Errorf("the file of bad rows: %w", err)
		}
		b.f = f
	}
	line, err := json.Marshal(struct {
		Line   int64  `json:"line"`
		Place  string `json:"place,omitempty"`
		Reason string `json:"reason"`
		Row    string `json:"row"`
	}{bad.Line, bad.Place, bad.Reason, string(bad.Text)})
	if err == nil {
		_, err = b.f.WriteAt(append(line, '\n'), b.Size)
		b.Size += int64(len(line)) + 1
	}
	return err
}

// Sync makes the rows durable.
func (b *BadRows) Sync() error {
	if b.f == nil {
		return nil
	}
	return b.f.Sync()
}

// Close closes the file.
func (b *BadRows) Close() error {
	if b.f == nil {
		return nil
	}
	return b.f.Close()
}
