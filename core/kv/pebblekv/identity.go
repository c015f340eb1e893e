package pebblekv

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// ErrNewer is the error for a store of a newer format. Nothing in its directory is changed.
var ErrNewer = fmt.Errorf("%w: the store is of a newer version", kv.ErrUnavailable)

// ErrOlder is the error when a store of an older format is opened for writing without Options.Upgrade. Nothing in its
// directory is changed.
var ErrOlder = fmt.Errorf("%w: the store is of an older version", kv.ErrUnavailable)

// identityName is the file with the store's identity. It is read before any other file, because a newer format may give
// the other files another meaning. It is the first file that is made in a store. It is marked (Making) until the other
// files exist. If it is the only file and has no mark, all other files of the store were lost.
const identityName = "identity.json"

// identityFile is the content of identityName.
type identityFile struct {
	kv.Identity
	Making bool   `json:"making,omitempty"` // the store is being made: nothing was written to it yet
	Sum    string `json:"sum"`              // xxhash64 of the file with an empty sum, hexadecimal
}

func (i identityFile) sum() string {
	i.Sum = ""
	b, _ := json.Marshal(i)
	return fmt.Sprintf("%016x", xxhash.Sum64(b))
}

// readIdentity reads the identity. A file that can't be parsed is damage: the other files decide whether the store can
// be opened.
func (l *look) readIdentity() error {
	if !l.parts.identity {
		return nil
	}
	b, err := files.Read(l.fs, l.path(identityName))
	if err != nil {
		return err
	}
	var i identityFile
	if json.Unmarshal(b, &i) != nil || i.Sum != i.sum() || i.Format < 1 || i.ID == "" {
		l.report(Problem{identityName,
			"damaged: the identity of the store is unknown; the next open for writing gives it a new one",
			Damage})
		l.identity.Format = kv.Format // most likely
		return nil
	}
	if i.Format > kv.Format {
		return fmt.Errorf("%w: it has format %d, this server knows formats up to %d. Start a newer version of the "+
			"server",
			ErrNewer, i.Format, kv.Format)
	}
	l.identity, l.making = i.Identity, i.Making
	return nil
}

// format returns the store's format. A store without an identity has format 1.
func (l *look) format() int { return max(l.identity.Format, 1) }

// older fails for a store of an older format, unless any format may be opened.
func (c *claimed) older(any bool) error {
	if c.fresh || any || c.found.format() == kv.Format {
		return nil
	}
	return fmt.Errorf("%w: it has format %d, this server writes format %d. Start with --upgrade to change that; "+
		"as no older version can open the store afterwards, copy its directory first", ErrOlder,
		c.found.format(), kv.Format)
}

// identify writes the identity, if the one on disk has to change: it is missing, its format is old, or making changes.
func (c *claimed) identify(making bool) error {
	l := c.found
	format := kv.Format
	if c.restoring && !c.fresh { // a restored store keeps its format
		format = l.format()
	}
	if c.readOnly || l.identity.ID != "" && l.identity.Format == format && l.making == making {
		return nil
	}
	i := identityFile{Identity: l.identity, Making: making}
	if i.ID == "" {
		clk := clock.New()
		i.ID, i.Created = clk.UUID().String(), clk.Now().UTC().Truncate(time.Second)
	}
	i.Format = format
	i.Sum = i.sum()
	b, err := json.Marshal(i)
	if err == nil {
		err = files.Replace(c.fs, c.fs.PathJoin(c.path, identityName), tempEnd, append(b, '\n'))
	}
	if err == nil {
		l.identity, l.making = i.Identity, making
	}
	return err
}

// Identity implements kv.Identified. A store that has none yet and is open for reading has an empty one.
func (e *Engine) Identity() kv.Identity { return e.dir.found.identity }
