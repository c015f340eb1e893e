package sqlapi

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
)

// Limits of a container's definition.
const (
	maxName        = 255
	maxUniqueKeys  = 10
	maxUniquePaths = 16
	maxComputed    = 20
	maxKeyPaths    = 3
)

// indexingJSON is an indexing policy in the form that clients send and replies show. Parts that this server doesn't
// interpret are stored as sent.
type indexingJSON struct {
	Mode      string            `json:"indexingMode"`
	Automatic *bool             `json:"automatic"`
	Included  []json.RawMessage `json:"includedPaths"`
	Excluded  []json.RawMessage `json:"excludedPaths"`
	Spatial   []json.RawMessage `json:"spatialIndexes,omitempty"`
	Composite [][]compositeJSON `json:"compositeIndexes,omitempty"`
	Vector    []json.RawMessage `json:"vectorIndexes,omitempty"`
	FullText  []json.RawMessage `json:"fullTextIndexes,omitempty"`
}

type compositeJSON struct {
	Path  string `json:"path"`
	Order string `json:"order"`
}

func badPolicy(format string, args ...any) error {
	return status.New(status.BadRequest, "The indexing policy is invalid: "+format, args...)
}

// normalIndexing checks an indexing policy and completes it with the service's defaults. The result is the JSON that is
// stored and echoed. nil and null give the default policy.
func normalIndexing(in []byte) ([]byte, error) {
	if len(in) == 0 || string(in) == "null" {
		return []byte(core.DefaultIndexing), nil
	}
	var p indexingJSON
	if err := json.Unmarshal(in, &p); err != nil {
		return nil, badPolicy("it is not of the documented shape.")
	}
	switch m := strings.ToLower(p.Mode); m {
	case "":
		p.Mode = "consistent"
	case "consistent", "lazy", "none":
		p.Mode = m
	default:
		return nil, badPolicy("unknown indexing mode '%s'.", clip(p.Mode))
	}
	auto := p.Mode != "none"
	if p.Automatic == nil {
		p.Automatic = &auto
	}
	if p.Mode == "none" {
		if *p.Automatic {
			return nil, badPolicy("automatic must be false when indexing mode is none.")
		}
		p.Included, p.Excluded = []json.RawMessage{}, []json.RawMessage{}
		return json.Marshal(&p)
	}
	if err := p.checkPaths(); err != nil {
		return nil, err
	}
	if err := p.checkComposites(); err != nil {
		return nil, err
	}
	if err := p.checkSpatial(); err != nil {
		return nil, err
	}
	if err := checkPathList("vector index", p.Vector, false); err != nil {
		return nil, err
	}
	if err := checkTextIndexPaths(p.FullText); err != nil {
		return nil, err
	}
	return marshal(&p)
}

// checkPaths validates included and excluded paths. Like the service it includes all paths when none is named, and adds
// the system path _etag to the excluded ones.
func (p *indexingJSON) checkPaths() error {
	if len(p.Included) > core.MaxIndexPaths || len(p.Excluded) > core.MaxIndexPaths {
		return badPolicy("more than %d paths.", core.MaxIndexPaths)
	}
	root, etag := false, false
	seen := map[string]bool{}
	for i, list := range [][]json.RawMessage{p.Included, p.Excluded} {
		for j, e := range list {
			path, err := pathOf(e)
			valid := validIndexPath(path)
			if tuple, ok := core.TuplePath(path); tuple {
				valid = ok && i == 0
			}
			if err != nil || !valid {
				return badPolicy("the indexing path '%s' could not be accepted, please ensure that the path is "+
					"correctly formed.", clip(path))
			}
			if seen[path] {
				return badPolicy("the indexing path '%s' is given twice.", clip(path))
			}
			list[j] = withoutKinds(e)
			seen[path] = true
			root = root || isRoot(path)
			etag = etag || i == 1 && path == core.ETagPath
		}
	}
	if !root {
		if len(p.Included)+len(p.Excluded) > 0 && !(len(p.Excluded) > 0 && len(p.Included) == 0) {
			return status.New(status.BadRequest,
				`The special mandatory indexing path "/*" is not provided in any of the `+
					`path type sets. Please provide this path in one of the sets.`)
		}
		p.Included = append(p.Included, json.RawMessage(`{"path":"/*"}`))
	}
	if !etag && !seen[core.ETagPath] {
		p.Excluded = append(p.Excluded, json.RawMessage(`{"path":`+core.ETagPathJSON+`}`))
	}
	if p.Included == nil {
		p.Included = []json.RawMessage{}
	}
	return nil
}

