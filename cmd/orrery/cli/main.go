// Package cli is the command line: its commands, flags and exit codes, and the life of the process that serves. The
// binaries are thin mains over it, which differ in the storage engines that they contain.
package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/sqlapi/script"
)

// version returns the module's version, or the commit of a build from a checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	rev, dirty := "devel", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			rev = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return rev + dirty
}

// stopGrace is how long requests in flight may take after SIGTERM. Including the closing of the store, the process ends
// within 5 s.
const (
	stopGrace = 3 * time.Second
	stopLimit = 4500 * time.Millisecond
)

// stopSignals are the signals that stop the server: also the one that says that its terminal was closed, unless it was
// started so that this has no effect, as with nohup.
func stopSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// serve runs the server until one of stopSignals. If after isn't nil, it is called once the server answers.
func serve(c server.Config, after func(context.Context, *server.Server) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	defer stop()
	c.Stop = stop
	if !c.Memory && c.Engine == "" {
		c.Disk = func() (free, total int64, err error) { return diskRoom(c.Data) }
	}
	slog.SetDefault(c.Logger)
	enoughProcessors()
	c.LimitMemory()
	collectEarly()
	s, err := opened(ctx, c)
	if s == nil {
		return err
	}
	if after != nil {
		err = after(ctx, s)
	}
	if err == nil {
		if err = s.Banner(os.Stdout); err == nil {
			s, err = watched(ctx, s, c.Logger)
		}
	}
	if s == nil {
		return err
	}
	signal.Ignore(syscall.SIGHUP) // shells repeat it when a terminal is closed
	stop()                        // a second signal of another kind ends the process immediately
	end := time.AfterFunc(stopLimit, func() {
		if s.Hangs() {
			c.Logger.Error("The store did not close in time")
			os.Exit(1)
		}
		c.Logger.Warn("Some requests did not end in time")
		os.Exit(0)
	})
	defer end.Stop()
	grace, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	return errors.Join(err, s.Stop(grace))
}

// watched waits until the server must stop: a signal arrived or a listener failed. It returns the server to stop. A
// server whose disk was full at its start is restarted when there is room, because Pebble can't switch a store from
// reading to writing.
func watched(ctx context.Context, s *server.Server, log *slog.Logger) (*server.Server, error) {
	for {
		select {
		case <-ctx.Done():
			log.Info("Stopping")
			return s, nil
		case err := <-s.Failed():
			return s, err
		case <-s.Room():
		}
		log.Info("The disk has room again, the store is opened for writing")
		grace, cancel := context.WithTimeout(context.Background(), stopGrace)
		next, err := s.Restart(grace)
		cancel()
		if err != nil {
			return nil, err
		}
		s = next
	}
}

// opened starts a server. If a signal arrives meanwhile, it gives up and returns no server and no error. No client was
// served yet, and the store is consistent at any moment.
func opened(ctx context.Context, c server.Config) (*server.Server, error) {
	type started struct {
		s   *server.Server
		err error
	}
	done := make(chan started, 1)
	go func() {
		s, err := server.Start(c)
		done <- started{s, err}
	}()
	select {
	case r := <-done:
		return r.s, r.err
	case <-ctx.Done():
		c.Logger.Info("Stopped while the store was being opened")
		return nil, nil
	}
}

// enoughProcessors sets GOMAXPROCS to 2 where Go would use 1, as on a machine with one CPU, and a sync of the log would
// occupy that one for as long as the disk takes, though it uses no CPU. No other goroutine could run meanwhile.
func enoughProcessors() {
	if runtime.GOMAXPROCS(0) < 2 && !pebblekv.SyncsAside() {
		runtime.GOMAXPROCS(2)
	}
}

// The amount of garbage that may accumulate between two collections, in percent of the live heap (decision 0015).
// During its start the process allocates mostly memory that stays live, so collections would only cost time.
const (
	garbagePercent = 50
	startPercent   = 400
	startTime      = time.Second
)

// collectEarly sets the collector to garbagePercent once the process has started, unless the user has set GOGC.
func collectEarly() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(startPercent)
		time.AfterFunc(startTime, func() { debug.SetGCPercent(garbagePercent) })
	}
}

// Main runs the command line of the process and returns its exit code. engines are the kinds of stores that the binary
// can open by their addresses.
func Main(engines ...server.EngineKind) int {
	script.Served()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	return run(asMongosh(os.Args), os.Stdout, os.Stderr, engines...)
}
