package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// commands has the commands with the values of their flags.
type commands struct {
	engines []server.EngineKind // that this binary contains

	Serve      serveCmd
	Emulator   emulatorCmd
	Health     healthCmd
	Demo       demoCmd
	Check      checkCmd
	Repair     repairCmd
	Backup     backupCmd
	Restore    restoreCmd
	Move       moveCmd
	Query      queryCmd
	Tail       tailCmd
	Partitions partitionsCmd
	Connect    connectCmd
	Import     importCmd
	Export     exportCmd
	Shell      shellCmd
	Cert       certCmd
	Doctor     doctorCmd
	Mongosh    mongoshCmd
}

// streams are the outputs of a command.
type streams struct{ out, errOut io.Writer }

// root returns the command line. Every flag can also be set by an environment variable: --nosql-addr by
// ORRERY_NOSQL_ADDR.
func (c *commands) root(s *streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "orrery",
		Short: "Azure Cosmos DB's four APIs over one store, in one binary.",
		Long: "Azure Cosmos DB's four APIs over one store, in one binary. Every flag is also a variable: " +
			"--nosql-addr is ORRERY_NOSQL_ADDR.",
		SilenceErrors: true, SilenceUsage: true,
	}
	config := root.PersistentFlags().String("config", "", "`FILE` in TOML or YAML with values of flags; flags and "+
		"variables take precedence.")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		key := cmd.Flags().Lookup("key")
		onLine := key != nil && key.Changed
		err := fromVariables(cmd.Flags())
		if err == nil && *config != "" {
			err = fromFile(*config, cmd)
		}
		if err == nil && key != nil {
			err = resolveKey(key, onLine)
		}
		if err == nil {
			err = notEmpty(cmd.Flags())
		}
		return err
	}
	show := root.Flags().Bool("version", false, "Print the version.")
	root.RunE = func(*cobra.Command, []string) error {
		if *show {
			return printVersion(s.out)
		}
		_, err := io.WriteString(s.out, firstSteps)
		return err
	}
	root.SetOut(s.out)
	root.SetErr(s.errOut)
	serve := c.Serve.command(c.engines)
	c.Serve.asMongod(serve.Flags())
	root.AddCommand(serve, c.Emulator.command(c.engines), c.Health.command(s), c.Demo.command(),
		c.Check.command(s, c.engines), c.Repair.command(s),
		c.Backup.command(s), c.Restore.command(s), c.Move.command(s, c.engines), c.Query.command(s, c.engines),
		c.Tail.command(s), c.Partitions.command(s), c.Import.command(s), c.Export.command(s),
		copyCommand(s), c.Connect.command(s), c.Cert.command(s), c.Doctor.command(s), c.Shell.command(s),
		c.Mongosh.command(s),
		scriptWorker(),
		&cobra.Command{Use: "version", Short: "Print the version.", Args: noArguments,
			RunE: runs(func() error { return printVersion(s.out) })})
	completeValues(root)
	for _, cmd := range root.Commands() {
		cmd.Flags().SortFlags = false // they are shown in the order in which they are added
	}
	return root
}

func printVersion(out io.Writer) error {
	_, err := fmt.Fprintln(out, "orrery", version())
	return err
}

// failure is the error of a command that has begun. All other errors mean a wrong use of the command line.
type failure struct{ error }

// Unwrap returns the error.
func (f failure) Unwrap() error { return f.error }

// runs makes a function the body of a command.
func runs(f func() error) func(*cobra.Command, []string) error {
	return func(*cobra.Command, []string) error {
		if err := f(); err != nil {
			return failure{err}
		}
		return nil
	}
}

