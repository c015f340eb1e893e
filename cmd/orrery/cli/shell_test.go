package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// Lines that are piped in are run, and rows are JSON lines.
func TestShellOfLines(t *testing.T) {
	s := serverFor(t, nil)
	dir := t.TempDir()
	ran(t, 0, append([]string{"import", write(t, dir, "people.jsonl", `{"id":"1","name":"Ann","n":1}
{"id":"2","name":"Bob","n":2}
`), "--db", "d", "--partition-key", "/id", "--state", dir + "/state"}, endpoints(s)...)...)
	for _, c := range []struct {
		lines, want string
		fails       string
	}{
		{":use d/people\nSELECT VALUE c.name FROM c WHERE c.n = 2;\n\n-- nothing\n:quit\nnot run", "\"Bob\"\n", ""},
		{":list d", "people\n", ""},
		{"SELECT 1", "", "which container?"},
		{":use d/none", "", "has no container none: people"},
		{":use d/people\nSELEKT", "", "the server refuses the query"},
		{":nothing", "", "there is no command :nothing"},
	} {
		in, err := os.Open(write(t, dir, "lines", c.lines))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		sh := &shellCmd{remote: remote{Endpoint: "http://" + s.Addr(server.NoSQL), Account: "localhost"}}
		err = sh.run(&streams{&out, &out}, in)
		if out.String() != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(),
			c.fails) {
			t.Errorf("%q: %q, %v", c.lines, out.String(), err)
		}
		_ = in.Close()
	}
}

// Tab completes commands, names and keywords as far as they have no choice.
func TestShellCompletes(t *testing.T) {
	sh := &shellCmd{names: map[string][]string{"shop": {"orders", "orderlines"}}}
	for line, want := range map[string]string{
		":pa": ":partitions", ":use sh": ":use shop", ":use shop/o": ":use shop/order", "sel": "SELECT",
		"SELECT * FROM c WHERE sta": "SELECT * FROM c WHERE STARTSWITH(", "xyz": "xyz", "": "",
	} {
		got, pos, ok := sh.complete(line, len(line), '\t')
		if got != want || pos != len(want) || !ok {
			t.Errorf("%q: %q, %d, %v", line, got, pos, ok)
		}
	}
	if _, _, ok := sh.complete("x", 1, 'y'); ok {
		t.Error("a letter completes")
	}
}

// Tables fit the width, and control characters don't reach the terminal.
func TestRowTable(t *testing.T) {
	for _, width := range []int{0, 20, 200} {
		var out bytes.Buffer
		rows := &rowTable{out: &out, width: width}
		for _, row := range []string{`{"id":"1","name":"Ann Smith-Wesson","n":7,"_rid":"x"}`,
			`{"id":"2","name":"\u001b[31mred","n":[1,2]}`, `5`} {
			if _, err := rows.Write([]byte(row + "\n")); err != nil {
				t.Fatal(err)
			}
		}
		if err := rows.flush(); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsRune(out.String(), 0x1b) {
			t.Errorf("an escape sequence: %q", out.String())
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if !strings.HasPrefix(lines[0], "id") || lines[len(lines)-1] != "3 rows" || strings.Contains(out.String(),
			"_rid") {
			t.Errorf("width %d: %q", width, out.String())
		}
		for _, l := range lines {
			if width > 0 && len([]rune(l)) > width && !strings.HasPrefix(l, "(") {
				t.Errorf("width %d: %q", width, l)
			}
		}
	}
}
