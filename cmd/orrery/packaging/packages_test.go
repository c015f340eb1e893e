//go:build unix

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"gopkg.in/yaml.v3"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// These tests install each package as its users do, and run what is in it. They need the tools of the ecosystem (dpkg,
// npm, pip, mvn) and, for npm, pip and mvn, their registries: `make test-packages` runs them. ORRERY_BIN has the
// binary.

// packed makes the packages of a kind from the binary under test.
func packed(t *testing.T, kind string) (dir string, names []string) {
	t.Helper()
	bin := os.Getenv("ORRERY_BIN")
	if bin == "" {
		t.Fatal("ORRERY_BIN names no binary: run make test-packages")
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	sums := [2][]byte{}
	for i := range sums { // the same input gives the same bytes
		dir = t.TempDir()
		r, err := newRelease("../../..", dir, "1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.build("linux/amd64", ""); err != nil {
			t.Fatal(err)
		}
		if names, err = kinds[kind](r); err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			b, err := os.ReadFile(filepath.Join(dir, n))
			if err != nil {
				t.Fatal(err)
			}
			sums[i] = append(sums[i], b...)
		}
	}
	if !bytes.Equal(sums[0], sums[1]) {
		t.Errorf("%s isn't reproducible", kind)
	}
	return dir, names
}

// sh runs a command in a directory and returns its output.
func sh(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return string(text)
}

// mostImage is the largest compressed size of the image of one platform, in bytes.
const mostImage = 20 << 20

// shellSize is the size that the command shell may add to it.
const shellSize = 3 << 20

// unpacked unpacks the image of a file, checks its size, and returns its configuration and its root directory.
func unpacked(t *testing.T, dir, name string, most int64) (v1.Config, string) {
	t.Helper()
	oci, root := filepath.Join(dir, "oci"), filepath.Join(dir, "root")
	for _, d := range []string{oci, root} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, dir, "tar", "-xf", name, "-C", oci)
	index, err := layout.ImageIndexFromPath(oci)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatal(manifest, err)
	}
	img, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			t.Fatal(err)
		}
		total += n
		unpack(t, l, root)
	}
	t.Logf("the image has %d bytes", total)
	if total > most {
		t.Errorf("the image has %d bytes, want at most %d", total, most)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		t.Fatal("the program of the image can't be run as its user: only root can change the root directory")
	}
	return config.Config, root
}

// inside returns a command that runs in the image, as its user.
func inside(c v1.Config, root string, args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.WorkingDir
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 10001, Gid: 10001}}
	return cmd
}

// The second image answers what test containers execute: a command shell, and mongosh in it.
func TestShellImage(t *testing.T) {
	dir, names := packed(t, "shell-image")
	c, root := unpacked(t, dir, names[0], mostImage+shellSize)
	var out bytes.Buffer
	serve := inside(c, root, append(c.Entrypoint, "--replSet", "docker-rs", "--port", "18083", "--explorer-port",
		"11235", "--health-port", "18084", "--gremlin-addr", "off", "--table-addr", "off", "--mongo-port", "37017")...)
	serve.Stdout, serve.Stderr = &out, &out
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = serve.Process.Signal(syscall.SIGTERM); _ = serve.Wait() }()
	began := time.Now()
	ping := []string{"/usr/bin/mongosh", "--port", "37017", "--quiet", "--eval", "db.adminCommand('ping')"}
	for inside(c, root, ping...).Run() != nil {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("mongosh doesn't reach the server\n%s", out.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"/bin/sh", "-c", `mongosh mongo --port 37017 --eval "rs.initiate().ok;" || mongo --eval "1"`},
			"1\n"},
		{[]string{"/bin/sh", "-c", `for i in 1 2; do mongosh --port 37017 ` +
			`--eval "db.c.insertOne({_id: $i}).insertedId"; done | cat; sleep 0.01 && echo "done $?"`},
			"1\n2\ndone 0\n"},
		{[]string{"/bin/bash", "-c", `[[ -d /data ]] && x=${HOME%a} && echo "$x"`}, "/dat\n"},
		{[]string{"/usr/bin/env", "A=b c", "sh", "-c", "echo $A"}, "b c\n"},
		{[]string{"/bin/ls", "/usr/share/doc/sh"}, "THIRD_PARTY_NOTICES\n"},
		{[]string{"/bin/sh", "-c", `mkdir -p /tmp/a && echo hi > /tmp/a/f && cat /tmp/a/f && rm -r /tmp/a; exit 0`},
			"hi\n"},
		{[]string{"/bin/sh", "-c", `mongosh --port 37017 --eval "quit(7)"; echo $?`}, "7\n"},
	} {
		cmd := inside(c, root, tc.args...)
		cmd.Path = filepath.Clean(tc.args[0])
		text, err := cmd.CombinedOutput()
		if err != nil || string(text) != tc.want {
			t.Errorf("%q: %q, %v", tc.args, text, err)
		}
	}
	if !strings.Contains(strings.Join(c.Env, " "), "ORRERY_MONGO_PORT=27017") {
		t.Errorf("%q", c.Env)
	}
}

