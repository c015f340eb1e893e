package cli

import (
	"context"
	"strings"
	"time"

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
