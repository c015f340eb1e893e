package engine

import (
	"embed"
	"sync"

	"github.com/dop251/goja"
)

//go:embed model/*.js
var modelFiles embed.FS

// model returns the compiled files of the object model by name.
var model = sync.OnceValue(func() map[string]*goja.Program {
	compiled := map[string]*goja.Program{}
	for _, name := range []string{"globals", "errors", "context", "collection", "query", "console", "spatial"} {
		b, err := modelFiles.ReadFile("model/" + name + ".js")
		if err != nil {
			panic(err)
		}
		compiled[name] = goja.MustCompile(modelPrefix+name+".js", string(b), true)
	}
	return compiled
})
