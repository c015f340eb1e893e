package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// copier is the program that copies between running servers. It is one of its own, because the official clients that
// it speaks by would make this one larger (decision 0065).
const copier = "orrery-copy"

// copyCommand runs the copier with all arguments.
func copyCommand(s *streams) *cobra.Command {
	return &cobra.Command{Use: "copy --from PLACE --to PLACE", DisableFlagParsing: true,
		Short: "Copy a container between running servers, or from and to a live account (" + copier + ").",
		RunE: func(_ *cobra.Command, args []string) error {
			return runs(func() error { return runCopier(args, s.out, s.errOut) })(nil, nil)
		}}
}

// runCopier runs the copier that is beside this program, or on the path.
func runCopier(args []string, out, errOut io.Writer) error {
	path := ""
	if self, err := os.Executable(); err == nil {
		path = filepath.Join(filepath.Dir(self), copier)
		if _, err := os.Stat(path); err != nil {
			path = ""
		}
	}
	if path == "" {
		found, err := exec.LookPath(copier)
		if err != nil {
			return fmt.Errorf("%s is neither beside this program nor on the path: `make build-copy` builds it", copier)
		}
		path = found
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, errOut
	signals := make(chan os.Signal, 1) // the terminal sends an interrupt to both: the copier ends by it, and then this
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	err := cmd.Start()
	if err == nil {
		go func() {
			for sig := range signals {
				if sig == syscall.SIGTERM {
					_ = cmd.Process.Signal(sig)
				}
			}
		}()
		err = cmd.Wait()
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return fmt.Errorf("%s has ended with %d", copier, ended.ExitCode())
	}
	return err
}