func (p *indexingJSON) checkComposites() error {
	if len(p.Composite) > core.MaxCompositeIndexes {
		return badPolicy("more than %d composite indexes.", core.MaxCompositeIndexes)
	}
	for _, fields := range p.Composite {
		if len(fields) < 2 || len(fields) > core.MaxCompositePaths {
			return badPolicy("a composite index has 2 to %d paths.", core.MaxCompositePaths)
		}
		for i := range fields {
			f := &fields[i]
			if !validPath(f.Path) || strings.ContainsAny(f.Path, "*?[") {
				return badPolicy("the composite path '%s' could not be accepted.", clip(f.Path))
			}
			switch o := strings.ToLower(f.Order); o {
			case "":
				f.Order = "ascending"
			case "ascending", "descending":
				f.Order = o
			default:
				return badPolicy("unknown order '%s' of a composite index.", clip(f.Order))
			}
		}
	}
	return nil
}

// checkPathList validates a list of objects with a path.
func checkPathList(what string, list []json.RawMessage, wildcard bool) error {
	for _, e := range list {
		path, err := pathOf(e)
		if err != nil || !validPath(strings.TrimSuffix(strings.TrimSuffix(path, "/*"), "/?")) && path != "/*" {
			return badPolicy("the %s path '%s' could not be accepted.", what, clip(path))
		}
	}
	return nil
}

func pathOf(e json.RawMessage) (string, error) {
	var p struct {
		Path *string `json:"path"`
	}
	if err := json.Unmarshal(e, &p); err != nil || p.Path == nil {
		return "", errInvalid
	}
	return *p.Path, nil
}

// withoutKinds takes from a path the kinds of indexes that clients once chose. An index of every path is of kind Range
// since then, and the service doesn't show those of kind Hash and Range.
func withoutKinds(e json.RawMessage) json.RawMessage {
	var p map[string]json.RawMessage
	var kinds []struct{ Kind string }
	if json.Unmarshal(e, &p) != nil || json.Unmarshal(p["indexes"], &kinds) != nil {
		return e
	}
	for _, k := range kinds {
		if k.Kind != "Hash" && k.Kind != "Range" {
			return e
		}
	}
	delete(p, "indexes")
	out, err := marshal(p)
	if err != nil {
		return e
	}
	return out
}

// isRoot reports whether an indexing path means all paths. Policies of the first versions of the protocol write "/".
func isRoot(path string) bool { return path == "/*" || path == "/" }

// validIndexPath accepts the root, and paths that end in "/?" or "/*".
func validIndexPath(path string) bool {
	if isRoot(path) {
		return true
	}
	if !strings.HasSuffix(path, "/?") && !strings.HasSuffix(path, "/*") {
		return false
	}
	return validPath(path[:len(path)-2])
}

// validPath accepts a property path: "/a/b", with quoted segments and "[]" for array elements.
func validPath(path string) bool {
	if len(path) < 2 || path[0] != '/' {
		return false
	}
	for rest := path; rest != ""; {
		rest = rest[1:]
		if strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "'") {
			end := strings.IndexByte(rest[1:], rest[0])
			if end <= 0 {
				return false
			}
			rest = rest[end+2:]
			if rest != "" && rest[0] != '/' {
				return false
			}
			continue
		}
		end := strings.IndexByte(rest, '/')
		if end < 0 {
			end = len(rest)
		}
		if end == 0 || strings.ContainsAny(rest[:end], `*?"`) {
			return false
		}
		rest = rest[end:]
	}
	return true
}

func badTTL(v string) error {
	return status.New(status.BadRequest, "The input ttl '%s' is invalid. Ensure to provide a nonzero positive integer "+
		"less than or equal to '2147483647', or '-1' which means never expire.", clip(v))
}

// validTTL reports whether a time to live is -1 or a positive int32.
func validTTL(n int64) bool { return n == -1 || n > 0 && n <= math.MaxInt32 }

// validName checks the id of a database or container.
func validName(id string) error {
	if id == "" || len(id) > maxName || strings.ContainsAny(id, "/\\?#\x00\r\n\t") || strings.HasSuffix(id, " ") {
		return status.New(status.BadRequest, "The input name '%s' is invalid. Ensure to provide a unique non-empty "+
			"string less than '%d' characters.", clip(id), maxName)
	}
	return nil
}

// marshal returns JSON without escapes of HTML characters, so that policies are echoed as they were sent.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// compact returns JSON without white space.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return raw
	}
	return b.Bytes()
}
