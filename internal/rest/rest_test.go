package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/admit"
)

// thing is the call type of a door, and fake is that door.
type thing struct {
	Call
	failed error
}

func (c *thing) Fail(err error) {
	c.failed = err
	c.Out = append(c.Out[:0], status.From(err).Msg...)
	c.Send(map[status.Code]int{status.TooLarge: 413, status.Timeout: 408, status.BadRequest: 400, status.NotFound: 404,
		status.TooManyRequests: 429, status.Internal: 500}[status.CodeOf(err)], nil)
}

type fake struct {
	*gin.Engine
	door *Door
	last *thing
	log  bytes.Buffer
}

func newFake() *fake {
	f := &fake{Engine: NewRouter()}
	f.door = NewDoor(Options{API: "things", Clock: clock.New(), Log: slog.New(slog.NewTextHandler(&f.log, nil))})
	f.Use(func(g *gin.Context) {
		f.last = &thing{}
		f.last.Begin(f.door, g)
		g.Writer = f.last
		g.Next()
	}, RequestID("X-Id"), f.door.Observed, f.door.Recovered, f.door.Failed, f.door.Limited)
	f.NoRoute(Handle(func(*thing) error { return status.New(status.NotFound, "no such path") }))
	return f
}

func (f *fake) do(method, target string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, body)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// unsized hides the length of a body, so it is sent in chunks.
type unsized struct{ io.Reader }

func TestReadBody(t *testing.T) {
	const limit = 200 << 10
	f := newFake()
	f.POST("/", Handle(func(c *thing) error {
		if err := c.ReadBody(limit); err != nil {
			return err
		}
		c.Out = append(c.Out[:0], strconv.Itoa(len(c.Body))+" "+strconv.Itoa(bytes.Count(c.Body, []byte("x")))...)
		c.Send(200, nil)
		return nil
	}))
	for _, n := range []int{0, 1, 511, 512, firstRead - 1, firstRead, firstRead + 1, limit - 1, limit, limit + 1,
		3 * limit} {
		for _, sized := range []bool{true, false} {
			var body io.Reader = strings.NewReader(strings.Repeat("x", n))
			if !sized {
				body = unsized{body}
			}
			w := f.do("POST", "/", body)
			want := strconv.Itoa(n) + " " + strconv.Itoa(n)
			if n > limit {
				want = "Request size is too large"
			}
			if (w.Code == 200) != (n <= limit) || w.Body.String() != want {
				t.Errorf("%d bytes, length known: %v: %d %s", n, sized, w.Code, w.Body)
			}
		}
	}
	if w := f.do("POST", "/", unsized{io.MultiReader(strings.NewReader("x"), broken{})}); w.Code != 400 {
		t.Errorf("a broken body: %d %s", w.Code, w.Body)
	}
}

// A chunked body holds only the memory that it needs once it has been read.
func TestSmallChunkedBodiesHoldLittle(t *testing.T) {
	const limit = 4 << 20
	f := newFake()
	f.door.Budget = budget.New(2*limit, 0)
	var during int64
	f.POST("/", Handle(func(c *thing) error {
		if err := c.ReadBody(limit); err != nil {
			return err
		}
		during = f.door.Budget.Used()
		c.Send(200, nil)
		return nil
	}))
	if w := f.do("POST", "/", unsized{strings.NewReader("small")}); w.Code != 200 || during == 0 || during > limit/16 {
		t.Errorf("%d, %d bytes are held", w.Code, during)
	}
}

