package engine

import (
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"

	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// program is a compiled script. Running it yields its function.
type program struct {
	source
	compiled *goja.Program
	reads    wire.Reads // see propertiesRead
	lazy     bool       // a function's arguments are lazy objects
}

// keptBytes bounds the sources whose programs a worker keeps.
const keptBytes = 4 << 20

// programs keeps compiled scripts by name and source.
type programs struct {
	byText map[string]*program
	bytes  int
}

func newPrograms() *programs { return &programs{byText: map[string]*program{}} }

// get returns the compiled program of a script, which is in strict mode or not.
func (p *programs) get(name, text string, strict bool) (*program, *wire.Error) {
	key := name + "\x00" + text
	if !strict {
		key = "\x00" + key
	}
	if found := p.byText[key]; found != nil {
		return found, nil
	}
	made, err := compile(name, text, strict)
	if err != nil {
		return nil, err
	}
	if p.bytes += len(key); p.bytes > keptBytes {
		p.byText, p.bytes = map[string]*program{}, len(key)
	}
	p.byText[key] = made
	return made, nil
}

// compile compiles a script: a function declaration, which others may follow, or an expression that is a function.
func compile(name, text string, strict bool) (*program, *wire.Error) {
	s := source{file: name + ".js", lines: strings.Count(text, "\n") + 1}
	whole := text
	tree, err := parser.ParseFile(nil, s.file, text, 0, parser.WithDisableSourceMaps)
	switch {
	case err != nil: // a function without a name is no statement, only an expression
		whole, s.shift = "("+text+"\n)", 1
		if _, err2 := parser.ParseFile(nil, s.file, whole, 0, parser.WithDisableSourceMaps); err2 != nil {
			return nil, syntaxError(err)
		}
	default:
		if entry := firstFunction(tree); entry != "" {
			whole = text + "\n;" + entry
		}
	}
	tree, err = parser.ParseFile(nil, s.file, whole, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, syntaxError(err)
	}
	compiled, err := goja.CompileAST(tree, strict)
	if err != nil {
		return nil, syntaxError(err)
	}
	made := &program{source: s, compiled: compiled}
	if strict { // else there are more ways to an object than those that are looked for
		made.reads = propertiesRead(tree)
		made.lazy = anyWhole(made.reads) && takesLazy(tree)
	}
	return made, nil
}

// firstFunction returns the name of the first function that a script declares, "" if it declares none.
func firstFunction(tree *ast.Program) string {
	for _, statement := range tree.Body {
		if f, ok := statement.(*ast.FunctionDeclaration); ok {
			return f.Function.Name.Name.String()
		}
	}
	return ""
}

func syntaxError(err error) *wire.Error {
	text := strings.TrimPrefix(err.Error(), "SyntaxError: ")
	return wire.CompilationError("SyntaxError: " + text)
}
