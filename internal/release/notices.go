package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// noticesOf joins the licences and notices of modules. A module without any is an error: then it may not be passed on.
func noticesOf(modules []*debug.Module, dir func(*debug.Module) (string, error)) ([]byte, error) {
	var b bytes.Buffer
	for _, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		d, err := dir(m)
		if err != nil {
			return nil, err
		}
		names, err := legal(d)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("%s has no licence in %s", m.Path, d)
		}
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(d, name))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "=== %s %s: %s\n\n%s\n\n", m.Path, m.Version, name, bytes.TrimSpace(text))
		}
	}
	return b.Bytes(), nil
}

// embedded are the folders of licences of data that the binaries contain, by the data's origin.
var embedded = [][2]string{{"ICU 57.1, tables of collation", "core/collate/gen"}}

// dataNotices joins the licences of data that isn't from a module. root is the repository.
func dataNotices(root string) ([]byte, error) {
	var b bytes.Buffer
	for _, d := range embedded {
		text, err := os.ReadFile(filepath.Join(root, d[1], "LICENSE"))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "=== %s: LICENSE\n\n%s\n\n", d[0], bytes.TrimSpace(text))
	}
	return b.Bytes(), nil
}

// legal returns the names of the files of a directory that are licences or notices, in order.
func legal(dir string) (names []string, err error) {
	all, err := os.ReadDir(dir)
	for _, e := range all {
		if !e.Type().IsRegular() {
			continue
		}
		stem, ext, _ := strings.Cut(strings.ToUpper(e.Name()), ".")
		if slices.Contains([]string{"", "MD", "TXT"}, ext) &&
			slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, func(s string) bool {
				return strings.HasPrefix(stem, s)
			}) {
			names = append(names, e.Name())
		}
	}
	return names, err
}
