package expr

import (
	"math"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// meta compiles {$meta: "textScore"}: how well the document matches the $text of the query; {$meta: "searchScore"} and
// {$meta: "vectorSearchScore"}: how near its vector is; and {$meta: "sortKey"}: the values by which it was sorted.
// textScore and sortKey are those of the document as the expression sees it, so it must still have the fields that were
// searched.
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
	name := arg.Str()
	return func(e *Env) (value.Value, error) {
		score := e.ScoreOf(name)
		if score == nil {
			return value.Undef(), NoScore(name)
		}
		if f := score(e.root); !math.IsNaN(f) {
			return value.DoubleOf(f), nil
		}
		return value.Undef(), nil
	}, nil
}

// scoreNames are the scores of $meta, as errors call them.
var scoreNames = map[string]string{"textScore": "text score", "searchScore": "$search score",
	"vectorSearchScore": "$vectorSearch score"}

// NoScore is the error for a score that nothing has computed.
func NoScore(meta string) error {
	return merr.New(40218, "query requires %s metadata, but it is not available", scoreNames[meta])
}

// ScoreOf returns the function that computes a score of $meta, nil if there is none. It returns NaN for a document
// without a score. The two scores of searches are the same one, because no pipeline has both.
func (e *Env) ScoreOf(meta string) func(doc value.Value) float64 {
	switch {
	case meta == "textScore":
		return e.Score
	case e.Search == nil:
		return nil
	}
	return func(doc value.Value) float64 {
		if f, ok := e.Search(doc); ok {
			return f
		}
		return math.NaN()
	}
}

// CheckMeta returns the error for an argument of $meta that isn't the name of a score.
func CheckMeta(arg value.Value) error {
	if arg.Kind() != value.String {
		return merr.New(17307, "$meta only supports string arguments")
	}
	name := arg.Str()
	if scoreNames[name] != "" {
		return nil
	}
	switch name {
	case "randVal", "searchHighlights", "geoNearDistance", "geoNearPoint", "recordId", "indexKey", "sortKey",
		"searchScoreDetails", "timeseriesBucketMinTime", "timeseriesBucketMaxTime", "searchSequenceToken":
		return merr.NotSupported("$meta: \"" + name + "\"")
	}
	return merr.New(17308, "Unsupported argument to $meta: %s", name)
}