// The image is small, has no shell, and its program runs as its user with its entry point, variables and check.
func TestImage(t *testing.T) {
	dir, names := packed(t, "image")
	c, root := unpacked(t, dir, names[0], mostImage)
	if c.User != "10001:10001" || c.Healthcheck == nil {
		t.Errorf("user %s, check %v", c.User, c.Healthcheck)
	}
	if n := strings.Count(roots(), "BEGIN CERTIFICATE"); n < 50 {
		t.Errorf("%d root certificates", n)
	}
	var out bytes.Buffer
	serve := inside(c, root, append(c.Entrypoint, "--data-path", "/data", "--port", "18081", "--explorer-port", "11234",
		"--health-port", "18080", "--gremlin-addr", "off", "--table-addr", "off", "--mongo-addr", "off")...)
	serve.Stdout, serve.Stderr = &out, &out
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = serve.Process.Signal(syscall.SIGTERM); _ = serve.Wait() }()
	check := append(c.Healthcheck.Test[1:], "--admin", "http://127.0.0.1:18080")
	began := time.Now()
	for {
		text, err := inside(c, root, check...).CombinedOutput()
		if err == nil {
			break
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("the check says %s\n%s", text, out.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
	for url, want := range map[string]int{"http://127.0.0.1:18081/": 401, "http://127.0.0.1:18080/alive": 200,
		"http://127.0.0.1:18080/status": 200, "http://127.0.0.1:11234/ready": 200} {
		res, err := http.Get(url)
		if err != nil {
			t.Error(err)
			continue
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %s, want %d", url, res.Status, want)
		}
	}
	if !strings.Contains(out.String(), "WARNING: the key is the emulator's well-known one") {
		t.Errorf("no warning about the key:\n%s", out.String())
	}
}

// unpack writes the files of a layer, with their owners.
func unpack(t *testing.T, l v1.Layer, root string) {
	t.Helper()
	r, err := l.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, h.FileInfo().Mode().Perm())
		} else if h.Typeflag == tar.TypeSymlink {
			if err := os.Symlink(h.Linkname, name); err != nil {
				t.Fatal(err)
			}
			continue
		} else {
			var b []byte
			if b, err = io.ReadAll(tr); err == nil {
				err = os.WriteFile(name, b, h.FileInfo().Mode().Perm())
			}
		}
		if err == nil {
			err = errors.Join(os.Chmod(name, h.FileInfo().Mode()), os.Chown(name, h.Uid, h.Gid))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// dpkg installs and removes the package below another root. The key is made once, and only root can read it.
func TestDeb(t *testing.T) {
	dir, names := packed(t, "deb")
	root := filepath.Join(dir, "root")
	for _, d := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) string {
		return sh(t, dir, append([]string{"dpkg", "--root=" + root, "--force-script-chrootless"}, args...)...)
	}
	dpkg("-i", names[0])
	if got := sh(t, dir, filepath.Join(root, "usr/bin/orrery"), "version"); !strings.HasPrefix(got, "orrery ") {
		t.Errorf("orrery version: %s", got)
	}
	key := filepath.Join(root, "etc/orrery/key")
	first, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(key); info.Mode().Perm() != 0o600 || len(first) != 88 {
		t.Errorf("the key has %d characters and the mode %v", len(first), info.Mode())
	}
	dpkg("-i", names[0])
	if again, _ := os.ReadFile(key); !bytes.Equal(first, again) {
		t.Error("the second installation has made another key")
	}
	unit := filepath.Join(root, "usr/lib/systemd/system/orrery.service")
	if _, err := exec.LookPath("systemd-analyze"); err == nil {
		sh(t, dir, "sed", "-i", "s|/usr/bin/orrery|"+filepath.Join(root, "usr/bin/orrery")+"|", unit)
		if text := sh(t, dir, "systemd-analyze", "verify", "--man=no", unit); strings.Contains(text, "orrery.service") {
			t.Errorf("systemd-analyze verify: %s", text)
		}
	}
	dpkg("-r", "orrery")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/orrery")); err == nil {
		t.Error("the binary is still there")
	}
}

// The rpm has its files. No tool here reads one, so only its lead and its presence are checked.
func TestRPM(t *testing.T) {
	dir, names := packed(t, "rpm")
	b, err := os.ReadFile(filepath.Join(dir, names[0]))
	if err != nil || len(b) < 1<<20 || !bytes.HasPrefix(b, []byte{0xED, 0xAB, 0xEE, 0xDB}) {
		t.Errorf("%s: %d bytes, %v", names[0], len(b), err)
	}
}

