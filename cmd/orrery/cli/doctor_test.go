package cli

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// The doctor finds a running server well, and its archive has no key.
func TestDoctor(t *testing.T) {
	dir := t.TempDir()
	serverFor(t, func(c *server.Config) { c.Memory, c.Data, c.Key = false, dir, canary })
	t.Setenv("ORRERY_KEY", canary)
	file := filepath.Join(dir, "..", "report.tar.gz")
	out, errOut := ran(t, 0, "doctor", "--data", dir, "--archive", file)
	for _, want := range []string{"ok    server", "is ready", "ok    certificate", "set: ORRERY_KEY", "ok    clock"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := out + errOut
	names := ""
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
		names += h.Name + " "
	}
	if names != "orrery-doctor/findings.json orrery-doctor/status orrery-doctor/metrics " {
		t.Errorf("the archive has %s", names)
	}
	if strings.Contains(all, canary[:20]) {
		t.Error("the key is in the archive")
	}
	key := `{"Key":"` + canary + `"}`
	if got := string(hideKey([]byte(key), &server.Connections{Key: canary})); got != `{"Key":"<key>"}` {
		t.Errorf("hidden: %s", got)
	}
}

// cert show and cert trust give the certificate of a data directory or of a server, and never its private key.
func TestCert(t *testing.T) {
	dir := t.TempDir()
	s := serverFor(t, func(c *server.Config) { c.Memory, c.Data = false, dir })
	for _, from := range [][]string{{"--data", dir}, {"--endpoint", "http://" + s.Addr(server.NoSQL)},
		{"--endpoint", "https://" + s.Addr(server.NoSQL)}} {
		out, _ := ran(t, 0, append([]string{"cert", "show"}, from...)...)
		if !strings.Contains(out, "localhost") || !strings.Contains(out, "SHA-256") {
			t.Errorf("show: %s", out)
		}
		file := filepath.Join(t.TempDir(), "orrery.crt")
		out, _ = ran(t, 0, append([]string{"cert", "trust", "--to", file}, from...)...)
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "BEGIN CERTIFICATE") || strings.Contains(string(text), "KEY") {
			t.Errorf("trust: %s %v", text, err)
		}
		docs, err := os.ReadFile("../../../docs/operations.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runtimes {
			if !strings.Contains(out, strings.ReplaceAll(r[1], "FILE", file)) {
				t.Errorf("trust says nothing of %s", r[0])
			}
			if !strings.Contains(string(docs), "| "+r[0]+" | `") {
				t.Errorf("docs/operations.md says nothing of %s", r[0])
			}
		}
	}
	if _, errOut := ran(t, 1, "cert", "show", "--data", t.TempDir()); !strings.Contains(errOut, "has no certificate") {
		t.Errorf("no certificate: %s", errOut)
	}
}

// A file sets flags that neither the command line nor a variable sets.
func TestConfigFile(t *testing.T) {
	dir := t.TempDir()
	// connect says which directory it has looked at.
	file := write(t, dir, "orrery.toml", "data = \""+dir+"/fromfile\"\nthrottle = true\ngremlin-source = [\"a=b/c\"]\n")
	for _, c := range []struct {
		args []string
		env  string
		says string
	}{
		{[]string{"--config", file}, "", "/fromfile"},
		{[]string{"--config", file, "--data", dir + "/flag"}, "", "/flag"},
		{[]string{"--config", file}, dir + "/variable", "/variable"},
	} {
		if c.env != "" {
			t.Setenv("ORRERY_DATA", c.env)
		}
		if _, errOut := ran(t, 1, append([]string{"connect"}, c.args...)...); !strings.Contains(errOut, dir+c.says) {
			t.Errorf("%v: %s", c.args, errOut)
		}
	}
	os.Unsetenv("ORRERY_DATA")
	secret := write(t, dir, "secret.toml", "key = \""+canary+"\"\n")
	if err := os.Chmod(secret, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		write(t, dir, "unknown.toml", "colour = \"red\"\n"):    "no command has a flag called colour",
		write(t, dir, "broken.toml", "key = "+canary+"\n"):     "line 1, column",
		write(t, dir, "table.toml", "[serve]\ndata = \"x\"\n"): "no command has a flag called serve",
		write(t, dir, "type.toml", "json = \"perhaps\"\n"):     "invalid syntax",
		secret:                           "chmod 600",
		filepath.Join(dir, "isn't here"): "no such file",
	} {
		_, errOut := ran(t, 2, "connect", "--config", name)
		if !strings.Contains(errOut, says) || strings.Contains(errOut, canary[:10]) {
			t.Errorf("%s: %s", name, errOut)
		}
	}
	if out, _ := ran(t, 0); !strings.Contains(out, "orrery demo") || strings.Count(out, "\n") > 20 {
		t.Errorf("without arguments: %s", out)
	}
}
