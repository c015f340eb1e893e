package main

import (
	"encoding/json"
	"runtime/debug"
)

// The parts of CycloneDX 1.6 (cyclonedx.org) that tell of Go modules.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

// bomOf lists the modules of a binary, and the Go release that its standard library is of.
func bomOf(info *debug.BuildInfo) ([]byte, error) {
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Components: []component{}}
	b.Metadata.Component = componentOf("application", info.Main.Path, version(info))
	b.Components = append(b.Components, componentOf("library", "std", info.GoVersion))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, componentOf("library", m.Path, m.Version))
	}
	return json.MarshalIndent(b, "", "  ")
}

func componentOf(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}
