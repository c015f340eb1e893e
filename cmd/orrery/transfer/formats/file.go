package formats

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// file is a file that is written under another name until it is complete.
type file struct {
	b    *bufio.Writer
	z    *gzip.Writer
	f    *os.File // nil: the standard output
	name string
}

// part is the suffix of files that are not complete.
const part = ".part"

// create begins a file. A name that ends in .gz has it packed. An existing file is refused.
func (o *Output) create(name string) (*file, error) {
	if name == "-" {
		return &file{b: bufio.NewWriterSize(o.To, 1<<18)}, nil
	}
	if _, err := os.Lstat(name); err == nil {
		return nil, fmt.Errorf("%s is there already", name)
	}
	f, err := os.OpenFile(name+part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	out := &file{f: f, name: name}
	w := io.Writer(f)
	if strings.HasSuffix(name, ".gz") {
		out.z = gzip.NewWriter(f)
		w = out.z
	}
	out.b = bufio.NewWriterSize(w, 1<<18)
	return out, nil
}

// Close completes the file.
func (f *file) Close() error {
	err := f.b.Flush()
	if f.z != nil {
		err = errors.Join(err, f.z.Close())
	}
	if f.f == nil {
		return err
	}
	if err == nil {
		err = f.f.Sync()
	}
	if err = errors.Join(err, f.f.Close()); err != nil {
		return err
	}
	return os.Rename(f.name+part, f.name)
}

// end completes the file, or leaves it with the name of one that isn't complete if there was an error.
func (f *file) end(err error) error {
	if err == nil || f.f == nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(err, f.f.Close())
}

// fileName returns the name of a database or container as that of a file. What has a meaning in paths is written as
// mongodump does, as % and two hex digits.
func fileName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if ch := name[i]; ch < ' ' || strings.IndexByte(`/\:*?"<>|%`, ch) >= 0 || ch == '.' && i == 0 {
			fmt.Fprintf(&b, "%%%02X", ch)
		} else {
			b.WriteByte(ch)
		}
	}
	return b.String()
}

// directory creates a directory for the files of an export. One that has files is refused.
func (o *Output) directory() (string, error) {
	if o.Path == "-" {
		return "", errors.New("this format makes a directory: name one")
	}
	path := filepath.Clean(o.Path)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(path)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s has files already", path)
	}
	return path, err
}
