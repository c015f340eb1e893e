package rest

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/observe"
)

type nobody struct{ h http.Header }

func (w nobody) Header() http.Header         { return w.h }
func (w nobody) Write(b []byte) (int, error) { return len(b), nil }
func (w nobody) WriteHeader(int)             {}

// BenchmarkMiddlewares measures the cost of each middleware: each line has one more than the line before. The first is
// net/http's call of a handler alone.
func BenchmarkMiddlewares(b *testing.B) {
	c := &thing{}
	door :=
		NewDoor(Options{API: "things", Clock: clock.New(), Log: slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))})
	watched := NewDoor(Options{API: "things", Clock: clock.New(), Log: door.Log, Observe: observe.None{}})
	gated :=
		NewDoor(Options{API: "things", Clock: clock.New(), Log: door.Log, Gate: admit.New(admit.Options{Running: 8})})
	timed := NewDoor(Options{API: "things", Clock: clock.New(), Log: door.Log, MaxTime: time.Minute, Gate: gated.Gate})
	begin := func(g *gin.Context) {
		c.Begin(door, g)
		g.Writer = c
		g.Next()
		c.End()
	}
	var chain []gin.HandlerFunc
	r := &http.Request{Method: "GET", Header: http.Header{}, URL: &url.URL{Path: "/dbs/db/colls/c/docs/1"}}
	run := func(name string, h http.Handler) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			w := nobody{http.Header{}}
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
	router := func(more ...gin.HandlerFunc) http.Handler {
		chain = append(chain, more...)
		g := NewRouter()
		g.Use(chain...)
		for _, p := range []string{"/", "/dbs", "/dbs/:db", "/dbs/:db/colls", "/dbs/:db/colls/:coll",
			"/dbs/:db/colls/:coll/docs", "/dbs/:db/colls/:coll/docs/:id",
			"/dbs/:db/colls/:coll/pkranges", "/dbs/:db/users/:user", "/offers", "/offers/:id"} {
			g.GET(p, func(*gin.Context) {})
		}
		return g
	}
	run("none", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	run("router", router())
	run("begin", router(begin))
	run("request id", router(RequestID("X-Id")))
	run("observed, by nobody", router(door.Observed))
	run("recovered", router(door.Recovered))
	run("failed", router(door.Failed))
	run("limited, without limits", router(door.Limited))
	without := chain[:len(chain)-1]
	chain = append(without[:len(without):len(without)], gated.Limited)
	run("limited, gate", router())
	chain = append(without[:len(without):len(without)], timed.Limited)
	run("limited, gate and time", router())
	chain = []gin.HandlerFunc{func(g *gin.Context) {
		c.Begin(watched, g)
		g.Writer = c
		g.Next()
		c.End()
	}, RequestID("X-Id"), watched.Observed, watched.Recovered, watched.Failed, watched.Limited}
	run("observed, by somebody, without limits", router())
}
