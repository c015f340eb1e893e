package agg

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// streamStage is a stage that only the server's change streams have. They don't compile it.
func streamStage(name string) func(*compiler, value.Value) (stage, error) {
	return func(*compiler, value.Value) (stage, error) {
		if name == "$changeStream" {
			return nil, merr.NotSupported("the plan of a change stream")
		}
		return nil, merr.New(merr.IllegalOperation, "%s can only be used in a $changeStream pipeline", name)
	}
}
