package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats register themselves
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

func makeDeb(r *release) ([]string, error) { return r.linux("deb") }
func makeRPM(r *release) ([]string, error) { return r.linux("rpm") }

// linux makes the packages of a format: the binary, a hardened systemd unit, and /etc/orrery with the settings and,
// made at the installation, the key.
func (r *release) linux(format string) (names []string, err error) {
	for _, arch := range []string{"amd64", "arm64"} {
		binary, ok := r.binaries["linux/"+arch]
		if !ok {
			continue
		}
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: "orrery", Arch: arch, Platform: "linux", Version: r.version, Section: "database",
			Priority:   "optional",
			Maintainer: "The Orrery authors", Description: "Azure Cosmos DB's four APIs over one store, in one binary.",
			License: "Apache-2.0", MTime: r.when,
			Overridables: nfpm.Overridables{
				Contents: files.Contents{
					r.content(binary, "/usr/bin/orrery", "", 0o755),
					r.content(r.path("linux", "orrery.service"), "/usr/lib/systemd/system/orrery.service", "", 0o644),
					r.content(r.path("linux", "orrery.env"), "/etc/orrery/orrery.env", "config|noreplace", 0o644),
					r.content(filepath.Join(r.root, "LICENSE"), "/usr/share/doc/orrery/copyright", "", 0o644),
					{Destination: "/etc/orrery", Type: "dir",
						FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: r.when}},
				},
				Scripts: nfpm.Scripts{PostInstall: r.path("linux", "postinstall.sh"),
					PreRemove: r.path("linux", "preremove.sh")},
			},
		})
		p, err := nfpm.Get(format)
		if err != nil {
			return nil, err
		}
		info.Target = p.ConventionalFileName(info)
		f, err := os.Create(filepath.Join(r.out, info.Target))
		if err != nil {
			return nil, err
		}
		if err := p.Package(info, f); err != nil {
			f.Close()
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		names = append(names, info.Target)
	}
	return names, nil
}

func (r *release) content(from, to, kind string, mode os.FileMode) *files.Content {
	return &files.Content{Source: from, Destination: to, Type: strings.TrimSpace(kind),
		FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.when, Owner: "root", Group: "root"}}
}
