package expr

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// argErrors are the codes of an operator whose argument is an object of named ones: for another type, for a name that
// it doesn't have, and for those that are missing.
type argErrors struct {
	object, unknown int32
	missing         map[string]int32
}

var (
	regexErrors   = argErrors{51103, 31024, map[string]int32{"input": 31022, "regex": 31023}}
	replaceErrors = argErrors{51751, 51750, map[string]int32{"input": 51749, "find": 51748, "replacement": 51747}}
	trimErrors    = argErrors{50696, 50694, map[string]int32{"input": 50695}}
	dateErrors    = argErrors{5166400, 5166401, map[string]int32{"startDate": 5166402, "unit": 5166402,
		"amount": 5166402}}
	fieldErrors = argErrors{4161100, 4161101, map[string]int32{"field": 4161102, "value": 4161103, "input": 4161109}}
	firstErrors = argErrors{5787900, 5787901, map[string]int32{"n": 5787906, "input": 5787907}}
)

// argCodes are the codes of operators. All others answer FailedToParse.
var argCodes = map[string]argErrors{
	"$dateAdd": dateErrors,
	"$dateDiff": {5166301, 5166302, map[string]int32{"startDate": 5166303, "endDate": 5166304,
		"unit": 5166305}},
	"$dateFromParts":  {40519, 40518, nil},
	"$dateFromString": {40540, 40541, map[string]int32{"dateString": 40542}},
	"$dateSubtract":   dateErrors,
	"$dateToParts":    {40524, 40520, map[string]int32{"date": 40522}},
	"$dateToString":   {18629, 18534, map[string]int32{"date": 18628}},
	"$dateTrunc":      {5439007, 5439008, map[string]int32{"date": 5439009, "unit": 5439010}},
	"$filter":         {28646, 28647, map[string]int32{"input": 28648, "cond": 28650}},
	"$firstN":         firstErrors,
	"$getField":       {0, 3041701, map[string]int32{"field": 3041702, "input": 3041703}},
	"$lastN":          firstErrors,
	"$let":            {16874, 16875, map[string]int32{"vars": 16876, "in": 16877}},
	"$ltrim":          trimErrors,
	"$map":            {16878, 16879, map[string]int32{"input": 16880, "in": 16882}},
	"$maxN":           firstErrors,
	"$minN":           firstErrors,
	"$reduce":         {40075, 40076, map[string]int32{"input": 40077, "initialValue": 40078, "in": 40079}},
	"$regexFind":      regexErrors,
	"$regexFindAll":   regexErrors,
	"$regexMatch":     regexErrors,
	"$replaceAll":     replaceErrors,
	"$replaceOne":     replaceErrors,
	"$rtrim":          trimErrors,
	"$setField":       fieldErrors,
	"$sortArray":      {2942500, 2942501, map[string]int32{"input": 2942502, "sortBy": 2942503}},
	"$trim":           trimErrors,
	"$unsetField":     fieldErrors,
	"$zip":            {34460, 34464, map[string]int32{"inputs": 34465}},
}

// namedArgs returns the arguments of an operator, which are the fields of an object.
func namedArgs(name string, arg value.Value, required, optional []string) (map[string]value.Value, error) {
	codes := argCodes[name]
	if arg.Kind() != value.Object {
		return nil, merr.New(cmp.Or(codes.object, merr.FailedToParse), "%s only supports an object as its argument",
			name)
	}
	fs := map[string]value.Value{}
	for it := arg.Iter(); it.Next(); {
		k := string(it.Key())
		if !contains(required, k) && !contains(optional, k) {
			return nil, merr.New(cmp.Or(codes.unknown, merr.FailedToParse), "Unrecognized argument to %s: %s", name, k)
		}
		fs[k] = it.Value()
	}
	for _, k := range required {
		if _, ok := fs[k]; !ok {
			return nil, merr.New(cmp.Or(codes.missing[k], merr.FailedToParse), "Missing '%s' parameter to %s", k, name)
		}
	}
	return fs, nil
}

// isNamed reports whether an argument is an object of named arguments, not an expression.
func isNamed(arg value.Value) bool {
	if arg.Kind() != value.Object {
		return false
	}
	it := arg.Iter()
	return !it.Next() || !bytes.HasPrefix(it.Key(), []byte("$"))
}

// nameError is the error for a text that can't be the name of a field, because names in documents end with a null byte.
// It is nil for all other texts.
func nameError(code int32, name string) error {
	if strings.IndexByte(name, 0) < 0 {
		return nil
	}
	return merr.New(code, "Key field cannot contain an embedded null byte")
}
