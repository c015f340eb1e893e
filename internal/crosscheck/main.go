// Command crosscheck finds code that doesn't compile on another system, tests included. It type-checks the packages of
// a module, and what they import, for each system in turn:
//
//	go run ./internal/crosscheck [-C DIR] linux/arm64 windows/amd64 ..
//
// Nothing is compiled, and of what is imported from elsewhere only the declarations are examined. So a system takes
// some seconds, where go vet has to compile all modules for it first. It needs no C compiler: cgo is off.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	dir := flag.String("C", ".", "`DIR` of the module.")
	flag.Parse()
	failed := false
	files := &files{set: token.NewFileSet(), parsed: map[string]*ast.File{}}
	for _, target := range flag.Args() {
		n, err := check(*dir, target, files)
		if err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %v\n", target, err)
			continue
		}
		fmt.Printf("%s: %d packages\n", target, n)
	}
	if failed {
		os.Exit(1)
	}
}

// listed is a package as go list describes it. The packages that a test compiles again have the name of the test in
// their path, "a [a.test]".
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string // of those imports whose package has another path
	Standard        bool
	DepOnly         bool // it isn't one of the module's own
	ForTest         string
	Error           *struct{ Err string }
}

// check type-checks the packages of a module for a system. The number is that of its own packages.
func check(dir, target string, files *files) (own int, err error) {
	goos, arch, ok := strings.Cut(target, "/")
	if !ok {
		return 0, errors.New("want OS/ARCH")
	}
	cmd := exec.Command("go", "list", "-e", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Standard,"+
		"DepOnly,ForTest,Error", "./...")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("go list: %w", err)
	}
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	var faults []error
	for d := json.NewDecoder(bytes.NewReader(out)); ; { // what is imported comes before what imports it
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return 0, err
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // its main is made by go test
			continue
		}
		mine := !p.DepOnly || p.ForTest != "" && !p.Standard
		if mine && p.Error != nil {
			faults = append(faults, fmt.Errorf("%s: %s", p.ImportPath, p.Error.Err))
			continue
		}
		pkg, errs := examine(&p, arch, mine, checked, files)
		checked[p.ImportPath] = pkg
		if mine {
			own++
			faults = append(faults, errs...)
		}
	}
	return own, errors.Join(faults...)
}

// examine type-checks a package.
func examine(p *listed, arch string, bodies bool, checked map[string]*types.Package, files *files) (*types.Package,
	[]error) {
	var errs []error
	var trees []*ast.File
	for _, name := range p.GoFiles {
		tree, err := files.parse(filepath.Join(p.Dir, name), !bodies)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		trees = append(trees, tree)
	}
	c := types.Config{IgnoreFuncBodies: !bodies, FakeImportC: true, Sizes: types.SizesFor("gc", arch),
		Error: func(err error) { errs = append(errs, err) },
		Importer: importer(func(path string) (*types.Package, error) {
			if to, ok := p.ImportMap[path]; ok {
				path = to
			}
			if pkg := checked[path]; pkg != nil {
				return pkg, nil
			}
			return nil, fmt.Errorf("%s isn't there", path)
		})}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	pkg, _ := c.Check(path, files.set, trees, nil)
	return pkg, errs
}

type importer func(path string) (*types.Package, error)

// Import implements types.Importer.
func (f importer) Import(path string) (*types.Package, error) { return f(path) }

// files keeps the files that the systems share.
type files struct {
	set    *token.FileSet
	parsed map[string]*ast.File // those without bodies have another name
}

// parse reads a file. Without bodies those of its functions are thrown away.
func (f *files) parse(name string, bare bool) (*ast.File, error) {
	key := name
	if bare {
		key += " bare"
	}
	if tree := f.parsed[key]; tree != nil {
		return tree, nil
	}
	tree, err := parser.ParseFile(f.set, name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if bare {
		for _, d := range tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				fn.Body = &ast.BlockStmt{Lbrace: fn.Body.Lbrace, Rbrace: fn.Body.Rbrace}
			}
		}
	}
	f.parsed[key] = tree
	return tree, nil
}
