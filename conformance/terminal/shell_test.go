//go:build linux

package terminal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/rivo/uniseg"

	"github.com/orrerydb/orrery/conformance/harness"
)

// The keys of a terminal.
const (
	tab, ctrlC, ctrlD = "\t", "\x03", "\x04"
	up, left, home    = "\x1b[A", "\x1b[D", "\x01"
)

// people fills the container shop/people, whose items have a list of 1,500 numbers and a name of three languages.
func people(t *testing.T, s *harness.Server) {
	t.Helper()
	ctx := context.Background()
	if _, err := s.SQL.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "shop"}, nil); err != nil {
		t.Fatal(err)
	}
	db, err := s.SQL.NewDatabase("shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"people", "peaches"} {
		p := azcosmos.ContainerProperties{ID: id, PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
			Paths: []string{"/id"}, Version: 2, Kind: azcosmos.PartitionKeyKindHash}}
		if _, err := db.CreateContainer(ctx, p, nil); err != nil {
			t.Fatal(err)
		}
	}
	c, err := db.NewContainer("people")
	if err != nil {
		t.Fatal(err)
	}
	list := strings.TrimSuffix(strings.Repeat("1,", 1500), ",")
	for i, name := range []string{"Ann Smith", "东京都千代田区丸の内一丁目", "Zoë"} {
		id := fmt.Sprint("p", i)
		item := fmt.Appendf(nil, `{"id":%q,"name":%q,"about":%q,"list":[%s]}`, id, name, strings.Repeat("long ", 30),
			list)
		if _, err := c.CreateItem(ctx, azcosmos.NewPartitionKeyString(id), item, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// A line is edited and completed, tables fit the width, Ctrl+C ends a query and clears a line, Ctrl+D ends the shell,
// and the next shell has the lines of the last one.
func TestShellOnATerminal(t *testing.T) {
	s := harness.Start(t)
	people(t, s)
	dir := t.TempDir()
	x := start(t, command(s, dir, "shell"))
	x.expect("Ctrl+D ends")
	x.expect("orrery> ")
	x.keys(":use shop/pe" + tab)
	if list := x.expect("shop/people\r\n"); !strings.Contains(list, "shop/peaches  ") {
		t.Errorf("choices: %q", list)
	}
	x.keys("o" + tab + "\r")
	x.expect("shop/people> ")

	// SELECT c.id FRM c: three steps to the left, then the letter that is missing.
	x.keys("SELECT c.id FRM c" + strings.Repeat(left, 3) + "O" + "\r")
	x.expect("3 rows")
	x.expect("shop/people> ")
	table := x.enter("SELECT c.id, c.name, c.about, c.list FROM c", "3 rows", "shop/people> ")
	lines := strings.Split(table, "\r\n")
	for _, l := range lines[1 : len(lines)-1] {
		if w := uniseg.StringWidth(l); w > width {
			t.Errorf("%d columns: %q", w, l)
		}
	}
	if !strings.Contains(table, "东京") || !strings.Contains(table, "…") {
		t.Errorf("%q", table)
	}

	// A query that takes hours, and one that follows changes for ever.
	for _, slow := range []string{"SELECT COUNT(1) FROM c JOIN a IN c.list JOIN b IN c.list JOIN d IN c.list WHERE " +
		"a + b + d = 4", ":tail"} {
		x.keys(slow + "\r")
		x.expect("\r\n")
		wait(t, x.runs)
		x.keys(ctrlC)
		x.expect("cancelled")
		x.expect("shop/people> ")
	}
	x.keys("SELECT nonsense" + home + ctrlC) // clears all of the line, wherever the cursor is
	x.expect("shop/people> ")
	x.keys("SELECT VALUE c.name FROM c WHERE c.id = 'p0'\r")
	x.expect("Ann Smith")
	x.expect("shop/people> ")
	// Pasted lines are one query: entered with a line break at their end, or by Enter.
	const paste, pasted = "\x1b[200~", "\x1b[201~"
	for _, end := range []string{"\r" + pasted, pasted + "\r"} {
		x.keys(paste + "SELECT VALUE c.name\rFROM c\rWHERE c.id = 'p0'" + end)
		x.expect("Ann Smith")
		x.expect("1 row, ")
		x.expect(" RU, ")
		x.expect("shop/people> ")
	}
	x.enter("SELECT VALUE c.name FROM c WHERE", "", "... ")
	x.enter("c.id = 'p0'", "Ann Smith", "shop/people> ")
	x.enter(":json", "", "shop/people> ")
	x.enter("SELECT c.id FROM c WHERE c.id = 'p1'", `{"id":"p1"}`, "shop/people> ")
	x.enter("SELEKT", "the server refuses the query", "shop/people> ")
	x.keys(ctrlD)
	x.ends(0)

	x = start(t, command(s, dir, "shell", "--quiet", "--db", "shop", "--container", "people"))
	x.expect("shop/people> ")
	x.keys(up)
	x.expect("SELEKT")
	x.keys(up)
	x.expect("c.id = 'p1'")
	x.keys("\r")
	x.expect("1 row")
	x.expect("shop/people> ")
	x.keys(ctrlD)
	x.ends(0)
	info, err := os.Stat(filepath.Join(dir, "orrery", "history-sql"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}

// The other languages: texts of several lines, which Ctrl+C gives up, names of collections and steps, and queries that
// Ctrl+C ends.
func TestShellLanguagesOnATerminal(t *testing.T) {
	s := harness.Start(t)
	people(t, s)
	for _, c := range []struct {
		lang, prompt                string
		open, complete, whole       string
		query, result, slow, second string
	}{
		{"mongo", "shop> ", "db.people.find({", "db.peop" + tab + ".countD" + tab + "()", "db.people.countDocuments()",
			"db.people.find({ _id: 'p0' }, { name: 1 })", "name: 'Ann Smith'", "sleep(3600000)", "2 * 21"},
		{"gremlin", "shop/people> ", "g.V(", "g.V().hasL" + tab + "'x').count()", "g.V().hasLabel('x').count()",
			"g.inject(1, 2).fold()", "[1,2]", "g.inject(1).repeat(__.identity()).until(__.is(2))",
			"g.inject(42)"},
	} {
		t.Run(c.lang, func(t *testing.T) {
			x := start(t, command(s, t.TempDir(), "shell", "--lang", c.lang, "--db", "shop", "--container", "people"))
			x.expect("Ctrl+D ends")
			x.expect(c.prompt)
			x.enter(c.open, "", "... ")
			x.keys("more" + ctrlC)
			x.expect(c.prompt)
			x.keys(c.complete)
			x.expect(c.whole)
			x.keys("\r")
			x.expect(c.prompt)
			x.enter(c.query, c.result, c.prompt)
			x.keys(c.slow + "\r")
			x.expect("\r\n")
			wait(t, x.runs)
			x.keys(ctrlC)
			x.expect("cancelled")
			x.expect(c.prompt)
			x.enter(c.second, "42", c.prompt)
			x.keys(ctrlD)
			x.ends(0)
		})
	}
}

// If the output is no terminal, rows are JSON lines.
func TestShellIntoAPipe(t *testing.T) {
	s := harness.Start(t)
	people(t, s)
	cmd := command(s, t.TempDir(), "shell", "--db", "shop", "--container", "people")
	cmd.Stdin = strings.NewReader("SELECT c.id FROM c WHERE c.id < 'p2' ORDER BY c.id\n")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || string(out) != "{\"id\":\"p0\"}\n{\"id\":\"p1\"}\n" {
		t.Errorf("%q %s %v", out, errs.String(), err)
	}
}

// An import shows how far it is, how fast, and the time that is left; and removes that at its end.
func TestImportOnATerminal(t *testing.T) {
	s := harness.Start(t)
	people(t, s)
	dir := t.TempDir()
	var text strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&text, "{\"id\":\"i%d\",\"text\":%q}\n", i, strings.Repeat("x", 300))
	}
	file := filepath.Join(dir, "items.jsonl")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	x := start(t, command(s, dir, "import", file, "--db", "shop", "--container", "peaches", "--state",
		filepath.Join(dir, "state")))
	bar := x.expect("30000 rows: 30000 written")
	if !strings.Contains(bar, "importing") || !strings.Contains(bar, "MB/s") || !strings.Contains(bar, "%") ||
		!strings.Contains(bar, "s:") { // [0s:1s]: what has passed and what is left
		t.Errorf("%q", bar)
	}
	x.ends(0)
}
