package sqlapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	coretext "github.com/orrerydb/orrery/core/text"
	"github.com/orrerydb/orrery/sqlapi/sql"
	"github.com/orrerydb/orrery/sqlapi/sql/expand"
)

// A container's full-text policy names the language of the texts at each path, as a language tag. Full-text indexes are
// part of the indexing policy. Each is on a path of the full-text policy.
//
// Example: {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "de-DE"}, {"path": "/title"}]}
// says that texts at /text are German and all others English.

const defaultTextLanguage = "en-US"

// textLanguages are the language tags that the error for another one names. Other regions of these languages are
// accepted, too.
var textLanguages = []string{"en-US", "da-DK", "de-DE", "es-ES", "fi-FI", "fr-FR", "hu-HU", "it-IT", "nb-NO", "nl-NL",
	"pt-BR", "pt-PT", "ro-RO", "ru-RU", "sv-SE", "tr-TR"}

// fullTextPolicy is a parsed full-text policy: the English name of the default language, and the paths.
type fullTextPolicy struct {
	language string
	paths    []expand.TextPath
	written  []string // the paths as they are written
}

// parseFullText parses a full-text policy; nil is the policy of a container without one.
func parseFullText(raw []byte) (p fullTextPolicy, err error) {
	var j struct {
		Language *string `json:"defaultLanguage"`
		Paths    []struct {
			Path     string  `json:"path"`
			Language *string `json:"language"`
		} `json:"fullTextPaths"`
	}
	if len(raw) > 0 && json.Unmarshal(raw, &j) != nil {
		return p, status.New(status.BadRequest, "The Full Text Policy contains invalid syntax.")
	}
	tag := defaultTextLanguage
	if j.Language != nil {
		tag = *j.Language
	}
	if p.language, err = textLanguage(tag); err != nil {
		return p, err
	}
	for _, x := range j.Paths {
		segs, bad := core.ParsePath(x.Path)
		if bad != nil || !validPath(x.Path) || strings.Contains(x.Path, "[]") || slices.Contains(p.written, x.Path) {
			return p, status.New(status.BadRequest, "The Full Text Policy contains an invalid Path: %s", clip(x.Path))
		}
		t := expand.TextPath{Path: segs, Language: p.language}
		if x.Language != nil {
			if t.Language, err = textLanguage(*x.Language); err != nil {
				return p, err
			}
		}
		p.paths, p.written = append(p.paths, t), append(p.written, x.Path)
	}
	return p, nil
}

// textLanguage returns the English name of the language of a tag.
func textLanguage(tag string) (string, error) {
	code, _, _ := strings.Cut(tag, "-")
	l, ok := coretext.LanguageOf(code)
	if !ok || len(code) != 2 {
		return "", status.New(status.BadRequest, "The Full Text Policy contains an unsupported language %s. Supported "+
			"languages are: \"%s\"", clip(tag), strings.Join(textLanguages, "\", \""))
	}
	return l.Name(), nil
}

// checkFullText checks a fullTextPolicy.
func checkFullText(raw json.RawMessage) error {
	_, err := parseFullText(raw)
	return err
}

// checkTextIndexPaths checks the paths of full-text indexes.
func checkTextIndexPaths(list []json.RawMessage) error {
	for i, raw := range list {
		path, err := pathOf(raw)
		switch {
		case err != nil:
			return status.New(status.BadRequest, "Missing path in full-text index specification at index (%d).", i)
		case !validPath(path) || strings.Contains(path, "[]"):
			return status.New(status.BadRequest, "Full-text index specification at index (%d) contains invalid path.",
				i)
		}
	}
	return nil
}

// checkTextIndexes checks that each full-text index is on a path of the full-text policy.
func checkTextIndexes(spec *core.ContainerSpec) error {
	var p struct {
		Indexes []struct {
			Path string `json:"path"`
		} `json:"fullTextIndexes"`
	}
	if json.Unmarshal(spec.IndexingPolicy, &p) != nil || len(p.Indexes) == 0 {
		return nil // the policy has been checked before
	}
	texts, err := parseFullText(spec.Properties[fullTextMember])
	if err != nil {
		return err
	}
	for _, x := range p.Indexes {
		if !slices.Contains(texts.written, x.Path) {
			return status.New(status.BadRequest, "The path of the Full Text Index %s does not match the path "+
				"specified in the Full Text Policy", clip(x.Path))
		}
	}
	return nil
}

// indexTexts returns the indexing policy with the rules that make its full-text indexes. They have the languages of the
// full-text policy. A definition doesn't show them.
//
// Example: {"fullTextIndexes": [{"path": "/text"}]} is stored with {"textIndexes": [{"path": ["text"], "language":
// "english"}]} in addition.
func indexTexts(spec *core.ContainerSpec) []byte {
	var p storedPolicyJSON
	if json.Unmarshal(spec.IndexingPolicy, &p) != nil || len(p.FullText) == 0 || p.Mode == "none" {
		return spec.IndexingPolicy
	}
	texts, err := parseFullText(spec.Properties[fullTextMember])
	if err != nil { // it has been checked before
		return spec.IndexingPolicy
	}
	p.Texts = nil
	for _, raw := range p.FullText {
		path, _ := pathOf(raw)
		for i, t := range texts.paths {
			if texts.written[i] == path {
				p.Texts = append(p.Texts, core.TextJSON{Path: t.Path, Language: t.Language,
					Common: sql.CommonWords(t.Language)})
			}
		}
	}
	return remade(&p, spec.IndexingPolicy)
}
