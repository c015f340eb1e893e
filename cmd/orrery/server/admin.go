package server

import (
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/orrerydb/orrery/cmd/orrery/explorer"
	"github.com/orrerydb/orrery/internal/observe"
)

// adminHandler is the handler of the admin port: the state of the server, backups, and the physical partitions of a
// container. It never changes items.
func (s *Server) adminHandler() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.HandleMethodNotAllowed = true
	g.RedirectTrailingSlash = false
	g.Use(s.observed, recovered(s.log))
	metrics := gin.WrapH(promhttp.HandlerFor(s.registry(), promhttp.HandlerOpts{}))
	for _, r := range []struct {
		path   string
		answer gin.HandlerFunc
	}{
		{"/alive", s.getAlive},
		{"/ready", s.getReady},
		{"/status", s.getStatus},
		{"/metrics", metrics},
		{"/orrery/connect", s.getConnect},
		{InitPath, s.getInit},
		{PartitionsPath, s.getPartitions},
		{RequestsPath, s.getRequests},
		{"/debug/pprof/*profile", s.getProfile},
	} {
		g.GET(r.path, r.answer)
		g.HEAD(r.path, r.answer)
	}
	g.POST(BackupPath, s.postBackup)
	g.POST(PartitionsPath, s.postPartitions)
	if s.cfg.TestControls {
		s.testRoutes(g)
	}
	return g
}

// observed reports each request to the observer.
func (s *Server) observed(c *gin.Context) {
	s.seen.Begin(Admin)
	began := wall.Now()
	c.Next()
	operation := c.FullPath()
	if operation == "" {
		operation = "none"
	}
	code := c.Writer.Status()
	s.seen.Done(&observe.Request{API: Admin, Operation: operation, Status: strconv.Itoa(code),
		Failed: code == http.StatusInternalServerError, Left: c.Request.Context().Err() != nil,
		Duration: wall.Now().Sub(began), Client: c.Request.RemoteAddr, Target: c.Request.URL.Path})
}

// recovered turns a panic into a 500 and a log line.
func recovered(log *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		defer func() {
			if v := recover(); v != nil {
				log.Error("A request panicked", "path", c.Request.URL.Path, "panic", v, "stack", string(debug.Stack()))
				c.AbortWithStatus(http.StatusInternalServerError)
			}
		}()
		c.Next()
	}
}

func (s *Server) getAlive(c *gin.Context) { plain(c.Writer, http.StatusOK, "alive\n") }

func (s *Server) getReady(c *gin.Context) {
	if reason := s.unready(); reason != "" {
		plain(c.Writer, http.StatusServiceUnavailable, "not ready: "+reason+"\n")
		return
	}
	plain(c.Writer, http.StatusOK, "ready\n")
}

func (s *Server) getStatus(c *gin.Context) { asJSON(c.Writer, s.status(c.Request.Context())) }

// getConnect returns connection strings. Secrets are included only for clients that send the secret key, and want them.
func (s *Server) getConnect(c *gin.Context) {
	knows := !s.keyIsPublic() && s.hasKey(c.Request)
	switch {
	case knows && c.GetHeader(explorer.HideKey) == "":
		asJSON(c.Writer, s.Connections(true))
	case knows, s.keyIsPublic(), !s.cfg.Auth:
		asJSON(c.Writer, s.publicConnections())
	default:
		s.askForKey(c)
	}
}

func (s *Server) askForKey(c *gin.Context) {
	c.Header("WWW-Authenticate", `Basic realm="orrery"`)
	plain(c.Writer, http.StatusUnauthorized,
		"Send the account key, as a bearer token or as the password of any user.\n")
}

// hasKey reports whether a request contains the account key.
func (s *Server) hasKey(r *http.Request) bool {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		_, key, ok = r.BasicAuth()
	}
	return ok && subtle.ConstantTimeCompare([]byte(key), []byte(s.cfg.Key)) == 1
}

// getProfile serves Go's profiles, only to this machine: they cost time and reveal what the process does.
func (s *Server) getProfile(c *gin.Context) {
	host, _, err := net.SplitHostPort(c.Request.RemoteAddr)
	if err != nil || !loopback(host) || !ownHost(c.Request.Host, s.hostNames()) {
		plain(c.Writer, http.StatusForbidden, "profiles are for this machine only\n")
		return
	}
	switch strings.TrimPrefix(c.Param("profile"), "/") {
	case "profile":
		pprof.Profile(c.Writer, c.Request)
	case "trace":
		pprof.Trace(c.Writer, c.Request)
	default:
		pprof.Index(c.Writer, c.Request)
	}
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}

func asJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
}