// broken is a body whose client has disconnected.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestRecovered(t *testing.T) {
	f := newFake()
	f.GET("/before", Handle(func(c *thing) error {
		c.Set("x-half", "made")
		panic("early")
	}))
	f.GET("/after", Handle(func(c *thing) error {
		c.Send(200, nil)
		panic("late")
	}))
	f.GET("/abort", Handle(func(*thing) error { panic(http.ErrAbortHandler) }))
	if w := f.do("GET", "/before", nil); w.Code != 500 || w.Header().Get("x-half") != "" || !Panicked(f.last.failed) ||
		!strings.Contains(f.log.String(), "early") || strings.Contains(w.Body.String(), "early") {
		t.Errorf("%d %v %s", w.Code, w.Header(), f.log.String())
	}
	for _, path := range []string{"/after", "/abort"} {
		func() {
			defer func() {
				if v := recover(); v != http.ErrAbortHandler {
					t.Errorf("%s: %v", path, v)
				}
			}()
			f.do("GET", path, nil)
			t.Errorf("%s: the connection goes on", path)
		}()
	}
	if !strings.Contains(f.log.String(), "late") {
		t.Error("a late panic isn't logged")
	}
}

func TestRequestID(t *testing.T) {
	const own = "01234567-89ab-cdef-0123-456789ABCDEF"
	f := newFake()
	f.GET("/", Handle(func(c *thing) error { c.Send(204, nil); return nil }))
	seen := map[string]bool{}
	for _, given := range []string{"", "", own[:35], own + "0", strings.Replace(own, "-", "+", 1), own} {
		f.do("GET", "/", nil, "X-Id", given)
		id := string(f.last.ID[:])
		if !IsGUID(id) || (id == own) != (given == own) || seen[id] {
			t.Errorf("%q: %q", given, id)
		}
		seen[id] = true
	}
}

// An error of a middleware is answered by the door's Fail, also where there is no route.
func TestFailed(t *testing.T) {
	f := newFake()
	f.GET("/bad", Handle(func(*thing) error { return status.New(status.BadRequest, "bad") }))
	for path, code := range map[string]int{"/bad": 400, "/none": 404} {
		if w := f.do("GET", path, nil); w.Code != code || f.last.Err() == nil {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if e := Status(context.Canceled); e.Code != status.Timeout || !errors.Is(e, context.Canceled) {
		t.Error(e)
	}
	if e := Status(status.Wrap(status.UnknownOutcome, context.DeadlineExceeded, "x")); e.Code != status.UnknownOutcome {
		t.Error(e)
	}
}

// A client that sends its body slowly occupies no place at the gate, with any method, even if the body is refused.
func TestBodiesComeBeforeTheGate(t *testing.T) {
	const limit = 1 << 10
	for _, verb := range []string{"POST", "PUT", "PATCH", "MERGE"} {
		for _, size := range []int64{-1, 2, limit + 1} {
			f := &fake{Engine: NewRouter()}
			log := slog.New(slog.NewTextHandler(&f.log, nil))
			gate := admit.New(admit.Options{Running: 1, Wait: time.Millisecond})
			f.door = NewDoor(Options{API: "things", Clock: clock.New(), Log: log, MaxBody: limit, Gate: gate})
			f.Use(func(g *gin.Context) {
				c := &thing{}
				c.Begin(f.door, g)
				g.Writer = c
				g.Next()
				c.End()
			}, f.door.Failed, f.door.Limited)
			for _, v := range []string{verb, "GET"} {
				f.Handle(v, "/", Handle(func(c *thing) error {
					if err := c.ReadBody(limit); err != nil && v != "GET" {
						return err
					}
					c.Send(200, nil)
					return nil
				}))
			}
			in, out := io.Pipe()
			r := httptest.NewRequest(verb, "/", in)
			r.ContentLength = size
			w, done := httptest.NewRecorder(), make(chan bool)
			go func() {
				f.ServeHTTP(w, r)
				close(done)
			}()
			_, _ = out.Write([]byte("x")) // the body is being read
			if w := f.do("GET", "/", nil); w.Code != 200 {
				t.Errorf("%s of %d bytes keeps another waiting: %d", verb, size, w.Code)
			}
			_, _ = out.Write([]byte("y"))
			_ = out.Close()
			<-done
			want := 200
			if size > limit {
				want = 413
			}
			if w.Code != want {
				t.Errorf("%s of %d bytes: %d", verb, size, w.Code)
			}
		}
	}
}
