package agg

import (
	"testing"

	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// The order of the first documents is visible unless a later stage removes it, whatever comes before that stage.
func TestUnseen(t *testing.T) {
	for pipeline, want := range map[string]bool{
		`[]`:                                    false,
		`[{"$match":{"a":1}}]`:                  false,
		`[{"$limit":3},{"$count":"n"}]`:         false,
		`[{"$skip":3},{"$group":{"_id":"$a"}}]`: false,
		`[{"$count":"n"}]`:                      true,
		`[{"$match":{"a":1}},{"$group":{"_id":"$a","n":{"$sum":1}}}]`:        true,
		`[{"$project":{"a":1}},{"$group":{"_id":"$a","n":{"$first":"$b"}}}]`: false,
		`[{"$group":{"_id":"$a","n":{"$max":"$b"},"all":{"$push":"$b"}}}]`:   false,
		`[{"$unwind":"$a"},{"$sort":{"a":1}}]`:                               false,
		`[{"$unwind":"$a"},{"$sort":{"a":1}},{"$count":"n"}]`:                true,
		`[{"$unwind":"$a"},{"$sort":{"a":1,"_id":1}}]`:                       true,
		`[{"$sortByCount":"$a"}]`:                                            true,
		`[{"$facet":{"x":[{"$limit":1}]}}]`:                                  false,
	} {
		p, err := Compile(mtest.Value(t, pipeline), Options{})
		if err != nil {
			t.Errorf("%s: %v", pipeline, err)
			continue
		}
		if p.Lead.Unseen != want {
			t.Errorf("%s: unseen is %v", pipeline, p.Lead.Unseen)
		}
	}
}
