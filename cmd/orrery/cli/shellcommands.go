package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// shellCommands are the commands beside queries, the same in all languages. One more command is one more entry.
var shellCommands []shellCommand

type shellCommand struct {
	name, help string
	run        func(c *shellCmd, ctx context.Context, arg string) error
}

func init() { // here, because help refers to the table
	shellCommands = []shellCommand{
		{":use", "DATABASE/CONTAINER, CONTAINER of the same database, or DATABASE: what queries are about",
			(*shellCmd).use},
		{":list", "the databases, or with DATABASE its containers", (*shellCmd).list},
		{":explain", "QUERY: how its rows are found, and what it costs", (*shellCmd).explain},
		{":partitions", "the physical partitions of the container, or of [DATABASE/]CONTAINER",
			(*shellCmd).partitions},
		{":tail", "changes of the container, or of [DATABASE/]CONTAINER, as they are made, until Ctrl+C",
			(*shellCmd).tail},
		{":json", "rows as JSON lines, or in readable form again", (*shellCmd).toggle},
		{":lang", "sql, gremlin or mongo: the language of the lines that follow", (*shellCmd).language},
	}
}

// help lists the commands.
func (c *shellCmd) help() error {
	var b strings.Builder
	for _, cmd := range shellCommands {
		fmt.Fprintf(&b, "%-12s %s\n", cmd.name, cmd.help)
	}
	fmt.Fprintf(&b, "%-12s end\n", ":quit")
	for _, l := range shellLanguages {
		if l.name == c.Lang {
			fmt.Fprintf(&b, "Everything else: %s\n", l.title)
		}
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}

// noContainer is the error of what needs a container. It names some of those that there are.
func (c *shellCmd) noContainer() error {
	var names []string
	for db, containers := range c.names {
		for _, name := range containers {
			if c.DB == "" || c.DB == db {
				names = append(names, db+"/"+name)
			}
		}
	}
	if len(names) == 0 {
		return errors.New("which container? :use DATABASE/CONTAINER")
	}
	slices.Sort(names)
	const most = 6
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("which container? :use DATABASE/CONTAINER; there is %s", strings.Join(names, ", "))
}

// place returns the container that an argument names, or the present one.
func (c *shellCmd) place(arg string) (db, container string, err error) {
	db, container, ok := strings.Cut(arg, "/")
	switch {
	case arg == "":
		db, container = c.DB, c.Container
	case !ok:
		db, container = c.DB, arg
	}
	if db == "" || container == "" {
		return "", "", c.noContainer()
	}
	return db, container, nil
}

// nosql returns an error if the server's NoSQL API isn't known, by which names and changes are read.
func (c *shellCmd) nosql() error {
	if c.srv.NoSQL == "" {
		return errors.New("the server has no NoSQL API, or its address isn't known: give --endpoint")
	}
	return nil
}

func (c *shellCmd) use(ctx context.Context, arg string) error {
	db, container, ok := strings.Cut(arg, "/")
	if c.Lang == "mongo" && !ok { // there a database is enough
		c.DB, c.Container = arg, ""
		return c.session.use()
	}
	if arg == "" || ok && (db == "" || container == "") {
		return errors.New("want :use DATABASE/CONTAINER")
	}
	if err := c.nosql(); err != nil {
		return err
	}
	if !ok {
		return c.useName(ctx, arg)
	}
	names, err := door.Names(ctx, c.srv, db)
	if err != nil {
		return err
	}
	if !slices.Contains(names, container) {
		return fmt.Errorf("the database %s has no container %s: %s", db, container, strings.Join(names, ", "))
	}
	c.DB, c.Container = db, container
	return c.session.use()
}

// useName takes a container of the present database, or else a database: its only container, or none of several, whose
// names are printed.
func (c *shellCmd) useName(ctx context.Context, name string) error {
	var siblings []string
	if c.DB != "" {
		var err error
		if siblings, err = door.Names(ctx, c.srv, c.DB); err != nil {
			return err
		}
		if slices.Contains(siblings, name) {
			c.Container = name
			return c.session.use()
		}
	}
	dbs, err := door.Names(ctx, c.srv, "")
	if err != nil {
		return err
	}
	if !slices.Contains(dbs, name) {
		if c.DB != "" {
			return fmt.Errorf("the database %s has no container %s: %s", c.DB, name, strings.Join(siblings, ", "))
		}
		return fmt.Errorf("there is no database %s: %s", name, strings.Join(dbs, ", "))
	}
	names, err := door.Names(ctx, c.srv, name)
	if err != nil {
		return err
	}
	c.DB, c.Container = name, ""
	if len(names) == 1 {
		c.Container = names[0]
	} else if !c.JSON {
		fmt.Fprintf(c.out, "containers: %s\n", strings.Join(names, ", "))
	}
	return c.session.use()
}

func (c *shellCmd) list(ctx context.Context, arg string) error {
	if err := c.nosql(); err != nil {
		return err
	}
	names, err := door.Names(ctx, c.srv, arg)
	if err == nil && len(names) > 0 {
		_, err = fmt.Fprintln(c.out, strings.Join(names, "\n"))
	}
	return err
}

func (c *shellCmd) explain(ctx context.Context, arg string) error { return c.session.explain(ctx, arg) }

func (c *shellCmd) toggle(context.Context, string) error {
	c.JSON = !c.JSON
	return c.session.use()
}

// language begins a session of another language.
func (c *shellCmd) language(_ context.Context, arg string) error {
	before, session := c.Lang, c.session
	c.Lang = arg
	if err := c.open(); err != nil {
		c.Lang = before
		return err
	}
	return session.close()
}

func (c *shellCmd) partitions(ctx context.Context, arg string) error {
	db, container, err := c.place(arg)
	if err != nil {
		return err
	}
	if c.srv.Admin == "" {
		return errors.New("the server has no admin port, or its address isn't known: give --admin-endpoint")
	}
	r, err := server.AskForPartitions(ctx, c.srv.Admin, c.srv.Key, db, container)
	if err != nil {
		return err
	}
	return writePartitions(c.out, r)
}

func (c *shellCmd) tail(ctx context.Context, arg string) error {
	db, container, err := c.place(arg)
	if err == nil {
		err = c.nosql()
	}
	if err != nil {
		return err
	}
	t := &tailCmd{Endpoint: c.srv.NoSQL, From: "now", Container: db + "/" + container}
	t.Key = c.srv.Key
	if !c.JSON {
		fmt.Fprintf(c.out, "changes of %s/%s as they are made; Ctrl+C ends\n", db, container)
	}
	return t.follow(ctx, &streams{c.out, c.out})
}
