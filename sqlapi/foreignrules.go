package sqlapi

import (
	"bytes"
	"encoding/json"

	"github.com/orrerydb/orrery/core"
)

// Rules of other APIs. The MongoDB API writes three kinds of rules into a container's indexing policy that this API
// has no name for: wordIndexes (its text indexes), collatedIndexes (those with a collation), and spatial indexes that
// are marked with pairs (its 2dsphere and 2d indexes). A definition doesn't show them, because SDKs write a policy back
// as they have read it, and a 2d index has a box that a Geography container refuses. A replaced policy keeps them.
// Example:
//
//	stored      {.., "spatialIndexes":[{"path":"/a/*"},{"path":"/at/*","pairs":true}], "wordIndexes":[{..}]}
//	shown       {.., "spatialIndexes":[{"path":"/a/*"}]}
//	replaced by {..}
//	stored      {.., "spatialIndexes":[{"path":"/at/*","pairs":true}], "wordIndexes":[{..}]}

// storedPolicyJSON is an indexing policy with all that any API wrote.
type storedPolicyJSON struct {
	indexingJSON
	Words    []json.RawMessage `json:"wordIndexes,omitempty"`
	Collated []json.RawMessage `json:"collatedIndexes,omitempty"`
	Texts    []core.TextJSON   `json:"textIndexes,omitempty"` // of this API: see indexTexts
}

// hasForeignRules reports whether a stored policy may have such rules. It costs no more than a search for their names.
func hasForeignRules(policy []byte) bool {
	return bytes.Contains(policy, []byte(`"pairs"`)) || bytes.Contains(policy, []byte(`"wordIndexes"`)) ||
		bytes.Contains(policy, []byte(`"collatedIndexes"`)) || bytes.Contains(policy, []byte(`"textIndexes"`))
}

// ownRules returns a stored policy without the rules of other APIs.
func ownRules(policy []byte) []byte {
	if !hasForeignRules(policy) {
		return policy
	}
	var p storedPolicyJSON
	if json.Unmarshal(policy, &p) != nil {
		return policy
	}
	p.Words, p.Collated, p.Texts = nil, nil, nil
	p.Spatial, _ = byOrigin(p.Spatial)
	return remade(&p, policy)
}

// keepForeignRules returns the new policy with the rules of other APIs that the old one had. A policy without an index
// has no rules.
func keepForeignRules(policy, old []byte) []byte {
	if !hasForeignRules(old) {
		return policy
	}
	var p, was storedPolicyJSON
	if json.Unmarshal(policy, &p) != nil || json.Unmarshal(old, &was) != nil || p.Mode == "none" {
		return policy
	}
	_, foreign := byOrigin(was.Spatial)
	p.Spatial = append(p.Spatial, foreign...)
	p.Words, p.Collated = was.Words, was.Collated
	return remade(&p, policy)
}

// remade is the JSON of a policy, or the JSON that it had if that fails.
func remade(p *storedPolicyJSON, policy []byte) []byte {
	out, err := marshal(p)
	if err != nil {
		return policy
	}
	return out
}

// byOrigin divides spatial indexes into those of this API and those of others.
func byOrigin(list []json.RawMessage) (own, foreign []json.RawMessage) {
	for _, raw := range list {
		var r struct{ Pairs bool }
		if json.Unmarshal(raw, &r) == nil && r.Pairs {
			foreign = append(foreign, raw)
		} else {
			own = append(own, raw)
		}
	}
	return own, foreign
}
