package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// learn asks for the names that can be completed. Without an answer there are none.
func (c *shellCmd) learn() {
	if c.nosql() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	names := map[string][]string{}
	dbs, err := door.Names(ctx, c.srv, "")
	const most = 20 // databases
	for _, db := range dbs[:min(len(dbs), most)] {
		if err == nil {
			names[db], err = door.Names(ctx, c.srv, db)
		}
	}
	if err == nil {
		c.names = names
	}
}

// complete completes the word before the cursor when Tab is pressed.
func (c *shellCmd) complete(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	of, word := c.words(line[:pos])
	found := common(of, word)
	if len(found) <= len(word) {
		return line, pos, true
	}
	start := pos - len(word)
	return line[:start] + found + line[pos:], start + len(found), true
}

// mostChoices is how many words are listed when Tab has several to choose from.
const mostChoices = 60

// choices lists the words by which the beginning of a line can go on, if there are several.
func (c *shellCmd) choices(w io.Writer, line string) {
	of, word := c.words(line)
	if word == "" && line != "" && !strings.HasPrefix(line, ":") && !strings.HasSuffix(line, ".") {
		return // everything would be listed
	}
	var found []string
	for _, one := range of {
		if strings.HasPrefix(strings.ToLower(one), strings.ToLower(word)) {
			found = append(found, one)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) < 2 {
		return
	}
	more := ""
	if n := len(found) - mostChoices; n > 0 {
		found, more = found[:mostChoices], fmt.Sprintf("(%d more)\n", n)
	}
	_, _ = io.WriteString(w, inColumns(found, c.width)+more)
}

// inColumns returns words side by side, as many in a line as fit the width.
func inColumns(words []string, width int) string {
	widest := 0
	for _, w := range words {
		widest = max(widest, uniseg.StringWidth(w))
	}
	each := max(1, (width+2)/(widest+2))
	var b strings.Builder
	for i, w := range words {
		if last := i == len(words)-1 || i%each == each-1; last {
			b.WriteString(w + "\n")
		} else {
			b.WriteString(padded(w, widest) + "  ")
		}
	}
	return b.String()
}

// words returns what can be completed after the beginning of a line, and the word that is completed.
func (c *shellCmd) words(line string) (of []string, word string) {
	word = line[strings.LastIndexByte(line, ' ')+1:]
	name, _, hasArg := strings.Cut(line, " ")
	switch {
	case strings.HasPrefix(line, ":") && !hasArg:
		for _, cmd := range shellCommands {
			of = append(of, cmd.name)
		}
	case name == ":lang":
		for _, l := range shellLanguages {
			of = append(of, l.name)
		}
	case strings.HasPrefix(name, ":") && name != ":explain":
		for db, containers := range c.names {
			of = append(of, db)
			for _, name := range containers {
				of = append(of, db+"/"+name)
			}
		}
	default:
		return c.session.words(line)
	}
	return of, word
}

// common returns the longest beginning that all words have in common that begin with prefix, in any case of letters.
func common(of []string, prefix string) string {
	found := ""
	for _, w := range of {
		switch {
		case !strings.HasPrefix(strings.ToLower(w), strings.ToLower(prefix)):
		case found == "":
			found = w
		default:
			n := 0
			for n < min(len(found), len(w)) && found[n] == w[n] {
				n++
			}
			found = found[:n]
		}
	}
	return found
}
