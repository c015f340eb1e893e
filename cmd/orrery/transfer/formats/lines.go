package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
)

// chunks gives a file piece by piece, from one buffer that grows up to the largest row.
type chunks struct {
	f    io.ReadCloser
	buf  []byte
	from int // of what is unread in buf
	line int64
	eof  bool
}

// firstChunk is the size of the buffer at the beginning.
const firstChunk = 1 << 20

// openText opens a file of text.
func (f *File) openText() (io.ReadCloser, error) { return openText(f.In, f.Name) }

func openText(in *transfer.Input, name string) (io.ReadCloser, error) {
	f, err := in.Open(name)
	if err != nil {
		return nil, err
	}
	r, err := transfer.Text(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", in.Shown(name), err), f.Close())
	}
	return textFile{r, f}, nil
}

type textFile struct {
	io.Reader
	io.Closer
}

func newChunks(f io.ReadCloser) *chunks { return &chunks{f: f, buf: make([]byte, 0, firstChunk)} }

// more reads more of the file behind what is unread, which moves to the front of the buffer. It returns io.EOF at the
// end of the file.
func (c *chunks) more() error {
	if c.eof {
		return io.EOF
	}
	if c.from > 0 {
		c.buf = c.buf[:copy(c.buf[:cap(c.buf)], c.buf[c.from:])]
		c.from = 0
	}
	if len(c.buf) == cap(c.buf) {
		c.buf = append(make([]byte, 0, 2*cap(c.buf)), c.buf...)
	}
	for {
		n, err := c.f.Read(c.buf[len(c.buf):cap(c.buf)])
		c.buf = c.buf[:len(c.buf)+n]
		switch {
		case err == io.EOF:
			if c.eof = true; n == 0 {
				return io.EOF
			}
			return nil
		case err != nil || n > 0:
			return err
		}
	}
}

// rest is what is unread in the buffer.
func (c *chunks) rest() []byte { return c.buf[c.from:] }

// next returns the next line without its end. A line that is longer than the largest row is skipped and is bad.
func (c *chunks) next() ([]byte, error) {
	looked := 0
	for {
		if i := bytes.IndexByte(c.rest()[looked:], '\n'); i >= 0 {
			line := c.rest()[:looked+i]
			c.from += looked + i + 1
			c.line++
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		if looked = len(c.rest()); looked > transfer.MaxRow {
			c.line++
			return nil, c.skipLine()
		}
		switch err := c.more(); {
		case err == io.EOF && looked > 0:
			line := c.rest()
			c.from = len(c.buf)
			c.line++
			return line, nil
		case err != nil:
			return nil, err
		}
	}
}

// skipLine skips the rest of a line that is too long.
func (c *chunks) skipLine() error {
	start := append([]byte(nil), c.rest()[:1000]...)
	for {
		if i := bytes.IndexByte(c.rest(), '\n'); i >= 0 {
			c.from += i + 1
			break
		}
		c.from = len(c.buf)
		if err := c.more(); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
	}
	return &transfer.Bad{Line: c.line, Reason: fmt.Sprintf("the row has more than %d MiB", transfer.MaxRow>>20),
		Text: start}
}

func (c *chunks) Close() error { return c.f.Close() }
