package sqlapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/status"
)

// oneOf reports whether s is empty or in list. Case is ignored.
func oneOf(s string, list []string) bool {
	return s == "" || slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, s) })
}

// maxRetention is the longest time, in minutes, for which all versions may be kept: 30 days, as in the service.
const maxRetention = 30 * 24 * 60

// parseChangeFeedPolicy reads a changeFeedPolicy: for how many minutes all versions are kept. 0 and an absent policy
// mean that they are not.
func parseChangeFeedPolicy(raw json.RawMessage) (minutes int64, err error) {
	if isNull(raw) {
		return 0, nil
	}
	var p struct {
		Minutes int64 `json:"retentionDuration"`
	}
	if json.Unmarshal(raw, &p) != nil || p.Minutes < 0 || p.Minutes > maxRetention {
		return 0, invalidMember("changeFeedPolicy")
	}
	return p.Minutes, nil
}

// checkEncryption checks a clientEncryptionPolicy: the paths that clients encrypt, and their keys.
func checkEncryption(raw json.RawMessage) error {
	var p struct {
		Included []struct {
			Path string `json:"path"`
			Key  string `json:"clientEncryptionKeyId"`
			Type string `json:"encryptionType"`
		} `json:"includedPaths"`
		Version *int `json:"policyFormatVersion"`
	}
	if json.Unmarshal(raw, &p) != nil || p.Version != nil && *p.Version != 1 && *p.Version != 2 {
		return errInvalid
	}
	for _, x := range p.Included {
		if !validPath(x.Path) || x.Key == "" || x.Type != "Deterministic" && x.Type != "Randomized" {
			return errInvalid
		}
	}
	return nil
}

// invalidMember returns the error for an invalid member of a container's definition.
func invalidMember(name string) error {
	return status.New(status.BadRequest, msgInvalid+": the member %s of the container.", name)
}
