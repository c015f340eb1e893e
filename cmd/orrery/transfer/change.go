package transfer

import (
	"fmt"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/value"
)

// Names has the new names of fields and of places.
type Names struct {
	fields map[string]string
	places map[string]string
	room   []byte
}

// ParseNames reads texts OLD=NEW. With a slash on both sides they name places ("shop/orders=test/orders"), else the
// fields of a row.
func ParseNames(texts []string) (*Names, error) {
	n := &Names{fields: map[string]string{}, places: map[string]string{}}
	for _, t := range texts {
		from, to, ok := strings.Cut(t, "=")
		if !ok || from == "" || to == "" || strings.ContainsAny(t, "\x00") {
			return nil, fmt.Errorf("--map %s: want OLD=NEW", t)
		}
		if strings.Contains(from, "/") && strings.Contains(to, "/") {
			n.places[from] = to
		} else {
			n.fields[from] = to
		}
	}
	return n, nil
}

// Place returns the new name of a place.
func (n *Names) Place(place string) string {
	if to, ok := n.places[place]; ok {
		return to
	}
	return place
}

// Field returns the new name of a field.
func (n *Names) Field(name string) string {
	if to, ok := n.fields[name]; ok {
		return to
	}
	return name
}

// Change renames the fields of a row.
func (n *Names) Change(r *Row) error {
	if len(n.fields) == 0 {
		return nil
	}
	if r.Doc != nil {
		at, b := bson.Begin(n.room[:0])
		for it := value.ObjectOf(r.Doc).Iter(); it.Next(); {
			el := it.Element()
			to, ok := n.fields[string(it.Key())]
			if !ok {
				b = append(b, el...)
				continue
			}
			b = bson.AppendHead(b, el[0], to)
			b = append(b, el[len(it.Key())+2:]...)
		}
		n.room = bson.End(b, at)
		r.Doc = n.room
	}
	if r.Text == nil {
		return nil
	}
	out := append(n.room[:0], '{')
	err := json.EachMember(r.Text, func(name string, raw []byte) error {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if to, ok := n.fields[name]; ok {
			name = to
		}
		out = append(append(json.AppendString(out, name), ':'), raw...)
		return nil
	})
	n.room = append(out, '}')
	r.Text = n.room
	return err
}
