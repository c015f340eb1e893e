package explorer

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/traversal/compile"
)

// What a read-only session may ask for. Everything is refused that isn't known to change nothing.

func readOnly(what string) *refused {
	return &refused{http.StatusForbidden, "ReadOnly", "This session is read-only, and " + what + "."}
}

// mayRead returns why a request that a read-only session sends over HTTP is refused, or nil.
func mayRead(door string, r *http.Request) *refused {
	if door == "nosql" && OfPermissions(r.URL.EscapedPath()) {
		return readOnly("a permission has a token, with which its bearer may be allowed to write")
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if door == "gremlin" {
			return readOnly("a script must be sent as a POST")
		}
		return nil
	}
	if r.Method == http.MethodPost && r.Header.Get("X-Http-Method") == "" {
		switch door {
		case "nosql":
			if asksOnly(r) {
				return nil
			}
		case "gremlin":
			return mayEvaluate(r)
		}
	}
	return readOnly("this request would change something")
}

// OfPermissions reports whether a path of the NoSQL API, escaped, is that of permissions, whose replies have tokens:
// /dbs/shop/users/ann/permissions, or one of them.
func OfPermissions(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	return len(parts) > 4 && parts[2] == "users" && parts[4] == "permissions"
}

// asksOnly reports whether a POST of the NoSQL API is a query or asks for a query plan. Only feeds can be queried: a
// POST to a procedure runs it, whatever its headers say.
func asksOnly(r *http.Request) bool {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	isTrue := func(name string) bool { return strings.EqualFold(r.Header.Get(name), "true") }
	if len(parts)%2 == 0 || isTrue("X-Ms-Cosmos-Is-Batch-Request") || isTrue("X-Ms-Documentdb-Is-Upsert") {
		return false
	}
	return isTrue("X-Ms-Documentdb-Isquery") || isTrue("X-Ms-Cosmos-Is-Query-Plan-Request")
}

// maxScript is the largest Gremlin request in bytes that a read-only session may send.
const maxScript = 1 << 20

// words are the names in a script, and the words in its texts.
var words = regexp.MustCompile(`[A-Za-z_]\w*`)

// mayEvaluate refuses a script that contains the name of a step that writes, even inside of a text: that is stricter
// than necessary, and doesn't depend on how scripts are parsed. The request is written again from what was read, so
// that the door reads the same.
func mayEvaluate(r *http.Request) *refused {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxScript+1))
	var ask struct {
		Gremlin  string            `json:"gremlin"`
		Aliases  map[string]string `json:"aliases,omitempty"`
		Bindings map[string]any    `json:"bindings,omitempty"`
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	if err != nil || len(body) > maxScript || in.Decode(&ask) != nil || typed(ask.Bindings) {
		return readOnly("the request can't be read: it may have a script, aliases, and bindings of plain values")
	}
	for _, w := range words.FindAllString(ask.Gremlin, -1) {
		if compile.Mutates(w) {
			return readOnly("the script has the word " + w + ", which is a step that writes")
		}
	}
	if body, err = json.Marshal(ask); err != nil {
		return readOnly("the request can't be read")
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Del("Content-Length")
	return nil
}

// typed reports whether a value has a typed value of GraphSON, which could be a traversal.
func typed(v any) bool {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if strings.HasPrefix(k, "@") || typed(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(x, typed)
	}
	return false
}

// readers are the MongoDB commands that change nothing. killOp and killCursors end what the page has begun.
var readers = map[string]bool{
	"aggregate": true, "buildInfo": true, "collStats": true, "count": true, "currentOp": true, "dbStats": true,
	"distinct": true, "explain": true, "find": true, "getLastRequestStatistics": true, "getMore": true, "hello": true,
	"killCursors": true, "killOp": true, "listCollections": true, "listCommands": true, "listDatabases": true,
	"listIndexes": true, "listSearchIndexes": true, "ping": true, "serverStatus": true,
}

// mayRun returns why a MongoDB command is refused in a read-only session, or nil. The stages $out and $merge write;
// they are looked for at any depth.
func mayRun(command doc.Doc) *refused {
	it := doc.Value(command).Iter()
	if !it.Next() || !readers[string(it.Key())] {
		return readOnly("this command may change something")
	}
	if hasStage(doc.Value(command)) {
		return readOnly("the stages $out and $merge write")
	}
	return nil
}

func hasStage(v value.Value) bool {
	if v.Kind() != value.Object && v.Kind() != value.Array {
		return false
	}
	for it := v.Iter(); it.Next(); {
		if k := string(it.Key()); k == "$out" || k == "$merge" || hasStage(it.Value()) {
			return true
		}
	}
	return false
}
