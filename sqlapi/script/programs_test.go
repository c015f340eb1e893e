package script_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/sqlapi/script"
)

// TestPrograms runs the programs of testdata. The commands are:
//
//	docs         the documents of the following runs, a JSON array; "n" of them with field n if an argument n is given
//	procedure, pre-trigger, post-trigger
//	             run a program; lines "args: ", "request: " and "response: " before it have JSON; calls shows the
//	             operations of the host
//	function     call a function; each line after a line "--" is a list of arguments
func TestPrograms(t *testing.T) {
	now := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	pool := newPool(t, script.Options{Clock: clock.Fake(now), Time: time.Minute})
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		host := &items{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "docs":
				host.docs = documents(t, d)
				return ""
			case "function":
				return functionOutput(t, pool, d.Input)
			}
			return programOutput(t, pool, host, d)
		})
	})
}

// documents reads the documents of a command.
func documents(t *testing.T, d *datadriven.TestData) (docs []map[string]any) {
	if d.HasArg("n") {
		var n int
		d.ScanArgs(t, "n", &n)
		for i := range n {
			docs = append(docs, map[string]any{"id": fmt.Sprint(i), "n": i})
		}
		return docs
	}
	if err := json.Unmarshal([]byte(d.Input), &docs); err != nil {
		t.Fatal(err)
	}
	return docs
}

// programOutput runs a program and shows what it leaves.
func programOutput(t *testing.T, pool *script.Pool, host *items, d *datadriven.TestData) string {
	kinds := map[string]script.Kind{"procedure": script.Procedure, "pre-trigger": script.PreTrigger,
		"post-trigger": script.PostTrigger}
	kind, ok := kinds[d.Cmd]
	if !ok {
		t.Fatalf("unknown command %s", d.Cmd)
	}
	source, given := d.Input, map[string][]byte{}
	for _, name := range []string{"args", "request", "response"} {
		if rest, ok := strings.CutPrefix(source, name+": "); ok {
			value, after, _ := strings.Cut(rest, "\n")
			source, given[name] = after, []byte(value)
		}
	}
	run := script.Run{Kind: kind, Name: "s", Source: source, Args: given["args"], Links: links, Log: d.HasArg("log")}
	run.Request = &script.Message{Operation: "Create", Body: given["request"],
		Headers: []script.Header{{Name: "x-ms-activity-id", Value: "a1"}}}
	if kind == script.PostTrigger {
		run.Response = &script.Message{Body: given["response"],
			Headers: []script.Header{{Name: "x-ms-resource-quota", Value: "documentSize=1"}}}
	}
	host.calls = nil
	result, err := pool.Run(t.Context(), run, host)
	var b strings.Builder
	if d.HasArg("calls") {
		for _, call := range host.calls {
			fmt.Fprintln(&b, call)
		}
	}
	if err != nil {
		return b.String() + failure(err)
	}
	for _, part := range []struct{ name, text string }{{"body", string(result.Body)},
		{"request", string(result.Request)}, {"response", string(result.Response)}, {"log", result.Log}} {
		if part.text != "" {
			fmt.Fprintf(&b, "%s: %s\n", part.name, part.text)
		}
	}
	return b.String()
}

// failure shows how a run failed.
func failure(err error) string {
	var e *script.Error
	if !errors.As(err, &e) {
		return err.Error() + "\n"
	}
	return fmt.Sprintf("%d/%d %s\n", e.Status, e.Sub, strings.ReplaceAll(e.Body, "\r\n", "\n"))
}

// functionOutput calls a function and shows its values.
func functionOutput(t *testing.T, pool *script.Pool, input string) string {
	source, lists, _ := strings.Cut(input, "\n--\n")
	var args [][]byte
	for _, list := range strings.Split(lists, "\n") {
		args = append(args, []byte(list))
	}
	f := pool.Functions(map[string]string{"f": source})
	if !f.Has("f") || f.Has("g") {
		t.Error("Has is wrong")
	}
	values, err := f.Call(t.Context(), "f", args)
	if err != nil {
		return failure(err)
	}
	var b strings.Builder
	for _, v := range values {
		if v == nil {
			v = []byte("undefined")
		}
		fmt.Fprintf(&b, "%s\n", v)
	}
	return b.String()
}

// A function gives the same values for a whole document and for the properties that it reads.
func TestFunctionsOfParts(t *testing.T) {
	pool := newPool(t, script.Options{})
	const document = `{"id":"1","a":2,"b":"x","list":[{"n":1},{"n":2}],"none":null,"deep":{"a":{"b":3}},"_ts":1}`
	whole := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(document), &whole); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{
		`function f(d) { return [d.a, d.b, d.missing, d.none, typeof d, typeof d.missing]; }`,
		`function f(d) { let s = 0; for (const x of d.list) s += x.n * d.a; return s; }`,
		`function f(d) { return d.deep && d.deep.a["b"] + d["a"]; }`,
		`function f(d) { d.a++; d.c = d.a; delete d.b; return [d.a, d.b, d.c]; }`,
		`function f(d) { return [String(d.toString), typeof d.hasOwnProperty, d.valueOf === ({}).valueOf]; }`,
		`async (d) => (await d.list).map((x) => x.n).concat(d.id)`,
		`function f(d) { return d ? g(d.list) : 0; } function g(l) { return l.length; }`,
		`function f(d) { return 1; }`,
	} {
		f := pool.Functions(map[string]string{"f": source})
		want, err := f.Call(t.Context(), "f", [][]byte{[]byte("[" + document + "]")})
		if err != nil {
			t.Fatal(source, err)
		}
		reads := f.Reads("f")
		if len(reads) != 1 || reads[0] == nil {
			t.Errorf("%s reads %v", source, reads)
			continue
		}
		part := map[string]json.RawMessage{}
		for _, name := range reads[0] {
			if v, ok := whole[name]; ok {
				part[name] = v
			}
		}
		text, err := json.Marshal([]any{part})
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Call(t.Context(), "f", [][]byte{text})
		if err != nil || string(got[0]) != string(want[0]) {
			t.Errorf("%s of %s: %s, %v, want %s", source, text, got[0], err, want[0])
		}
	}
}
