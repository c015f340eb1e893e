package transfer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// Input is a file, a directory, or the standard input ("-").
type Input struct {
	Path string
	Size int64        // bytes of all files; 0 = unknown
	read atomic.Int64 // bytes read in the present pass

	stdin io.Reader
	head  []byte
	root  *os.Root // of a directory: nothing outside of it is opened
	files []string // of a directory, sorted, with slashes
}

// OpenInput looks at an input. It refuses what isn't a plain file or a directory of plain files.
//
// Links are refused, because a directory that came from elsewhere could name any file of this machine with them.
func OpenInput(path string, stdin io.Reader) (*Input, error) {
	in := &Input{Path: path}
	if path == "-" {
		b := bufio.NewReaderSize(stdin, sniffed)
		in.stdin = b
		head, err := b.Peek(sniffed)
		if err != nil && err != io.EOF {
			return nil, err
		}
		in.head = append([]byte(nil), head...)
		return in, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the input can't be read: %w", err)
	case info.Mode().IsRegular():
		in.Size = info.Size()
		return in, nil
	case !info.IsDir():
		return nil, fmt.Errorf("%s is neither a file nor a directory", path)
	}
	if in.root, err = os.OpenRoot(path); err != nil {
		return nil, err
	}
	err = fs.WalkDir(in.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && d.Name()[0] == '.': // hidden: of the system, or the state of an import
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is not a plain file: links and devices are refused", filepath.Join(path, name))
		}
		info, err := d.Info()
		if err == nil {
			in.Size += info.Size()
			in.files = append(in.files, name)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// Close releases the directory.
func (in *Input) Close() error {
	if in.root != nil {
		return in.root.Close()
	}
	return nil
}

// Dir reports whether the input is a directory.
func (in *Input) Dir() bool { return in.root != nil }

// Files returns the names of the files of a directory, sorted.
func (in *Input) Files() []string { return in.files }

// Again reports whether the input can be read more than once.
func (in *Input) Again() bool { return in.stdin == nil }

// Done returns how many bytes of the files have been read in the present pass.
func (in *Input) Done() int64 { return in.read.Load() }

// Open opens the file, or the file called name of a directory. A file in gzip's format is expanded.
func (in *Input) Open(name string) (io.ReadCloser, error) {
	var f io.ReadCloser
	var err error
	switch {
	case in.stdin != nil:
		f = io.NopCloser(in.stdin)
	case in.root != nil:
		f, err = in.root.Open(name)
	default:
		f, err = os.Open(in.Path)
	}
	if err != nil {
		return nil, err
	}
	return expand(&counted{f, &in.read}, in.Shown(name))
}

// Shown returns the name of a file of the input for messages.
func (in *Input) Shown(name string) string {
	if in.root != nil {
		return filepath.Join(in.Path, filepath.FromSlash(name))
	}
	return in.Path
}

// Rewind begins a new pass for Done.
func (in *Input) Rewind() { in.read.Store(0) }

// sniffed is how much of a file is looked at to find its format.
const sniffed = 64 << 10

// Head returns the first bytes of a file, expanded.
func (in *Input) Head(name string) ([]byte, error) {
	if in.stdin != nil {
		return in.head, nil
	}
	f, err := in.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, sniffed)
	n, err := io.ReadFull(f, head)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	in.Rewind()
	return head[:n], err
}

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// Bounds of gzip files. Text that is worth importing shrinks to a tenth or so; gzip's limit is a thousandth.
const (
	mostExpansion = 200
	freeExpansion = 64 << 20 // so much is expanded whatever the rate
)

// expand returns the expanded text of a file in gzip's format, and every other file as it is. A file that expands to
// more than 200 times its size is refused, once 64 MiB of it are expanded.
func expand(f io.ReadCloser, name string) (io.ReadCloser, error) {
	packed := &tally{r: f}
	b := bufio.NewReaderSize(packed, 1<<20)
	if magic, err := b.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return &wrapped{b, f}, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return &wrapped{&bounded{z: z, packed: packed, name: name}, f}, nil
}

// BOM is the byte order mark of UTF-8.
var BOM = []byte("\xef\xbb\xbf")

// Text returns the text of a file: a byte order mark at its front is no part of it. Text that is not UTF-8 is refused,
// as far as its mark says so.
func Text(f io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(f, 16) // larger reads go around it
	switch head, _ := b.Peek(len(BOM)); {
	case bytes.Equal(head, BOM):
		_, _ = b.Discard(len(BOM))
	case bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")):
		return nil, errors.New("the text is UTF-16: save it as UTF-8")
	}
	return b, nil
}

type wrapped struct {
	io.Reader
	c io.Closer
}

func (w *wrapped) Close() error { return w.c.Close() }

type tally struct {
	r io.Reader
	n int64
}

func (t *tally) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	t.n += int64(n)
	return n, err
}

type bounded struct {
	z      io.Reader
	packed *tally
	n      int64
	name   string
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.z.Read(p)
	b.n += int64(n)
	if b.n > freeExpansion && b.n/mostExpansion > b.packed.n {
		return 0, fmt.Errorf("%s expands to more than %d times its size: refused, expand it yourself if you trust it",
			b.name, mostExpansion)
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%s: %w", b.name, err)
	}
	return n, err
}

// Base returns the name of a file without its folders, its suffix and that of gzip. Files of tables have two: the
// table of people.table.json is people.
func Base(name string) string {
	name = filepath.Base(filepath.FromSlash(name))
	name = strings.TrimSuffix(name, ".gz")
	ext := filepath.Ext(name)
	name = strings.TrimSuffix(name, ext)
	if ext == ".json" || ext == ".csv" {
		name = strings.TrimSuffix(name, ".table")
	}
	return name
}
