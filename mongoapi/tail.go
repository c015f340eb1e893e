package mongoapi

import "github.com/orrerydb/orrery/core/value"

// tail is the end of a cursor that goes on when it has no more documents: of a change stream, for example.
type tail interface {
	// Notify has wake called when there may be more documents. stop ends that; nil: there may be some now.
	Notify(wake func()) (stop func())
	// Over reports whether nothing follows ever.
	Over() bool
	// TokenAfter returns the position for postBatchResumeToken; Undefined: the cursor has none. given says that
	// everything was returned that there was: a batch that ends before that has the position of its last document.
	TokenAfter(given bool) value.Value
	// Rest prepares for the time between batches.
	Rest()
}
