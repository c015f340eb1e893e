package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// file is a file of a package.
type file struct {
	name string
	data []byte
	mode int64
}

func read(path string) ([]byte, error) { return os.ReadFile(path) }

// tarGz writes files to a compressed tar.
func (r *release) tarGz(name string, fs []file) error {
	out, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	defer out.Close()
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := &layerWriter{tar.NewWriter(z), r.when}
	for _, f := range fs {
		if err := w.file(f.name, f.data, f.mode); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return out.Sync()
}

// nodeSystems are npm's words for systems.
var nodeSystems = map[string][2]string{
	"linux/amd64": {"linux", "x64"}, "linux/arm64": {"linux", "arm64"}, "darwin/amd64": {"darwin", "x64"},
	"darwin/arm64": {"darwin", "arm64"}, "windows/amd64": {"win32", "x64"}, "windows/arm64": {"win32", "arm64"},
}

// makeNPM makes a package for each system, which has the binary, and the package @orrerydb/orrery, which depends on all
// of them as optional ones: npm installs the one of the machine. `npx orrery demo` runs it where it is installed. npm's
// name orrery, without a scope, is another project's.
func makeNPM(r *release) (names []string, err error) {
	optional := map[string]string{}
	for _, target := range slices.Sorted(keys(r.binaries)) {
		sys, ok := nodeSystems[target]
		if !ok {
			continue
		}
		name := "@orrerydb/orrery-" + sys[0] + "-" + sys[1]
		exe := "bin/orrery"
		if sys[0] == "win32" {
			exe += ".exe"
		}
		manifest := map[string]any{"name": name, "version": r.version, "license": "Apache-2.0",
			"description": "The binary of orrery for " + target + ".", "os": []string{sys[0]}, "cpu": []string{sys[1]},
			"files": []string{"bin"}, "preferUnplugged": true}
		text, err := json.MarshalIndent(manifest, "", "  ")
		if err != nil {
			return nil, err
		}
		binary, err := read(r.binaries[target])
		if err != nil {
			return nil, err
		}
		archive := fmt.Sprintf("orrerydb-orrery-%s-%s-%s.tgz", sys[0], sys[1], r.version)
		if err := r.tarGz(archive, []file{{"package/package.json", text, 0o644},
			{"package/" + exe, binary, 0o755}}); err != nil {
			return nil, err
		}
		optional[name] = r.version
		names = append(names, archive)
	}
	manifest := map[string]any{"name": "@orrerydb/orrery", "version": r.version, "license": "Apache-2.0",
		"description": "Azure Cosmos DB's four APIs over one store, in one binary.",
		"bin":         map[string]string{"orrery": "bin/orrery.js"}, "main": "index.js",
		"files": []string{"bin", "index.js"}, "engines": map[string]string{"node": ">=18"},
		"optionalDependencies": optional}
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return nil, err
	}
	fs := []file{{"package/package.json", text, 0o644}}
	for _, name := range []string{"README.md", "bin/orrery.js", "index.js"} {
		data, err := read(r.path("npm", filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if strings.HasPrefix(name, "bin/") {
			mode = 0o755
		}
		fs = append(fs, file{"package/" + name, data, mode})
	}
	archive := "orrerydb-orrery-" + r.version + ".tgz"
	return append(names, archive), r.tarGz(archive, fs)
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// wheelSystems are Python's tags of systems. The binary is static, so it needs no C library.
var wheelSystems = map[string]string{
	"linux/amd64":  "manylinux2014_x86_64.musllinux_1_1_x86_64",
	"linux/arm64":  "manylinux2014_aarch64.musllinux_1_1_aarch64",
	"darwin/amd64": "macosx_11_0_x86_64", "darwin/arm64": "macosx_11_0_arm64", "windows/amd64": "win_amd64",
	"windows/arm64": "win_arm64",
}

// makeWheels makes a wheel for each system: the command orrery, and the module orrery_db with a pytest fixture.
func makeWheels(r *release) (names []string, err error) {
	for _, target := range slices.Sorted(keys(r.binaries)) {
		tag, ok := wheelSystems[target]
		if !ok {
			continue
		}
		name, err := r.wheel(target, tag)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

func (r *release) wheel(target, tag string) (string, error) {
	binary, err := read(r.binaries[target])
	if err != nil {
		return "", err
	}
	exe := "orrery"
	if strings.HasPrefix(target, "windows/") {
		exe += ".exe"
	}
	info := "orrery_db-" + r.version + ".dist-info/"
	var tags strings.Builder
	for t := range strings.SplitSeq(tag, ".") {
		fmt.Fprintf(&tags, "Tag: py3-none-%s\n", t)
	}
	fs := []file{
		{"orrery_db-" + r.version + ".data/scripts/" + exe, binary, 0o755},
		{info + "METADATA", []byte("Metadata-Version: 2.1\nName: orrery-db\nVersion: " + r.version +
			"\nSummary: Azure Cosmos DB's four APIs over one store, in one binary.\nLicense: Apache-2.0\n" +
			"Requires-Python: >=3.9\n"), 0o644},
		{info + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: orrery\nRoot-Is-Purelib: false\n" + tags.String()),
			0o644},
		{info + "entry_points.txt", []byte("[pytest11]\norrery = orrery_db.pytest_plugin\n"), 0o644},
	}
	for _, name := range []string{"__init__.py", "pytest_plugin.py"} {
		data, err := read(r.path("python", "orrery_db", name))
		if err != nil {
			return "", err
		}
		fs = append(fs, file{"orrery_db/" + name, data, 0o644})
	}
	slices.SortFunc(fs, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var record strings.Builder
	for _, f := range fs {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	fs = append(fs, file{info + "RECORD", []byte(record.String()), 0o644})
	name := fmt.Sprintf("orrery_db-%s-py3-none-%s.whl", r.version, tag)
	out, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return "", err
	}
	defer out.Close()
	z := zip.NewWriter(out)
	for _, f := range fs {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.when}
		h.SetMode(os.FileMode(f.mode))
		w, err := z.CreateHeader(h)
		if err != nil {
			return "", err
		}
		if _, err := w.Write(f.data); err != nil {
			return "", err
		}
	}
	return name, z.Close()
}

// makeFormula makes the Homebrew formula: the archives of the release, by system, with their checksums. The archives
// are those of `make release`, in the directory above.
func makeFormula(r *release) ([]string, error) {
	text, err := read(r.path("brew", "orrery.rb"))
	if err != nil {
		return nil, err
	}
	formula := strings.ReplaceAll(string(text), "@VERSION@", r.version)
	for target := range nodeSystems {
		goos, arch, _ := strings.Cut(target, "/")
		archives, err := filepath.Glob(filepath.Join(filepath.Dir(r.out),
			fmt.Sprintf("orrery_*_%s_%s.tar.gz", goos, arch)))
		if err != nil || len(archives) != 1 {
			continue
		}
		data, err := read(archives[0])
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		place := "@SHA256_" + strings.ToUpper(goos+"_"+arch) + "@"
		formula = strings.ReplaceAll(formula, place, hex.EncodeToString(sum[:]))
	}
	return []string{"orrery.rb"}, os.WriteFile(filepath.Join(r.out, "orrery.rb"), []byte(formula), 0o644)
}

// makeChart makes the archive of the Helm chart.
func makeChart(r *release) ([]string, error) {
	var fs []file
	for _, name := range []string{"Chart.yaml", "values.yaml", "templates/_helpers.tpl", "templates/secret.yaml",
		"templates/service.yaml", "templates/statefulset.yaml", "templates/NOTES.txt"} {
		data, err := read(r.path("helm", "orrery", filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		if name == "Chart.yaml" {
			data = []byte(strings.ReplaceAll(string(data), "0.0.0", r.version))
		}
		fs = append(fs, file{"orrery/" + name, data, 0o644})
	}
	name := "orrery-chart-" + r.version + ".tgz"
	return []string{name}, r.tarGz(name, fs)
}
