package mongoshell

import (
	"context"
	"fmt"
	"strings"

	"github.com/orrerydb/orrery/core/json"
)

// lineCommands are what a person may enter beside JavaScript: a word, and so many further words.
var lineCommands = []struct {
	word string
	args int
	run  func(s *Shell, args []string) error
}{{"use", 1, (*Shell).use}, {"show", 1, (*Shell).show}, {"it", 0, (*Shell).it}}

func (s *Shell) use(args []string) error {
	return s.call("use(" + string(json.AppendString(nil, args[0])) + ")")
}

// Use makes db another database.
func (s *Shell) Use(db string) error {
	return s.guard(context.Background(), "", func() error {
		_, err := s.vm.RunString("use(" + string(json.AppendString(nil, db)) + ")")
		return err
	})
}

// SetJSON chooses the form of results.
func (s *Shell) SetJSON(on bool) { s.o.JSON = on }

// call evaluates an expression and writes its value.
func (s *Shell) call(text string) error {
	v, err := s.vm.RunString(text)
	if err != nil {
		return err
	}
	return s.writeValue(v)
}

// showing are the expressions of what "show" shows.
var showing = map[string]string{
	"collections": "db.getCollectionInfos({}, true).map((c) => c.name).sort().join('\\n')",
	"users":       "db.getUsers().users",
	"roles":       "db.getRoles({ showBuiltinRoles: true })",
}

func (s *Shell) show(args []string) error {
	name := args[0]
	switch name {
	case "databases":
		name = "dbs"
	case "tables":
		name = "collections"
	}
	if name == "dbs" {
		return s.showDatabases()
	}
	text, ok := showing[name]
	if !ok {
		return &ScriptError{Text: fmt.Sprintf("MongoshInvalidInputError: %q can't be shown: want dbs, collections, "+
			"users or roles", args[0])}
	}
	return s.call(text)
}

// showDatabases writes names and sizes of the databases.
func (s *Shell) showDatabases() error {
	v, err := s.vm.RunString(
		"db.getMongo().getDBs().databases.map((d) => [d.name, Number(d.sizeOnDisk?.big ?? d.sizeOnDisk)])")
	if err != nil {
		return err
	}
	list := v.ToObject(s.vm)
	var names []string
	var sizes []float64
	wide := 0
	for i := range int(list.Get("length").ToInteger()) {
		one := list.Get(fmt.Sprint(i)).ToObject(s.vm)
		names, sizes = append(names, one.Get("0").String()), append(sizes, one.Get("1").ToFloat())
		wide = max(wide, len(names[i]))
	}
	if s.o.JSON {
		return s.writeValue(v)
	}
	var b strings.Builder
	for i, name := range names {
		size, unit := sizes[i]/1024, "KiB"
		for _, next := range []string{"MiB", "GiB", "TiB"} {
			if size >= 1024 {
				size, unit = size/1024, next
			}
		}
		fmt.Fprintf(&b, "%-*s  %7.2f %s\n", wide, name, size, unit)
	}
	_, err = fmt.Fprint(s.o.Out, b.String())
	return err
}

// it writes the next documents of the cursor that was shown last.
func (s *Shell) it([]string) error {
	if s.last == nil {
		_, err := fmt.Fprintln(s.o.Out, "no cursor")
		return err
	}
	return s.writeCursor(s.last)
}

// Members returns the names of the methods of an object, such as db or db.people, for completion.
func (s *Shell) Members(object string) (names []string) {
	_ = s.vm.Try(func() {
		v, err := s.vm.RunString(object)
		if err != nil {
			return
		}
		for o := v.ToObject(s.vm); o != nil; o = o.Prototype() {
			for _, name := range o.GetOwnPropertyNames() {
				if !strings.HasSuffix(name, "_") && !strings.HasPrefix(name, "_") && name != "constructor" {
					names = append(names, name)
				}
			}
			if p := o.Prototype(); p == nil || p.Prototype() == nil {
				return // Object's own
			}
		}
	})
	return names
}
