package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/certs"
	"github.com/orrerydb/orrery/cmd/orrery/explorer"
	"github.com/orrerydb/orrery/cmd/orrery/sniff"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/httpconn"
	"github.com/orrerydb/orrery/internal/netlimit"
	"github.com/orrerydb/orrery/internal/recentlog"
	"github.com/orrerydb/orrery/sqlapi/script"
)

// door is one API behind one listener.
type door interface {
	// Serve serves connections until Shutdown, after which it returns nil.
	Serve(net.Listener) error
	// Shutdown stops accepting, lets requests in flight finish until ctx ends, and then aborts them.
	Shutdown(ctx context.Context) error
}

// backend is the core and its store.
type backend interface {
	// Status returns the part of /status about databases and storage.
	Status() any
	Close() error
}

// Server is a running server. Stop it exactly once.
type Server struct {
	cfg   Config
	parts parts
	log   *slog.Logger
	lines *recentlog.Log // the last records of log
	cert  certs.Pair
	back  backend
	bound []*bound
	began time.Time
	seen  *observer

	stage *stage // nil: no test controls
	kit   *kit   // likewise, and nil for an account besides the server's own

	demo bool // it serves the sample data, and its banner says what they are

	init     initialization
	backups  backups
	handlers map[string]http.Handler       // of the doors that speak HTTP, without their guards
	pages    map[string]*explorer.Explorer // the web page, by the doors whose listeners serve it
	scripts  *script.Pool                  // nil: no API runs programs

	ready    atomic.Bool
	stopping atomic.Bool
	closing  atomic.Bool     // the store is being closed
	life     context.Context // ends when Stop begins
	probing  context.CancelFunc
	wg       sync.WaitGroup // listeners and the prober
	failed   chan error     // receives the error of a listener that ended by itself
}

// bound is a door with its listener.
type bound struct {
	name     string
	addr     string // the actual address, with the port that was chosen
	listener net.Listener
	conns    *netlimit.Listener // wraps the network listener, below listener
	gate     *admit.Gate        // nil for the admin port
	door     door
}

// Start opens everything and begins to serve. If it fails, it closes everything again.
func Start(cfg Config) (*Server, error) {
	return start(cfg, parts{open: openBackend, doors: makeDoors, probes: probes})
}

// parts can be replaced by tests.
type parts struct {
	open   func(*Config) (backend, error)
	doors  func(*Server) (map[string]door, error)
	probes map[string]probe
}

func start(cfg Config, p parts) (_ *Server, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.New()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	lines := &recentlog.Log{}
	cfg.Logger = slog.New(lines.Handler(cfg.Logger.Handler()))
	s := &Server{lines: lines, cfg: cfg, parts: p, log: cfg.Logger, began: wall.Now(), failed: make(chan error, 8),
		handlers: map[string]http.Handler{}}
	if cfg.parent != nil {
		s.seen = cfg.parent.seen
	} else {
		s.seen = newObserver(s.log, cfg.LogRequests, cfg.Slow)
	}
	s.init.begin(cfg.InitDir)
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if err := s.bind(); err != nil {
		return nil, err
	}
	if s.cert, err = s.certificate(); err != nil {
		return nil, err
	}
	if err := s.prepareTests(); err != nil {
		return nil, err
	}
	if s.back, err = p.open(&s.cfg); err != nil {
		return nil, err
	}
	if err := s.mendTests(); err != nil {
		return nil, err
	}
	ds, err := p.doors(s)
	if err != nil {
		return nil, err
	}
	if s.door(Admin) != nil {
		s.handlers[Admin] = s.adminHandler()
		ds[Admin] = s.httpDoor(Admin, s.withPage(Admin, s.handlers[Admin]))
		ds[page] = s.httpDoor(Admin, s.withPage(Admin, s.handlers[Admin]))
	}
	if err := s.makePages(); err != nil {
		return nil, err
	}
	if err := s.attach(ds); err != nil {
		return nil, err
	}
	s.keepConnections()
	s.serve()
	s.announce()
	return s, nil
}

// attach connects each door to its listener.
func (s *Server) attach(ds map[string]door) error {
	conf := &tls.Config{Certificates: []tls.Certificate{s.cert.TLS}, MinVersion: tls.VersionTLS12}
	if i := certs.NewIssuer(s.cert, s.certifies, wall); i != nil {
		conf.Certificates, conf.GetCertificate = nil, i.Get
	}
	for _, b := range s.bound {
		if b.door = ds[b.name]; b.door == nil {
			return fmt.Errorf("the %s API is not part of this build: use --%s-addr off", b.name, b.name)
		}
		b.listener = sniff.New(b.conns, conf, s.cfg.patience())
		if b.name == NoSQL || b.name == Table {
			b.listener = httpconn.Listener{Listener: b.listener}
		}
	}
	return nil
}

