package mongoapi

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
	"github.com/orrerydb/orrery/mongoapi/filter"
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

// allTexts is the path of an index over all texts.
const allTexts = "$**"

// isText reports whether an index, as it is stored or requested, is a text index.
func isText(spec value.Value) bool { return len(places(spec, "text")) > 0 }

// textKey returns the stored form of a text index's key, and the paths that it has.
func textKey(key value.Value) (stored value.Value, paths []string, err error) {
	at, b := bson.Begin(nil)
	begun, ended := false, false
	for it := key.Iter(); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if v.Kind() != value.String || v.Str() != "text" {
			if v.Kind() == value.String {
				return key, nil, cannotCreate("expected value 1 or -1 for non-text key in compound index: %s", name)
			}
			ended = begun
			b = value.AppendElement(b, name, v)
			continue
		}
		if ended {
			return key, nil, cannotCreate("'text' fields in index must all be adjacent")
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
	weights := map[string]value.Value{}
	for _, p := range paths {
		weights[p] = value.Int32Of(1)
	}
	if w := spec.Get("weights"); w.IsDefined() {
		if w.Kind() == value.String && len(w.Bytes()) > 0 {
			weights[w.Str()] = value.Int32Of(1)
		} else if w.Kind() != value.Object {
			return dst, cannotCreate("text index option 'weights' must be an object")
		}
		for it := w.Iter(); w.Kind() == value.Object && it.Next(); {
			n, ok := num.ToInt64(it.Value(), true)
			if !it.Value().IsNumber() {
				return dst, cannotCreate("weight for text index needs numeric type")
			}
			if !ok || n < 1 || n >= 100_000 {
				return dst, cannotCreate("text index weight must be in the exclusive interval (0,100000) but found: %s",
					update.Show(it.Value()))
			}
			weights[string(it.Key())] = value.Int32Of(int32(n))
		}
	}
	if len(weights) == 0 {
		return dst, cannotCreate("text index needs at least one field")
	}
	at, dst := bson.BeginObject(dst, "weights")
	for _, p := range slices.Sorted(maps.Keys(weights)) {
		if p != allTexts && (p == "" || slices.ContainsFunc(strings.Split(p, "."), func(s string) bool {
			return s == "" || s[0] == '$'
		})) {
			return dst, cannotCreate("weight can't have a path component that is empty or begins with '$'")
		}
		dst = value.AppendElement(dst, p, weights[p])
	}
	dst = bson.End(dst, at)
	language := "english"
	if l := spec.Get("default_language"); l.IsDefined() {
		if language = l.Str(); l.Kind() != value.String {
			return dst, cannotCreate("text index option 'default_language' must be a string")
		}
		if _, ok := text.LanguageOf(language); !ok {
			return dst, cannotCreate("default_language is not valid")
		}
	}
	override := "language"
	if o := spec.Get("language_override"); o.IsDefined() {
		if override = o.Str(); o.Kind() != value.String || override == "" || override[0] == '$' {
			return dst, cannotCreate("language_override is not valid")
		}
	}
	dst = bson.AppendString(dst, "default_language", language)
	dst = bson.AppendString(dst, "language_override", override)
	if v := spec.Get("textIndexVersion"); v.IsDefined() {
		if n, ok := num.ToInt64(v, false); !ok || n < 1 || n > 3 {
			return dst, cannotCreate("bad textIndexVersion: %s", update.Show(v))
		}
	}
	for _, refused := range []string{"unique", "sparse", "expireAfterSeconds"} {
		if spec.Get(refused).IsDefined() && expr.Truthy(spec.Get(refused)) && refused != "sparse" {
			return dst, cannotCreate("a text index can't have the option %s", refused)
		}
	}
	return bson.AppendInt32(dst, "textIndexVersion", 3), nil
}

// onlyText refuses a second text index.
func onlyText(specs []value.Value) error {
	found := ""
	for _, s := range specs {
		if !isText(s) {
			continue
		}
		if found != "" {
			return cannotCreate("only one text index per collection allowed, found existing text index \"%s\"", found)
		}
		found = s.Get("name").Str()
	}
	return nil
}

// words returns the rules for words of the policy for a declared index: one, or none.
func words(spec value.Value) []core.WordsJSON {
	if !isText(spec) {
		return nil
	}
	j := core.WordsJSON{Language: spec.Get("default_language").Str(), Override: spec.Get("language_override").Str()}
	for it := spec.Get("weights").Iter(); it.Next(); {
		if p := string(it.Key()); p == allTexts {
			j.All = true
		} else {
			j.Paths = append(j.Paths, strings.Split(p, "."))
		}
	}
	return []core.WordsJSON{j}
}

func sameWords(a, b core.WordsJSON) bool { return reflect.DeepEqual(a, b) }

// prepare gives a filter the indexes that it needs, and the environment the textScore. It fails when there are none.
func (k *coll) prepare(f *filter.Filter, e *expr.Env) error {
	if n := f.Near(); n != nil {
		return k.hasPlaces(n)
	}
	t := f.Text()
	if t == nil {
		return nil
	}
	for _, s := range k.indexSpecs() {
		j := words(s)
		if len(j) == 0 || s.Get("hidden").IsDefined() {
			continue
		}
		x := &filter.TextIndex{Words: j[0].Compile()}
		if x.Words == nil {
			continue
		}
		for it := s.Get("weights").Iter(); it.Next(); {
			if w := num.ToFloat(it.Value()); string(it.Key()) == allTexts {
				x.Other = w
			} else {
				x.Weights = append(x.Weights, w)
			}
		}
		t.Bind(x)
		e.Score = t.Score
		return nil
	}
	return merr.New(merr.IndexNotFound, "text index required for $text query")
}

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
