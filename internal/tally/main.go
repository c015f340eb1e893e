// Command tally runs `go test -json` and shows what a person wants to know: failures with their output, one line per
// package, and the total counts. Counts are added to a file, so that several runs sum up.
//
//	tally [-C dir] [-sums file] [-label text] [-again] -- test arguments...
//	tally -sums file -print        prints and removes the sums
//
// -again is for tests that need something which fails by itself, as a double of a store does: the few that failed run
// once more, without the others, and their second result counts.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

type counts struct{ passed, failed int }

// results are what a run of go test has told.
type results struct {
	counts
	tests   []string // that failed, without those within them
	stopped bool     // a test took all others of its package with it, so what failed isn't all that is missing
}

// fewAgain is how many failed tests run again at most. If more have failed, it isn't by chance.
const fewAgain = 5

func main() {
	dir := flag.String("C", "", "run in this directory")
	sums := flag.String("sums", "", "file to add the counts to")
	label := flag.String("label", "tests", "what these tests are")
	again := flag.Bool("again", false, "run the few tests that failed once more")
	print := flag.Bool("print", false, "print the sums and remove the file")
	flag.Parse()
	if *print {
		os.Exit(printSums(*sums))
	}
	c := run(*dir, flag.Args())
	if *again && c.failed > 0 && !c.stopped && len(c.tests) > 0 && len(c.tests) <= fewAgain {
		fmt.Printf("%s: %d passed, %d failed; these run again: %s\n", *label, c.passed, c.failed,
			strings.Join(c.tests, " "))
		// The last -run is the one that go test takes.
		second := run(*dir, append(flag.Args(), "-count=1", "-run=^("+strings.Join(c.tests, "|")+")$"))
		if second.passed >= len(c.tests) || second.failed > 0 { // else they haven't run
			c.passed, c.failed = c.passed+second.passed, second.failed
		}
	}
	fmt.Printf("%s: %d passed, %d failed\n", *label, c.passed, c.failed)
	if err := add(*sums, *label, c.counts); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(2)
	}
	if c.failed > 0 {
		os.Exit(1)
	}
}

// run runs go test in a directory, and shows and counts its results.
func run(dir string, args []string) results {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(2)
	}
	c := read(out, os.Stdout)
	if err := cmd.Wait(); err != nil && c.failed == 0 {
		c.failed++ // go itself failed
		fmt.Fprintln(os.Stderr, "tally: go test:", err)
	}
	return c
}

// read consumes the events, prints what matters and counts tests (subtests each for themselves). A package that fails
// without a failing test (it does not build, it panics) counts as one failure.
func read(r io.Reader, w io.Writer) results {
	var c results
	outputs := map[string]*strings.Builder{}
	failedIn := map[string]bool{}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var e event
		if json.Unmarshal(sc.Bytes(), &e) != nil {
			fmt.Fprintln(w, sc.Text()) // not an event: a build error
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			if outputs[key] == nil {
				outputs[key] = &strings.Builder{}
			}
			outputs[key].WriteString(e.Output)
		case "pass", "skip", "fail":
			text := outputs[key]
			delete(outputs, key)
			fail := e.Action == "fail"
			switch {
			case e.Test != "" && fail:
				c.failed++
				failedIn[e.Package] = true
				if !strings.Contains(e.Test, "/") {
					c.tests = append(c.tests, e.Test)
				}
				c.stopped = c.stopped || text != nil && strings.Contains("\n"+text.String(), "\npanic: ")
			case e.Test != "" && e.Action == "pass":
				c.passed++
			case e.Test == "" && fail && !failedIn[e.Package]:
				c.failed++
				c.stopped = true
			}
			if fail && text != nil {
				fmt.Fprint(w, text.String())
			}
			if e.Test == "" && e.Action != "skip" {
				fmt.Fprintf(w, "%-4s %s  %.1fs\n", e.Action, e.Package, e.Elapsed)
			}
		}
	}
	for key, text := range outputs { // never finished, or output of the build
		c.stopped = true
		if pkg, _, _ := strings.Cut(key, " "); pkg == "" || failedIn[pkg] || c.failed > 0 {
			fmt.Fprint(w, text.String())
		}
	}
	return c
}

func add(file, label string, c counts) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %d %s\n", c.passed, c.failed, label)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func printSums(file string) int {
	raw, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally: nothing was counted:", err)
		return 1
	}
	var total counts
	for line := range strings.Lines(string(raw)) {
		var c counts
		if _, err := fmt.Sscanf(line, "%d %d", &c.passed, &c.failed); err == nil {
			total.passed, total.failed = total.passed+c.passed, total.failed+c.failed
		}
	}
	_ = os.Remove(file)
	fmt.Printf("total: %d passed, %d failed\n", total.passed, total.failed)
	if total.failed > 0 || total.passed == 0 {
		return 1
	}
	return 0
}
