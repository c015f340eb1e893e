package pebblekv

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
)

// ErrNewer is the error for a store of a format that this version doesn't know. Nothing is changed.
var ErrNewer = fmt.Errorf("%w: the store is of a newer version", kv.ErrUnavailable)

// identityName is the file that says which store this is. It is read before anything else of the store, because a newer
// format may give the other files another meaning. It is written when the store has been made: a crash in the making
// leaves files without it, and where it stands alone a store has lost all others.
const (
	identityName = "identity.json"
	identityTemp = identityName + closedTemp
)

// identityFile is identityName's content.
type identityFile struct {
	kv.Identity
	Sum string `json:"sum"` // xxhash64 of the file without it, hexadecimal
}

func (i identityFile) sum() string {
	i.Sum = ""
	b, _ := json.Marshal(i)
	return fmt.Sprintf("%016x", xxhash.Sum64(b))
}

// readIdentity reads which store this is. A file that can't be understood is damage: what else is there tells whether
// the store can be opened.
func (l *look) readIdentity() error {
	if !l.parts.identity {
		return nil
	}
	f, err := l.fs.Open(l.path(identityName))
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	var i identityFile
	if json.Unmarshal(b, &i) != nil || i.Sum != i.sum() || i.Format < 1 || i.ID == "" {
		l.report(Problem{identityName,
			"damaged: which store this is can't be told; it is given a new identity when it is opened for writing", Damage})
		return nil
	}
	if i.Format > kv.Format {
		return fmt.Errorf("%w: it has format %d, this server knows formats up to %d. Start a newer version on it",
			ErrNewer, i.Format, kv.Format)
	}
	l.identity = i.Identity
	return nil
}

// identify gives a store that has no identity one.
func (c *claimed) identify() error {
	if c.readOnly || c.found.identity.ID != "" {
		return nil
	}
	clk := clock.New()
	created := clk.Now().UTC().Truncate(time.Second)
	i := identityFile{Identity: kv.Identity{Format: kv.Format, ID: clk.UUID().String(), Created: created}}
	i.Sum = i.sum()
	b, err := json.Marshal(i)
	if err == nil {
		err = replaceFile(c.fs, c.path, identityName, append(b, '\n'))
	}
	if err == nil {
		c.found.identity = i.Identity
	}
	return err
}

// Identity implements kv.Identified. A store that could be given none has an empty one.
func (e *Engine) Identity() kv.Identity { return e.dir.found.identity }

// replaceFile writes a file that is there whole or not at all, and stays.
func replaceFile(fs vfs.FS, dir, name string, content []byte) error {
	temp := fs.PathJoin(dir, name+closedTemp)
	f, err := fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = fs.Rename(temp, fs.PathJoin(dir, name))
	}
	if err != nil {
		_ = fs.Remove(temp)
		return err
	}
	return syncDir(fs, dir)
}
