package sqlapi

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/sql"
	"github.com/orrerydb/orrery/sqlapi/sql/expand"
)

const (
	computedMember = propertyPrefix + "computedProperties"
	vectorMember   = propertyPrefix + "vectorEmbeddingPolicy"
	fullTextMember = propertyPrefix + "fullTextPolicy"
)

// checkComputed checks a container's computed properties against the service's rules. None may have the name of a
// partition key path: a filter on the key's path must refer to the stored value.
func checkComputed(spec *core.ContainerSpec) error {
	raw := spec.Properties[computedMember]
	if raw == nil {
		return nil
	}
	defs, err := parseComputed(raw)
	if err != nil {
		return err
	}
	if len(defs) > maxComputed {
		return status.New(status.BadRequest, "A container has at most %d computed properties.", maxComputed)
	}
	if _, err = sql.NewComputed(defs); err != nil {
		return err
	}
	for _, d := range defs {
		for _, p := range spec.PartitionKey.Paths {
			if head, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/"); strings.Trim(head, `"`) == d.Name {
				return status.New(status.BadRequest, "The computed property '%s' has the name of a partition key path.",
					clip(d.Name))
			}
		}
	}
	return nil
}

func parseComputed(raw []byte) ([]expand.Property, error) {
	var list []struct{ Name, Query *string }
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errInvalid
	}
	defs := make([]expand.Property, len(list))
	for i, e := range list {
		if e.Name == nil || e.Query == nil {
			return nil, status.New(status.BadRequest, "A computed property needs a name and a query.")
		}
		defs[i] = expand.Property{Name: *e.Name, Query: *e.Query}
	}
	return defs, nil
}

// computedCache caches parsed definitions by their text. Few containers have definitions, and each query needs them.
type computedCache struct {
	mu sync.RWMutex
	m  map[string]*expand.Computed
}

const maxComputedCache = 256

// of returns the computed properties of a container, the distance functions of its vectors and the languages of its
// texts, nil when it has none of these.
func (cc *computedCache) of(ct *core.Container) *expand.Computed {
	spec := ct.Spec()
	raw, vectors, texts := spec.Properties[computedMember], spec.Properties[vectorMember],
		spec.Properties[fullTextMember]
	if len(raw)+len(vectors)+len(texts) == 0 {
		return nil
	}
	key := string(raw) + "\x00" + string(vectors) + "\x00" + string(texts)
	cc.mu.RLock()
	c, ok := cc.m[key]
	cc.mu.RUnlock()
	if ok {
		return c
	}
	if len(raw) > 0 {
		if defs, err := parseComputed(raw); err == nil {
			// Older servers did not check definitions. A container whose definitions are not valid has no computed
			// properties.
			c, _ = sql.NewComputed(defs)
		}
	}
	c = c.WithEmbeddings(embeddings(vectors))
	if p, err := parseFullText(texts); err == nil { // an older server didn't check it
		c = c.WithTexts(p.language, p.paths)
	}
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.m == nil || len(cc.m) >= maxComputedCache {
		cc.m = map[string]*expand.Computed{}
	}
	cc.m[key] = c
	return c
}

// embeddings converts a stored vector embedding policy to the form that package sql takes.
func embeddings(raw []byte) (out []expand.Embedding) {
	if len(raw) == 0 {
		return nil
	}
	list, err := vectorEmbeddings(raw)
	if err != nil {
		return nil // stored by an older server that didn't check it
	}
	for _, e := range list {
		if segs, err := core.ParsePath(e.Path); err == nil {
			out = append(out, expand.Embedding{Path: segs, Distance: e.Distance})
		}
	}
	return out
}
