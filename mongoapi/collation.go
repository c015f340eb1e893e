package mongoapi

import (
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/collation"
)

// collate sets the order of strings of a command or a statement: that of its argument, or else of its collection, which
// may not exist.
func (r *request) collate(k *coll, spec value.Value) error {
	c, err := collation.Parse(spec)
	if err != nil {
		return err
	}
	if spec.Len() == 0 && k != nil {
		if c, err = k.collation(); err != nil {
			return err
		}
	}
	if c != nil || r.env != nil {
		r.exprEnv().Run.Collate(c)
	}
	return nil
}

// collation returns the collection's own collation, nil for the order of bytes.
func (k *coll) collation() (*collate.Collation, error) {
	if k.opts == nil {
		return nil, nil
	}
	return collation.Parse(k.option("collation"))
}
