package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The container image: the binary, the root certificates, a user without rights, and directories that it may write.
// There is no shell. It listens on all addresses of the container, or no published port would reach it. With the
// well-known key it serves only the container's own networks (--own-networks); with ORRERY_KEY or --key-file everybody.

// imageUser is the user and group of the server in the image.
const imageUser = "10001"

// imageName is the file with the image of all platforms: an OCI layout in a tar, which docker load and skopeo read.
const imageName = "orrery-image.oci.tar"

func makeImage(r *release) ([]string, error) { return r.images(imageName, r.image) }

// images writes the images of both platforms to one file.
func (r *release) images(name string, image func(arch, binary string) (v1.Image, error)) ([]string, error) {
	var index v1.ImageIndex = empty.Index
	for _, arch := range []string{"amd64", "arm64"} {
		binary, ok := r.binaries["linux/"+arch]
		if !ok {
			continue
		}
		img, err := image(arch, binary)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: "linux", Architecture: arch},
			Annotations: map[string]string{"org.opencontainers.image.ref.name": r.version}}})
	}
	dir, err := os.MkdirTemp("", "orrery-image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, index); err != nil {
		return nil, err
	}
	return []string{name}, tarOf(dir, filepath.Join(r.out, name), r.when)
}

func (r *release) image(arch, binary string) (v1.Image, error) {
	base, err := r.layer(baseFiles)
	if err != nil {
		return nil, err
	}
	program, err := r.layer(func(w *layerWriter) error { return w.copy("orrery", binary, 0o755) })
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		mutate.Addendum{Layer: base, History: v1.History{Created: v1.Time{Time: r.when}, CreatedBy: "base files"}},
		mutate.Addendum{Layer: program, History: v1.History{Created: v1.Time{Time: r.when}, CreatedBy: "orrery"}})
	if err != nil {
		return nil, err
	}
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", arch, v1.Time{Time: r.when}
	ports := map[string]struct{}{}
	for _, p := range []string{"8081", "8901", "8902", "10255", "27017", "1234", "8080"} {
		ports[p+"/tcp"] = struct{}{}
	}
	file.Config = v1.Config{
		User:         imageUser + ":" + imageUser,
		Entrypoint:   []string{"/orrery", "emulator"},
		Env:          []string{"PATH=/", "HOME=/data", "ORRERY_LISTEN=0.0.0.0", "ORRERY_OWN_NETWORKS=true"},
		WorkingDir:   "/data",
		Volumes:      map[string]struct{}{"/data": {}},
		ExposedPorts: ports,
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/orrery", "health"}, Interval: 5 * time.Second,
			Timeout: 5 * time.Second, StartPeriod: 5 * time.Second, Retries: 3},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "orrery",
			"org.opencontainers.image.version":     r.version,
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.description": "Azure Cosmos DB's four APIs over one store, in one binary.",
		},
	}
	return mutate.ConfigFile(img, file)
}

// baseFiles are the files of the image besides the binary.
func baseFiles(w *layerWriter) error {
	for _, d := range []struct {
		name string
		mode int64
		own  bool
	}{{"etc/", 0o755, false}, {"etc/ssl/", 0o755, false}, {"etc/ssl/certs/", 0o755, false}, {"data/", 0o700, true},
		{"tmp/", 0o1777, false}, {"docker-entrypoint-initdb.d/", 0o755, false}} {
		if err := w.dir(d.name, d.mode, d.own); err != nil {
			return err
		}
	}
	for _, f := range []struct{ name, text string }{
		{"etc/passwd", "root:x:0:0:root:/:/sbin/nologin\norrery:x:" + imageUser + ":" + imageUser +
			":orrery:/data:/sbin/nologin\n"},
		{"etc/group", "root:x:0:\norrery:x:" + imageUser + ":\n"},
		{"etc/nsswitch.conf", "hosts: files dns\n"},
		{"etc/ssl/certs/ca-certificates.crt", roots()},
	} {
		if err := w.file(f.name, []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// roots returns the root certificates of Mozilla's list, in PEM.
func roots() string {
	var b strings.Builder
	for root := range bundle.Roots() {
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
	}
	return b.String()
}

// layerWriter writes the files of a layer, all of one time.
type layerWriter struct {
	*tar.Writer
	when time.Time
}

func (w *layerWriter) dir(name string, mode int64, own bool) error {
	h := &tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, ModTime: w.when, Format: tar.FormatPAX}
	if own {
		h.Uid, h.Gid = 10001, 10001
	}
	return w.WriteHeader(h)
}

func (w *layerWriter) file(name string, data []byte, mode int64) error {
	err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: mode, ModTime: w.when,
		Format: tar.FormatPAX})
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

func (w *layerWriter) copy(name, from string, mode int64) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return w.file(name, data, mode)
}

// link adds a symbolic link.
func (w *layerWriter) link(name, to string) error {
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777, ModTime: w.when,
		Format: tar.FormatPAX})
}

// layer makes a layer of files.
func (r *release) layer(files func(*layerWriter) error) (v1.Layer, error) {
	var b bytes.Buffer
	w := &layerWriter{tar.NewWriter(&b), r.when}
	if err := files(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressionLevel(gzip.BestCompression),
		tarball.WithMediaType(types.OCILayer))
}

// tarOf writes the files of a directory to a tar, in the order of their names.
func tarOf(dir, name string, when time.Time) error {
	var files []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(files)
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer out.Close()
	w := &layerWriter{tar.NewWriter(out), when}
	for _, f := range files {
		rel, err := filepath.Rel(dir, f)
		if err != nil {
			return err
		}
		if err := w.copy(filepath.ToSlash(rel), f, 0o644); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Sync()
}
