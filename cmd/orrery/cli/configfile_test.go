package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every flag of every command can be set by the command line, by its variable, and by a file in TOML and in YAML, and
// has the same value then.
func TestEveryFlagByEachWay(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	tried := 0
	for _, command := range runnable((&commands{}).root(&streams{io.Discard, io.Discard})) {
		command.InheritedFlags() // adds them to Flags
		command.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "config" || f.Name == "help" { // a file names no other file
				return
			}
			tried++
			called := strings.Fields(command.CommandPath())[1:]
			name := command.CommandPath() + " --" + f.Name
			values := samples(t, dir, f)
			if len(values) == 0 {
				t.Errorf("%s: no sample for a flag of the type %s", name, f.Value.Type())
				return
			}
			var line []string
			for _, v := range values {
				line = append(line, "--"+f.Name+"="+v)
			}
			list := strings.HasPrefix(f.Value.Type(), "string") && f.Value.Type() != "string" || len(values) > 1
			want, err := setBy(called, f.Name, line)
			if err != nil || want == f.DefValue {
				t.Errorf("%s: %s is %q by the command line: %v", name, values, want, err)
			}
			glue := "\n"
			if f.Value.Type() == "stringSlice" {
				glue = ","
			}
			variable := "ORRERY_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
			t.Setenv(variable, strings.Join(values, glue))
			if got, err := setBy(called, f.Name, nil); got != want || err != nil {
				t.Errorf("%s: %s is %q by the variable, want %q: %v", name, values, got, want, err)
			}
			os.Unsetenv(variable)
			for _, file := range []string{"all.toml", "all.yaml"} {
				if got, err := setBy(called, f.Name, []string{"--config",
					write(t, dir, file, inFile(file, f, values, list))}); got != want || err != nil {
					t.Errorf("%s: %s is %q by %s, want %q: %v", name, values, got, file, want, err)
				}
			}
		})
	}
	if tried < 250 {
		t.Errorf("only %d flags were tried", tried)
	}
}

// runnable returns the commands that run, those below others too.
func runnable(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		if all = append(all, runnable(sub)...); sub.Runnable() {
			all = append(all, sub)
		}
	}
	return all
}

// setBy returns the value of a flag of a command that is called with arguments, without running it.
func setBy(command []string, flag string, args []string) (got string, err error) {
	root := (&commands{}).root(&streams{io.Discard, io.Discard})
	enough := errors.New("enough")
	set := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := set(cmd, args); err != nil {
			return err
		}
		f := cmd.Flags().Lookup(flag)
		if got = f.Value.String(); f.Value.Type() == repeatable {
			got = fmt.Sprint(f.Changed)
		}
		return enough
	}
	for _, c := range runnable(root) {
		c.Args = cobra.ArbitraryArgs
	}
	root.SetArgs(append(slices.Clone(command), args...))
	if err = root.Execute(); errors.Is(err, enough) {
		err = nil
	}
	return got, err
}

// samples returns values for a flag, others than its default.
func samples(t *testing.T, dir string, f *pflag.Flag) []string {
	t.Helper()
	if c, ok := f.Value.(*choice); ok {
		for _, v := range c.of {
			if v != f.DefValue {
				return []string{v}
			}
		}
	}
	if _, ok := f.Value.(address); ok {
		return []string{"http://a b: 'c' # \"d\" \\ 010"}
	}
	switch {
	case f.Name == "key":
		t.Setenv("ORRERY_TEST_KEY", canary)
		return []string{"env:ORRERY_TEST_KEY"}
	case f.Name == "param":
		return []string{"@a=1", "@b=[2,3]"}
	case f.Name == "log-level":
		return []string{"warn"}
	}
	switch f.Value.Type() {
	case "bool":
		return []string{fmt.Sprint(f.DefValue != "true")}
	case "int", "int64":
		return []string{"17"}
	case "float64":
		return []string{"1.25"}
	case "duration":
		return []string{"1m5s"}
	case "SIZE":
		return []string{"64MiB"}
	case "DIR":
		return []string{dir}
	case "string":
		return []string{"a b: 'c' # \"d\" \\ 010"}
	case "stringArray":
		return []string{"/a,b", "-c: d"}
	case "stringSlice":
		return []string{"a=b/c", "d"}
	}
	return nil
}