// bind opens all ports first, so that a port in use is reported before anything else happens.
func (s *Server) bind() error {
	for _, a := range s.cfg.addrs() {
		if a.addr == Off {
			continue
		}
		l, err := net.Listen("tcp", a.addr)
		if err != nil {
			hint := ""
			if errors.Is(err, syscall.EADDRINUSE) {
				hint = " (is another server running there?)"
			}
			return fmt.Errorf("--%s-addr %s can't be listened on%s: %w", a.name, a.addr, hint, err)
		}
		if s.cfg.OwnNetworks && s.cfg.open() {
			if l, err = onlyOwnNetworks(l, s.log); err != nil {
				return err
			}
		}
		b := &bound{name: a.name, addr: l.Addr().String(), conns: s.limited(a.name, l)}
		if b.listener = b.conns; a.name != Admin && a.name != page {
			b.gate = s.cfg.newGate()
		}
		s.bound = append(s.bound, b)
	}
	return nil
}

func (s *Server) serve() {
	s.life, s.probing = context.WithCancel(context.Background())
	for _, b := range s.bound {
		s.wg.Go(func() {
			err := b.door.Serve(b.listener)
			if err != nil && !s.stopping.Load() {
				s.log.Error("A listener ended", "api", b.name, "error", err)
				s.failed <- fmt.Errorf("%s: %w", b.name, err)
			}
		})
	}
	s.wg.Go(func() {
		s.probeUntilReady(s.life)
		s.initialize(s.life)
		s.prepareFirstSpare()
	})
}

// refusalPause is the time between two log lines about refused connections.
const refusalPause = time.Minute

// limited wraps a door's listener with the limit of connections.
func (s *Server) limited(name string, l net.Listener) *netlimit.Listener {
	var last time.Time // only Accept's goroutine calls Refuse
	return netlimit.New(l, netlimit.Options{Max: s.cfg.MaxConnections, Stall: s.cfg.bodyTimeout(), Refuse: func() {
		if now := wall.Now(); now.Sub(last) >= refusalPause {
			last = now
			s.log.Warn("An API has as many connections as it may: new ones are closed",
				"api", name, "connections", s.cfg.MaxConnections)
		}
	}})
}

// Failed delivers the error of a listener that ended by itself.
func (s *Server) Failed() <-chan error { return s.failed }

// Addr returns the address of a door with its actual port, "" if the door is off.
func (s *Server) Addr(name string) string {
	if b := s.door(name); b != nil {
		return b.addr
	}
	return ""
}

// door returns a door, or nil if it is off.
func (s *Server) door(name string) *bound {
	for _, b := range s.bound {
		if b.name == name {
			return b
		}
	}
	return nil
}

// Key returns the account's key.
func (s *Server) Key() string { return s.cfg.Key }

// Account returns the account's name.
func (s *Server) Account() string { return s.cfg.Account }

// CertificatePEM returns the server's certificate for clients that want to trust it.
func (s *Server) CertificatePEM() []byte { return s.cert.PEM }

// Ready reports whether every API has answered a request. /ready also requires a healthy store.
func (s *Server) Ready() bool { return s.ready.Load() && !s.stopping.Load() }

// WaitReady waits until the server is ready. If ctx ends first, it returns ctx's error.
func (s *Server) WaitReady(ctx context.Context) error {
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for !s.Ready() {
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Stop lets requests in flight finish until ctx ends, aborts the rest, and closes the store. Acknowledged writes are
// kept in any case.
func (s *Server) Stop(ctx context.Context) error {
	if s.stopping.Swap(true) {
		return errors.New("server: stopped twice")
	}
	s.probing()
	accounts := s.endAccounts(ctx)
	errs := make([]error, len(s.bound))
	var wg sync.WaitGroup
	for i, b := range s.bound {
		wg.Go(func() {
			if err := b.door.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				errs[i] = fmt.Errorf("%s: %w", b.name, err)
			}
			_ = b.listener.Close()
		})
	}
	wg.Wait()
	s.wg.Wait()
	s.dropSpares()
	errs = append(errs, accounts, s.closeScripts())
	s.forgetConnections()
	s.closePages()
	s.closing.Store(true)
	defer s.closeCache()
	return errors.Join(append(errs, s.store().Close())...)
}

// release closes what a failed start has opened.
func (s *Server) release() {
	for _, b := range s.bound {
		_ = b.listener.Close()
	}
	_ = s.closeScripts()
	if s.back != nil {
		_ = s.store().Close()
	}
	s.closeCache()
}

// closeScripts ends the processes that run programs.
func (s *Server) closeScripts() error {
	if s.scripts == nil {
		return nil
	}
	return s.scripts.Close()
}

// httpDoor serves an http.Handler.
type httpDoor struct {
	srv   *http.Server
	first func(context.Context) error // ends what http.Server doesn't track: hijacked connections
}

// httpDoor returns the door for a handler, with its guard.
func (s *Server) httpDoor(name string, h http.Handler) *httpDoor {
	return &httpDoor{srv: &http.Server{
		Handler:           http1Only(s.guarded(name, h), s.cfg.bodyTimeout()),
		ReadHeaderTimeout: s.cfg.bodyTimeout(),
		IdleTimeout:       5 * time.Minute,
		ConnContext:       httpconn.Context,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}}
}

// Serve implements door.
func (d *httpDoor) Serve(l net.Listener) error {
	if err := d.srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown implements door.
func (d *httpDoor) Shutdown(ctx context.Context) error {
	var err error
	if d.first != nil {
		err = d.first(ctx)
	}
	if herr := d.srv.Shutdown(ctx); herr != nil {
		_ = d.srv.Close()
		err = errors.Join(err, herr)
	}
	return err
}
