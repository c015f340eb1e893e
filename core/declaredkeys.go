package core

import "github.com/orrerydb/orrery/core/index"

// DeclaredKeys returns a function that gives the keys of documents in a declared index: documents with a key in common
// are duplicates if the index is unique.
func DeclaredKeys(of Declared) (keys func(doc []byte) ([]string, error), err error) {
	d, err := index.CompileDeclared(of)
	if err != nil {
		return nil, err
	}
	return func(doc []byte) (out []string, err error) {
		ks, err := d.Keys(doc)
		for _, k := range ks {
			out = append(out, string(k.Bytes))
		}
		return out, err
	}, nil
}
