package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// The second image is the first one with a command shell, the usual commands for files, and mongosh: test containers
// made for MongoDB execute "mongosh --eval ..", or "sh -c ..", inside of the container. The MongoDB API listens on
// 27017. The shell is a program in Go (folder sh, a module of its own).

// shellImageName is the file with the second image.
const shellImageName = "orrery-shell-image.oci.tar"

// shellLinks are the names of the shell and of its commands, and those of the server's own shell for MongoDB.
var shellLinks = map[string]string{
	"bin/bash": "sh", "usr/bin/env": "/bin/sh", "usr/bin/bash": "/bin/sh", "usr/bin/sh": "/bin/sh",
	"usr/bin/mongosh": "/orrery", "usr/bin/mongo": "/orrery",
}

// shellCommands are commands of the shell that are programs too.
var shellCommands = []string{"base64", "cat", "chmod", "cp", "env", "find", "gunzip", "gzip", "ls", "mkdir", "mktemp",
	"mv", "rm", "sleep", "tar", "touch", "whoami", "xargs"}

func makeShellImage(r *release) ([]string, error) {
	notices, err := r.shellNotices()
	if err != nil {
		return nil, err
	}
	return r.images(shellImageName, func(arch, binary string) (v1.Image, error) {
		shell, err := r.buildShell(arch)
		if err != nil {
			return nil, err
		}
		img, err := r.image(arch, binary)
		if err != nil {
			return nil, err
		}
		layer, err := r.layer(func(w *layerWriter) error { return shellFiles(w, shell, notices) })
		if err != nil {
			return nil, err
		}
		img, err = mutate.Append(img, mutate.Addendum{Layer: layer,
			History: v1.History{Created: v1.Time{Time: r.when}, CreatedBy: "command shell and mongosh"}})
		if err != nil {
			return nil, err
		}
		file, err := img.ConfigFile()
		if err != nil {
			return nil, err
		}
		file = file.DeepCopy()
		path := func(e string) bool { return strings.HasPrefix(e, "PATH=") }
		file.Config.Env = slices.DeleteFunc(file.Config.Env, path)
		file.Config.Env = append(file.Config.Env, "PATH=/usr/bin:/bin:/", "ORRERY_MONGO_PORT=27017")
		file.Config.Labels["org.opencontainers.image.title"] = "orrery-shell"
		return mutate.ConfigFile(img, file)
	})
}

// shellFiles writes the files of the shell.
func shellFiles(w *layerWriter, shell string, notices []byte) error {
	for _, d := range []string{"bin/", "usr/", "usr/bin/", "usr/share/", "usr/share/doc/", "usr/share/doc/sh/"} {
		if err := w.dir(d, 0o755, false); err != nil {
			return err
		}
	}
	if err := w.copy("bin/sh", shell, 0o755); err != nil {
		return err
	}
	links := map[string]string{}
	for name, to := range shellLinks {
		links[name] = to
	}
	for _, c := range shellCommands {
		links["bin/"+c] = "sh"
	}
	var names []string
	for name := range links {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.link(name, links[name]); err != nil {
			return err
		}
	}
	return w.file("usr/share/doc/sh/THIRD_PARTY_NOTICES", notices, 0o644)
}

// buildShell builds the shell for a platform.
func (r *release) buildShell(arch string) (string, error) {
	file, err := filepath.Abs(filepath.Join(r.out, "work", "linux_"+arch, "sh"))
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", file, ".")
	cmd.Dir = r.path("sh")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
	cmd.Stderr = os.Stderr
	return file, cmd.Run()
}

// shellNotices returns the licences of the modules in the shell.
func (r *release) shellNotices() ([]byte, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=Module", ".")
	cmd.Dir = r.path("sh")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var p struct {
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		if m := p.Module; m != nil && !m.Main {
			dirs[m.Path+" "+m.Version] = m.Dir
		}
	}
	var names []string
	for name := range dirs {
		names = append(names, name)
	}
	slices.Sort(names)
	var out bytes.Buffer
	for _, name := range names {
		files, err := filepath.Glob(filepath.Join(dirs[name], "LICENSE*"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("%s has no licence: %w", name, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "%s\n\n%s\n%s\n", name, text, strings.Repeat("-", 80))
		}
	}
	return out.Bytes(), nil
}