// fromVariables sets the flags that are not given to the values of their environment variables. That of a repeatable
// flag has one value on each line, or behind each comma if the flag has commas itself.
func fromVariables(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := "ORRERY_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		text, ok := os.LookupEnv(name)
		if !ok || f.Changed || f.Hidden || f.Name == "help" || f.Name == "version" || err != nil {
			return
		}
		values := []string{text}
		if f.Value.Type() == "stringArray" || f.Value.Type() == repeatable {
			values = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		}
		for _, v := range values {
			if e := flags.Set(f.Name, v); e != nil && err == nil {
				err = fmt.Errorf("variable %s: %w", name, e)
			}
		}
	})
	return err
}

// require marks flags that a command can't do without.
func require(cmd *cobra.Command, flags ...string) *cobra.Command {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // there is no such flag
		}
	}
	return cmd
}

// notEmpty returns an error if a flag that a command can't do without is empty, as of a variable that isn't set.
func notEmpty(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[cobra.BashCompOneRequiredFlag] != nil && f.Changed && f.Value.String() == "" && err == nil {
			err = fmt.Errorf("--%s is empty", f.Name)
		}
	})
	return err
}

// address is a flag with the URL of an API. A user who leaves out the scheme is told so before a request is made.
type address struct{ url *string }

func urlVar(f *pflag.FlagSet, p *string, name, is, usage string) {
	*p = is
	f.Var(address{p}, name, usage)
}

// String implements pflag.Value.
func (a address) String() string { return *a.url }

// Type implements pflag.Value.
func (a address) Type() string { return "string" }

// Set implements pflag.Value.
func (a address) Set(text string) error {
	if text != "" && !strings.Contains(text, "://") {
		return errors.New("want a URL with its scheme, such as http://127.0.0.1:8081")
	}
	*a.url = text
	return nil
}

// choice is a flag with a few possible values.
type choice struct {
	value *string
	of    []string
}

// oneOf returns a flag with a default and its possible values.
func oneOf(value *string, is string, of ...string) *choice {
	*value = is
	return &choice{value, of}
}

// Set implements pflag.Value.
func (c *choice) Set(text string) error {
	if !slices.Contains(c.of, text) {
		return fmt.Errorf("want one of %s", strings.Join(c.of, ", "))
	}
	*c.value = text
	return nil
}

// String implements pflag.Value.
func (c *choice) String() string { return *c.value }

// Type implements pflag.Value.
func (c *choice) Type() string { return "string" }

// directory is a flag or an argument that names an existing directory.
type directory string

// Set implements pflag.Value.
func (d *directory) Set(text string) error {
	info, err := os.Stat(text)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no directory", text)
	}
	*d = directory(text)
	return err
}

// String implements pflag.Value.
func (d *directory) String() string { return string(*d) }

// Type implements pflag.Value.
func (d *directory) Type() string { return "DIR" }

// asDirectory returns a function that sets a value to the name of an existing directory.
func asDirectory(value *string) func(string) error { return (*directory)(value).Set }

// only returns the check of a command's single argument, which sets it.
func only(set func(string) error) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("want one argument: %s", cmd.UseLine())
		}
		return set(args[0])
	}
}

// noArguments refuses arguments of a command that has only flags. Cobra's own check would call them commands.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s: want no argument, only flags: %s", args[0], cmd.UseLine())
	}
	return nil
}

// helpAsFlag turns "help COMMAND" into "COMMAND --help".
func helpAsFlag(args []string) []string {
	if len(args) > 0 && args[0] == "help" {
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// run parses args and runs the command. It returns the exit code: 0 success, 1 failure, 2 wrong usage.
func run(args []string, out, errOut io.Writer, engines ...server.EngineKind) int {
	c := commands{engines: engines}
	root := c.root(&streams{out, errOut})
	root.SetArgs(helpAsFlag(args))
	err := root.Execute()
	var code exitCode
	switch f := (failure{}); {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &f):
		fmt.Fprintln(errOut, "orrery:", strings.ReplaceAll(f.Error(), "\n", "\norrery: "))
		return 1
	}
	fmt.Fprintln(errOut, "orrery:", err)
	return 2
}
