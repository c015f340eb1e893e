package mongoapi

import "github.com/orrerydb/orrery/core/value"

// fields calls f with each field of an object, until it returns an error.
func fields(obj value.Value, f func(name string, v value.Value, element []byte) error) error {
	for it := obj.Iter(); it.Next(); {
		if err := f(string(it.Key()), it.Value(), it.Element()); err != nil {
			return err
		}
	}
	return nil
}
