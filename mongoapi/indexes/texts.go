package indexes

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/text"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// Text indexes. The one of a collection is stored in MongoDB's own form: the key has the names _fts and _ftsx at the
// place of the paths, which are in weights. It becomes the rule for words of the container's policy, so each term of a
// document has an entry.
//
// Example: {key: {title: "text", body: "text"}, weights: {title: 5}} is stored as {key: {_fts: "text", _ftsx: 1},
// weights: {body: 1, title: 5}, default_language: "english", language_override: "language", textIndexVersion: 3}.

// AllTexts is the path of an index over all texts.
const AllTexts = "$**"

// isText reports whether an index, as it is stored or requested, is a text index.
func isText(spec value.Value) bool { return len(Places(spec, "text")) > 0 }

// textKey returns the stored form of a text index's key, and the paths that it has.
func textKey(key value.Value) (stored value.Value, paths []string, err error) {
	at, b := bson.Begin(nil)
	begun, ended := false, false
	for it := key.Iter(); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if v.Kind() != value.String || v.Str() != "text" {
			if v.Kind() == value.String {
				return key, nil, CannotCreate("expected value 1 or -1 for non-text key in compound index: %s", name)
			}
			ended = begun
			b = value.AppendElement(b, name, v)
			continue
		}
		if ended {
			return key, nil, CannotCreate("'text' fields in index must all be adjacent")
		}
		if !begun {
			b = bson.AppendString(b, "_fts", "text")
			b = bson.AppendInt32(b, "_ftsx", 1)
			begun = true
		}
		if name != "_fts" {
			paths = append(paths, name)
		}
	}
	return value.ObjectOf(bson.End(b, at)), paths, nil
}

// textOptions appends the options of a text index to its stored form. paths are those of its key.
func textOptions(dst []byte, spec value.Value, paths []string) ([]byte, error) {
	dst, err := textWeights(dst, spec.Get("weights"), paths)
	if err != nil {
		return dst, err
	}
	language := "english"
	if l := spec.Get("default_language"); l.IsDefined() {
		if language = l.Str(); l.Kind() != value.String {
			return dst, CannotCreate("text index option 'default_language' must be a string")
		}
		if _, ok := text.LanguageOf(language); !ok {
			return dst, CannotCreate("default_language is not valid")
		}
	}
	override := "language"
	if o := spec.Get("language_override"); o.IsDefined() {
		if override = o.Str(); o.Kind() != value.String || override == "" || override[0] == '$' {
			return dst, CannotCreate("language_override is not valid")
		}
	}
	dst = bson.AppendString(dst, "default_language", language)
	dst = bson.AppendString(dst, "language_override", override)
	if v := spec.Get("textIndexVersion"); v.IsDefined() {
		if n, ok := num.ToInt64(v, false); !ok || n < 1 || n > 3 {
			return dst, CannotCreate("bad textIndexVersion: %s", update.Show(v))
		}
	}
	for _, refused := range []string{"unique", "prepareUnique", "expireAfterSeconds"} {
		if spec.Get(refused).IsDefined() && expr.Truthy(spec.Get(refused)) {
			return dst, CannotCreate("a text index can't have the option %s", refused)
		}
	}
	return bson.AppendInt32(dst, "textIndexVersion", 3), nil
}

// textWeights appends the weights of a text index's paths: those that are given, and 1 for the other paths of the key.
func textWeights(dst []byte, given value.Value, paths []string) ([]byte, error) {
	weights := map[string]value.Value{}
	for _, p := range paths {
		weights[p] = value.Int32Of(1)
	}
	if given.Kind() == value.String && len(given.Bytes()) > 0 {
		weights[given.Str()] = value.Int32Of(1)
	} else if given.IsDefined() && given.Kind() != value.Object {
		return dst, CannotCreate("text index option 'weights' must be an object")
	}
	for it := given.Iter(); it.Next(); {
		n, ok := num.ToInt64(it.Value(), true)
		if !it.Value().IsNumber() {
			return dst, CannotCreate("weight for text index needs numeric type")
		}
		if !ok || n < 1 || n >= 100_000 {
			return dst, CannotCreate("text index weight must be in the exclusive interval (0,100000) but found: %s",
				update.Show(it.Value()))
		}
		weights[string(it.Key())] = value.Int32Of(int32(n))
	}
	if len(weights) == 0 {
		return dst, CannotCreate("text index needs at least one field")
	}
	at, dst := bson.BeginObject(dst, "weights")
	for _, p := range slices.Sorted(maps.Keys(weights)) {
		if p != AllTexts && (p == "" || slices.ContainsFunc(strings.Split(p, "."), func(s string) bool {
			return s == "" || s[0] == '$'
		})) {
			return dst, CannotCreate("weight can't have a path component that is empty or begins with '$'")
		}
		dst = value.AppendElement(dst, p, weights[p])
	}
	return bson.End(dst, at), nil
}

// OneText refuses a second text index.
func OneText(specs []value.Value) error {
	found := ""
	for _, s := range specs {
		if !isText(s) {
			continue
		}
		if found != "" {
			return CannotCreate("only one text index per collection allowed, found existing text index \"%s\"", found)
		}
		found = s.Get("name").Str()
	}
	return nil
}

// Words returns the rules for words of the policy for a declared index: one, or none.
func Words(spec value.Value) []core.WordsJSON {
	if !isText(spec) {
		return nil
	}
	j := core.WordsJSON{Language: spec.Get("default_language").Str(), Override: spec.Get("language_override").Str()}
	for it := spec.Get("weights").Iter(); it.Next(); {
		if p := string(it.Key()); p == AllTexts {
			j.All = true
		} else {
			j.Paths = append(j.Paths, strings.Split(p, "."))
		}
	}
	return []core.WordsJSON{j}
}

func sameWords(a, b core.WordsJSON) bool { return reflect.DeepEqual(a, b) }

// checkTexts refuses a document whose language the text index doesn't know.
func checkTexts(d value.Value, spec value.Value) error {
	override := spec.Get("language_override").Str()
	if l := d.Get(override); l.IsDefined() {
		if l.Kind() != value.String {
			return merr.New(17261, "found language override field in document with non-string type")
		}
		if _, ok := text.LanguageOf(l.Str()); !ok {
			return merr.New(17262, "language override unsupported: %s", l.Str())
		}
	}
	return nil
}
