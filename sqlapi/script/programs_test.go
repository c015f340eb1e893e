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
	defer f.Close()
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
