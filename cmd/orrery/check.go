package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// checkCmd verifies a store.
type checkCmd struct {
	Dir string `arg:"" help:"Data directory." type:"existingdir"`
}

// Run implements the command: it prints every problem, and fails when there is one.
func (c *checkCmd) Run() error {
	ctx := context.Background()
	eng, err := server.OpenForCheck(ctx, c.Dir)
	if err != nil {
		return err
	}
	problems, err := eng.Check(ctx)
	for _, p := range problems {
		fmt.Fprintln(os.Stdout, p)
	}
	containers, items := 0, int64(0)
	for _, d := range eng.Databases() {
		cs, cerr := eng.Containers(d.ID)
		err = errors.Join(err, cerr)
		for _, k := range cs {
			containers++
			items += k.Count()
		}
	}
	if err = errors.Join(err, eng.Close()); err != nil {
		return err
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s: %d problems in %d containers with %d items", c.Dir, len(problems), containers, items)
	}
	fmt.Printf("%s: clean, %d containers with %d items\n", c.Dir, containers, items)
	return nil
}
