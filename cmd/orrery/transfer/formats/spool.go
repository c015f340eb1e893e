package formats

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/orrerydb/orrery/core/doc"
)

// spool keeps documents in a temporary file beside the output, for formats that begin with what only the last row
// tells.
type spool struct {
	f *os.File
	w *bufio.Writer
}

func newSpool(output string) (*spool, error) {
	dir := ""
	if output != "-" {
		dir = filepath.Dir(output)
	}
	f, err := os.CreateTemp(dir, ".orrery-*"+part)
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // where the system can: so nothing is left of an export that ends early
	return &spool{f, bufio.NewWriterSize(f, 1<<18)}, nil
}

func (s *spool) add(d doc.Doc) error {
	_, err := s.w.Write(d)
	return err
}

// each calls f with the documents, and removes the file, where that wasn't done before.
func (s *spool) each(f func(doc.Doc) error) error {
	err := s.w.Flush()
	if err == nil {
		_, err = s.f.Seek(0, io.SeekStart)
	}
	r := bufio.NewReaderSize(s.f, 1<<18)
	var b []byte
	for err == nil {
		var head []byte
		if head, err = r.Peek(4); err == io.EOF {
			err = nil
			break
		} else if err != nil {
			break
		}
		n := int(binary.LittleEndian.Uint32(head))
		if cap(b) < n {
			b = make([]byte, n)
		}
		if _, err = io.ReadFull(r, b[:n]); err == nil {
			err = f(b[:n])
		}
	}
	err = errors.Join(err, s.f.Close())
	if rerr := os.Remove(s.f.Name()); !errors.Is(rerr, os.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}