// npx runs the binary of the machine's package, and a program in Node gets a server.
func TestNPM(t *testing.T) {
	dir, names := packed(t, "npm")
	manifest := []byte(`{"name":"test","private":true}`)
	if err := os.WriteFile(filepath.Join(dir, "package.json"), manifest, 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"npm", "install", "--no-audit", "--no-fund", "--offline"}
	for _, n := range names {
		args = append(args, "./"+n)
	}
	sh(t, dir, args...)
	if got := sh(t, dir, "npx", "--offline", "orrery", "version"); !strings.Contains(got, "orrery ") {
		t.Errorf("npx orrery version: %s", got)
	}
	script := `const orrery = require('@orrerydb/orrery');
		(async () => {
			const s = await orrery.start();
			const a = await s.control('POST', 'accounts', {name: 'a'});
			await s.control('POST', 'reset', {account: 'a'});
			console.log(s.nosql.endpoint !== a.nosql.endpoint && s.mongo.connectionString.startsWith('mongodb://'));
			await s.stop();
		})()`
	if got := sh(t, dir, "node", "-e", script); strings.TrimSpace(got) != "true" {
		t.Errorf("node: %s", got)
	}
}

// pip installs the wheel, orrery is on the path, and pytest has the fixtures.
func TestWheel(t *testing.T) {
	dir, names := packed(t, "wheel")
	sh(t, dir, "python3", "-m", "venv", "env")
	bin := filepath.Join(dir, "env", "bin")
	sh(t, dir, filepath.Join(bin, "pip"), "install", "--quiet", "--disable-pip-version-check", names[0], "pytest")
	if got := sh(t, dir, filepath.Join(bin, "orrery"), "version"); !strings.HasPrefix(got, "orrery ") {
		t.Errorf("orrery version: %s", got)
	}
	sh(t, dir, "cp", mustAbs(t, "testdata/test_fixtures.py"), ".")
	if got := sh(t, dir, filepath.Join(bin, "pytest"), "-q", "test_fixtures.py"); !strings.Contains(got, "2 passed") {
		t.Errorf("pytest: %s", got)
	}
}

// Maven builds the extension and runs its own tests with it.
func TestJUnit(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "cp", "-r", mustAbs(t, "java"), "java")
	t.Setenv("ORRERY_BINARY", os.Getenv("ORRERY_BIN"))
	text := sh(t, filepath.Join(dir, "java"), "mvn", "-q", "-B", "package")
	if _, err := os.Stat(filepath.Join(dir, "java", "target", "orrery-junit5-0.0.0.jar")); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// rendered renders a template of the chart with the default values, with the functions that Helm has, and reads the
// YAML.
func rendered(t *testing.T, name, text string) {
	t.Helper()
	helpers, err := os.ReadFile("helm/orrery/templates/_helpers.tpl")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("helm/orrery/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	tmpl := template.New(name)
	tmpl.Funcs(sprig.TxtFuncMap()).Funcs(template.FuncMap{
		"include": func(part string, data any) (string, error) {
			var b strings.Builder
			err := tmpl.ExecuteTemplate(&b, part, data)
			return b.String(), err
		},
		"toYaml": func(v any) (string, error) {
			b, err := yaml.Marshal(v)
			return strings.TrimSpace(string(b)), err
		},
		"lookup": func(...string) map[string]any { return nil },
	})
	template.Must(tmpl.Parse(string(helpers)))
	template.Must(tmpl.Parse(text))
	var out strings.Builder
	data := map[string]any{"Values": values, "Release": map[string]any{"Name": "r", "Namespace": "n"}}
	if err := tmpl.Execute(&out, data); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	var v map[string]any
	if err := yaml.Unmarshal([]byte(out.String()), &v); err != nil || v["kind"] == nil {
		t.Errorf("%s: %v\n%s", name, err, out.String())
	}
}

func mustAbs(t *testing.T, name string) string {
	t.Helper()
	abs, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// Nothing here runs Homebrew, Helm or compose. The formula has every placeholder, the chart's and compose's YAML can be
// read, and the image that they name gets only flags that it has.
func TestWhatCannotBeInstalledHere(t *testing.T) {
	dir, names := packed(t, "helm")
	f, err := os.Open(filepath.Join(dir, names[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for tr := tar.NewReader(z); ; found++ {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(h.Name, ".yaml") && !strings.Contains(h.Name, "templates") {
			var v map[string]any
			if err := yaml.Unmarshal(b, &v); err != nil {
				t.Errorf("%s: %v", h.Name, err)
			}
		}
		if strings.HasSuffix(h.Name, ".yaml") && strings.Contains(h.Name, "templates") {
			rendered(t, h.Name, string(b))
		}
	}
	if found != 7 {
		t.Errorf("the chart has %d files", found)
	}
	b, err := os.ReadFile("container/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Command     []string
			Healthcheck struct{ Test []string }
		}
	}
	if err := yaml.Unmarshal(b, &compose); err != nil {
		t.Fatal(err)
	}
	help := sh(t, ".", os.Getenv("ORRERY_BIN"), "emulator", "--help")
	for _, arg := range compose.Services["orrery"].Command {
		if strings.HasPrefix(arg, "--") && !strings.Contains(help, arg+" ") {
			t.Errorf("compose.yaml has %s, which orrery emulator doesn't", arg)
		}
	}
}
