// Command sh is the command shell of the image "orrery-shell": test containers execute commands such as
//
//	sh -c "mongosh mongo --eval \"rs.initiate();\" || mongo --eval \"rs.initiate();\""
//
// It interprets scripts of sh and bash, and has the usual commands for files. Called by the name of one of these, it
// is that command. Everything in it is Go, so the image is built for each system like the server, and no program with
// a licence of its own is copied into it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/moreinterp/coreutils"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args)
	stop()
	os.Exit(code)
}

// run runs a command line and returns its exit code.
func run(ctx context.Context, args []string) int {
	err := start(ctx, filepath.Base(args[0]), args[1:])
	var status interp.ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintln(os.Stderr, "sh:", err)
	return 2
}

// start runs the program of a name: a shell with a script or a text, or one command.
func start(ctx context.Context, name string, args []string) error {
	if name != "sh" && name != "bash" {
		line := []string{quote(name)}
		for _, a := range args {
			line = append(line, quote(a))
		}
		return script(ctx, strings.NewReader(strings.Join(line, " ")), name, nil)
	}
	var text string
	given := false
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		flag := args[0]
		args = args[1:]
		if flag == "--" {
			break
		}
		if strings.HasSuffix(flag, "c") && !strings.HasPrefix(flag, "--") { // also -lc, -ec
			if len(args) == 0 {
				return errors.New("-c: want a command")
			}
			text, args, given = args[0], args[1:], true
		}
	}
	switch {
	case given:
		if len(args) > 0 { // $0
			name, args = args[0], args[1:]
		}
		return script(ctx, strings.NewReader(text), name, args)
	case len(args) > 0:
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		return script(ctx, f, args[0], args[1:])
	}
	return script(ctx, os.Stdin, name, args)
}

// quote returns a word that the shell reads as one.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// script runs the statements of a text, one after the other, as they are read.
func script(ctx context.Context, in io.Reader, name string, args []string) error {
	r, err := interp.New(interp.StdIO(os.Stdin, os.Stdout, os.Stderr),
		interp.Params(append([]string{"--"}, args...)...), interp.ExecHandlers(commands))
	if err != nil {
		return err
	}
	if in == os.Stdin {
		return interactive(ctx, r)
	}
	file, err := syntax.NewParser().Parse(in, name)
	if err != nil {
		return err
	}
	return r.Run(ctx, file)
}

// interactive runs the lines of the standard input as they come. An error of one doesn't end the shell.
func interactive(ctx context.Context, r *interp.Runner) error {
	var last error
	for stmt, err := range syntax.NewParser().StmtsSeq(os.Stdin) {
		if err != nil {
			return err
		}
		if last = r.Run(ctx, stmt); r.Exited() {
			return last
		}
	}
	return last
}

// commands runs the commands of this program, and others from the path.
func commands(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	files := coreutils.ExecHandler(next)
	return func(ctx context.Context, args []string) error {
		h := interp.HandlerCtx(ctx)
		switch filepath.Base(args[0]) {
		case "sleep":
			return sleep(ctx, args[1:])
		case "env":
			return env(ctx, h, args[1:])
		case "whoami":
			_, err := fmt.Fprintln(h.Stdout, "orrery")
			return err
		}
		own := append([]string{filepath.Base(args[0])}, args[1:]...)
		return files(ctx, own)
	}
}

// sleep waits so many seconds, or 10s, 2m, 1h.
func sleep(ctx context.Context, args []string) error {
	total := time.Duration(0)
	for _, a := range args {
		if strings.Trim(a, "0123456789.") == "" {
			a += "s"
		}
		d, err := time.ParseDuration(a)
		if err != nil {
			return err
		}
		total += d
	}
	select {
	case <-time.After(total):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// env runs a command with more variables, or prints them.
func env(ctx context.Context, h interp.HandlerContext, args []string) error {
	for len(args) > 0 && strings.Contains(args[0], "=") {
		name, value, _ := strings.Cut(args[0], "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
		args = args[1:]
	}
	if len(args) > 0 {
		return start(ctx, filepath.Base(args[0]), args[1:])
	}
	for _, pair := range os.Environ() {
		if _, err := fmt.Fprintln(h.Stdout, pair); err != nil {
			return err
		}
	}
	return nil
}