// inFile writes a flag as a file of settings has it.
func inFile(file string, f *pflag.Flag, values []string, list bool) string {
	is := ": "
	if strings.HasSuffix(file, ".toml") {
		is = " = "
	}
	var quoted []string
	for _, v := range values {
		switch f.Value.Type() {
		case "bool", "int", "int64", "float64":
			quoted = append(quoted, v)
		default:
			quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v)+`"`)
		}
	}
	text := strings.Join(quoted, ", ")
	if list {
		text = "[" + text + "]"
	}
	return f.Name + is + text + "\n"
}

// What a file of settings does besides: an empty list, comments, anchors, flags that only other commands have.
func TestConfigOfLists(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ file, text, flag, want string }{
		{"a.toml", "strict = []", "strict", "[]"},
		{"a.yaml", "strict: []", "strict", "[]"},
		{"b.toml", "strict = \"nosql,mongo\"", "strict", "[nosql,mongo]"},
		{"b.yml", "strict: nosql,mongo", "strict", "[nosql,mongo]"},
		{"c.yaml", "# nothing but a comment", "strict", "[nosql]"},
		{"d.yaml", "account: &a shop\ndata: *a", "data", "shop"},
		{"f.toml", "format = \"csv\"\nmax-time = \"90s\"", "max-time", "1m30s"},
		{"g.yaml", "min-free: 2GiB\npartition-gb: 0.5", "partition-gb", "0.5"},
		{"h.toml", "'account' = 'shop'\n\"data\" = 'a'", "data", "a"},
		{"i.toml", "\ufeffaccount = 'shop'\r\n", "account", "shop"},
		{"i.yaml", "\ufeffaccount: shop\r\n", "account", "shop"},
	} {
		got, err := setBy([]string{"serve"}, c.flag, []string{"--config", write(t, dir, c.file, c.text)})
		if got != c.want || err != nil {
			t.Errorf("%s: --%s is %s, want %s: %v", c.text, c.flag, got, c.want, err)
		}
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
	for _, c := range []struct{ file, text, says string }{
		{"unknown.toml", "# a\ncolour = \"red\"\n", "unknown.toml, line 2: no command has a flag called colour"},
		{"unknown.yaml", "# a\njson: true\ncolour: red\n", "unknown.yaml, line 3: no command has a flag called colour"},
		{"hidden.toml", "dbpath = \"x\"\n", "line 1: no command has a flag called dbpath"},
		{"broken.toml", "key = " + canary + "\n", "broken.toml, line 1, column"},
		{"broken.yaml", "json: true\nkey: [" + canary + "\n", "broken.yaml, line"},
		{"list.yaml", "- json\n", "list.yaml, line 1: want NAME: VALUE"},
		{"table.toml", "json = true\n[serve]\ndata = \"x\"\n", "line 2: no command has a flag called serve"},
		{"table.yaml", "data:\n  a: b\n", "line 1: data is a table, want a value"},
		{"deep.toml", "map = [[\"a\"]]\n", "line 1: map has a list within its list"},
		{"deep.yaml", "map: [[a]]\n", "line 1: map has a list within its list"},
		{"none.yaml", "json:\n", "line 1: json has no value"},
		{"twice.toml", "data = \"a\"\ndata = \"b\"\n", "twice.toml"},
		{"twice.yaml", "data: a\ndata: b\n", "twice.yaml, line 2: data is there twice"},
		{"many.toml", "data = [\"a\", \"b\"]\n", "line 1: data: want one value, not a list"},
		{"type.toml", "\njson = \"perhaps\"\n", "type.toml, line 2: json: "},
		{"type.yaml", "\njson: perhaps\n", "type.yaml, line 2: json: "},
	} {
		_, errOut := ran(t, 2, "connect", "--config", write(t, dir, c.file, c.text))
		if !strings.Contains(errOut, c.says) || strings.Contains(errOut, canary[:10]) {
			t.Errorf("%s: %s", c.file, errOut)
		}
	}
	for name, says := range map[string]string{secret: "chmod 600", filepath.Join(dir, "isn't here"): "no such file"} {
		if _, errOut := ran(t, 2, "connect", "--config", name); !strings.Contains(errOut, says) {
			t.Errorf("%s: %s", name, errOut)
		}
	}
	if out, _ := ran(t, 0); !strings.Contains(out, "orrery demo") || strings.Count(out, "\n") > 20 {
		t.Errorf("without arguments: %s", out)
	}
}
