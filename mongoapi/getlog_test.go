package mongoapi

import (
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/internal/recentlog"
)

// TestGetLog: the records of the log in MongoDB's form, and the warnings from before the server began.
func TestGetLog(t *testing.T) {
	l := &recentlog.Log{}
	log := slog.New(l.Handler(slog.NewTextHandler(io.Discard, nil)))
	log.Info("The store is open", "items", 3)
	log.Warn("Clients may refuse the certificate", "file", `a"b`)
	_, addr := serve(t, Options{Log: l, Logger: log}, nil)
	c := connect(t, addr)
	log.Error("An API does not answer")
	lines := func(name string) (string, int32) {
		t.Helper()
		d := c.inDatabase("admin", `{"getLog":"`+name+`"}`)
		values, err := d.Lookup("log").Array().Values()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, v := range values {
			line := v.StringValue()
			all = append(all, line[strings.Index(line, `"s":`):])
		}
		return strings.Join(all, "\n"), d.Lookup("totalLinesWritten").Int32()
	}
	const rest = `"c":"-","id":0,"ctx":"-",`
	const warning = `"s":"W",` + rest + `"msg":"Clients may refuse the certificate","attr":{"file":"a\"b"}}`
	for name, want := range map[string]string{
		"startupWarnings": warning,
		"global": `"s":"I",` + rest + `"msg":"The store is open","attr":{"items":3}}` + "\n" + warning + "\n" +
			`"s":"E",` + rest + `"msg":"An API does not answer"}`,
	} {
		if got, n := lines(name); got != want || int(n) != strings.Count(want, "\n")+1 {
			t.Errorf("%s: %d lines:\n%s\nwant\n%s", name, n, got, want)
		}
	}
	if code := c.inDatabase("admin", `{"getLog":"none"}`).Lookup("code").Int32(); code != 96 {
		t.Errorf("a log that isn't there: %d", code)
	}
}

// TestCommandLine: getCmdLineOpts has the options that programs look up, under MongoDB's names.
func TestCommandLine(t *testing.T) {
	for standalone, set := range map[bool]string{false: "rs1", true: ""} {
		_, addr := serve(t, Options{SetName: "rs1", Standalone: standalone}, nil)
		parsed := connect(t, addr).inDatabase("admin", `{"getCmdLineOpts":1}`).Lookup("parsed").Document()
		if got, _ := parsed.Lookup("replication", "replSetName").StringValueOK(); got != set {
			t.Errorf("replSetName %q, want %q", got, set)
		}
		if got := parsed.Lookup("security", "authorization").StringValue(); got != "disabled" {
			t.Errorf("authorization %q", got)
		}
		if port := parsed.Lookup("net", "port").Int32(); !strings.HasSuffix(addr, ":"+strconv.Itoa(int(port))) {
			t.Errorf("port %d, want that of %s", port, addr)
		}
	}
}
