package expr

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// meta compiles {$meta: "textScore"}: how well the document matches the $text of the query, and {$meta: "sortKey"}: the
// values by which it was sorted. Both are those of the document as the expression sees it, so it must still have the
// fields that were searched.
func meta(_ string, arg value.Value, _ *Scope, _ int) (Expr, error) {
	if arg.Kind() == value.String && arg.Str() == "sortKey" {
		return func(e *Env) (value.Value, error) {
			if e.SortKey == nil {
				return value.Undef(), merr.New(40218, "query requires sort key metadata, but it is not available")
			}
			return e.SortKey(e.root), nil
		}, nil
	}
	if err := CheckMeta(arg); err != nil {
		return nil, err
	}
	return func(e *Env) (value.Value, error) {
		if e.Score == nil {
			return value.Undef(), merr.New(40218, "query requires text score metadata, but it is not available")
		}
		return value.DoubleOf(e.Score(e.root)), nil
	}, nil
}

// CheckMeta returns the error for an argument of $meta other than textScore.
func CheckMeta(arg value.Value) error {
	if arg.Kind() != value.String {
		return merr.New(17307, "$meta only supports string arguments")
	}
	switch arg.Str() {
	case "textScore":
		return nil
	case "randVal", "searchScore", "searchHighlights", "geoNearDistance", "geoNearPoint", "recordId", "indexKey",
		"sortKey", "searchScoreDetails", "timeseriesBucketMinTime", "timeseriesBucketMaxTime", "searchSequenceToken",
		"vectorSearchScore":
		return merr.NotSupported("$meta: \"" + arg.Str() + "\"")
	}
	return merr.New(17308, "Unsupported argument to $meta: %s", arg.Str())
}
