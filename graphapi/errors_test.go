package graphapi

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// One case for each row of the table of failures: the replies for TinkerPop clients and for the service's applications.
// The codes are repeated here on purpose.
var failureCases = map[kind]struct {
	name        string
	err         error
	code        int // for TinkerPop clients
	serviceCode int
	msStatus    float64
	text        string
	serviceText string // "": text
}{
	kindInternal: {"internal", status.Wrap(status.Corruption, fmt.Errorf("secret"), "checksum of block 7"), 500,
		500, 500, "internal error", ""},
	kindMalformed: {"malformed", &message.FormatError{Msg: "GraphSON: no"}, 498, 498, 1004, "GraphSON: no",
		"GraphInterOpStatusCode : MalformedRequest"},
	kindArguments: {"arguments", fail(kindArguments, "no alias"), 499, 498, 1004, "no alias",
		"ExceptionType : GraphMalformedException"},
	kindCompile: {"compile", fail(kindCompile, "bad step"), 597, 597, 1004, "bad step",
		"ExceptionType : GraphCompileException"},
	kindRuntime: {"runtime", status.New(status.BadRequest, "not a number"), 597, 597, 1000, "not a number",
		"ExceptionType : GraphRuntimeException"},
	kindUnsupported: {"unsupported", status.New(status.NotSupported, "no lambdas"), 597, 597, 1004, "no lambdas",
		"GraphInterOpStatusCode : NotSupported"},
	kindTimeout: {"timeout", context.DeadlineExceeded, 598, 598, 1009, "evaluation timeout", ""},
	kindFail: {"fail", &failure{kind: kindFail, msg: "fail() Step Triggered", failMsg: "no"}, 595, 597, 1000,
		"fail() Step Triggered", ""},
	kindMemory: {"memory", fail(kindMemory, "too much"), 500, 500, 1003, "too much", ""},
	kindResult: {"result", fail(kindResult, "a struct"), 599, 599, 1001, "a struct", ""},
	kindBusy: {"busy", &failure{kind: kindBusy}, 429, 500, 429, "too many requests",
		"RequestRateTooLargeException"},
	kindBadLogin: {"login", status.New(status.Unauthorized, "Unauthorized: Invalid credentials provided"), 401,
		401, 401, "Unauthorized: Invalid credentials provided", ""},
	kindForbidden: {"forbidden", status.WithSub(status.Forbidden, 1014, "partition full"), 403, 500, 403,
		"partition full", ""},
	kindNotFound: {"not found", status.New(status.NotFound, "Resource Not Found"), 500, 500, 404,
		"Resource Not Found", ""},
	kindOwnerNotFound: {"owner", status.WithSub(status.NotFound, status.SubOwnerNotFound, "x"), 500, 500, 404,
		"Owner resource does not exist", ""},
	kindConflict: {"conflict", status.New(status.Conflict, "x"), 500, 500, 409, "Resource with specified id or " +
		"name already exists.", ""},
	kindPrecondition: {"precondition", status.New(status.PreconditionFailed, "One of the specified pre-condition is "+
		"not met"), 500, 500, 412, "pre-condition is not met", "PreconditionFailedException"},
	kindTooLarge: {"too large", status.New(status.TooLarge, "2 MB"), 500, 500, 413, "2 MB", ""},
	kindThrottled: {
		"throttled", &status.Error{Code: status.TooManyRequests, Sub: status.SubThrottled,
			RetryAfter: 9053 * time.Millisecond}, 429, 500, 429,
		"Request rate is large", "ExceptionType : DocumentClientException"},
	kindRetryWith:      {"retry", status.New(status.RetryWith, "race"), 596, 500, 449, "race", ""},
	kindUnavailable:    {"unavailable", context.Canceled, 596, 500, 1007, "closing", ""},
	kindUnknownOutcome: {"unknown outcome", status.New(status.UnknownOutcome, "perhaps"), 500, 500, 503, "perhaps", ""},
	kindStoreFull: {"store full", status.New(status.StoreFull, "The disk is full."), 500, 500, 403, "disk is full",
		"ExceptionType : DocumentClientException"},
}

func TestFailures(t *testing.T) {
	s := newServer(t, true)
	tinker, service := s.dial(t), s.dial(t)
	tinker.login("localhost")
	service.login("/dbs/db/colls/people")
	for k := range numKinds {
		x, ok := failureCases[k]
		if !ok {
			t.Errorf("no case for kind %d", k)
			continue
		}
		name := fmt.Sprint(k)
		s.graphs.errs[name] = x.err
		for _, script := range []string{"error " + name, "partial " + name} {
			body := `{"requestId":"` + id1 + `","op":"eval","processor":"","args":{"gremlin":"` + script + `"}}`
			for _, side := range []struct {
				c    *client
				code int
				text string
			}{{tinker, x.code, x.text}, {service, x.serviceCode, x.serviceText}} {
				side.c.send(v2Mime, body)
				if strings.HasPrefix(script, "partial") { // an error after a chunk also ends the request
					side.c.want(206, id1, "")
				}
				a := side.c.want(side.code, id1, side.text)
				if !strings.Contains(a.Status.Message, x.text) || strings.Contains(a.Status.Message, "secret") ||
					string(a.Result.Data) != "null" {
					t.Errorf("%s: text %q data %s", x.name, a.Status.Message, a.Result.Data)
				}
				if got := attribute(t, a, "x-ms-status-code"); got != x.msStatus {
					t.Errorf("%s: x-ms-status-code %v, want %v", x.name, got, x.msStatus)
				}
			}
		}
	}
}

// Gremlin Server answers bytecode that fails as it runs with another code than a script.
func TestBytecodeFailures(t *testing.T) {
	s := newServer(t, true)
	tinker, service := s.dial(t), s.dial(t)
	tinker.login("localhost")
	service.login("/dbs/db/colls/people")
	for k, code := range map[kind]int{kindRuntime: 500, kindUnsupported: 597, kindCompile: 597, kindFail: 595} {
		s.graphs.errs["x"] = failureCases[k].err
		body := `{"requestId":"` + id1 + `","op":"bytecode","processor":"traversal","args":{"gremlin":` +
			`{"@type":"g:Bytecode","@value":{"step":[["error","x"]]}},"aliases":{"g":"g"}}}`
		tinker.send(v2Mime, body)
		tinker.want(code, id1, failureCases[k].text)
		service.send(v2Mime, body)
		service.want(597, id1, failureCases[k].text)
	}
}

// Programs search for the text of TinkerGraph, or for that of the service.
func TestTakenIDs(t *testing.T) {
	f := failureOf(status.New(status.Conflict, "Vertex with id already exists: 1"))
	const service = "Resource with specified id or name already exists."
	if f.text() != "Vertex with id already exists: 1. "+service || f.serviceMsg != service {
		t.Errorf("%+v", f)
	}
}

func TestFailureAttributes(t *testing.T) {
	s := newServer(t, true)
	c := s.dial(t)
	c.login("/dbs/db/colls/people")
	for k, want := range map[kind]string{kindThrottled: `"x-ms-substatus-code":3200,"x-ms-retry-after-ms":"00:00:09.0530000","x-ms-source":"Microsoft.Azure.Documents.Client"`,
		kindFail: `"failStepMessage":"no"`, kindStoreFull: `"x-ms-status-code":403`} {
		s.graphs.errs["x"] = failureCases[k].err
		c.send(v2Mime, `{"requestId":"`+id1+`","op":"eval","args":{"gremlin":"error x"}}`)
		if a := c.recv(); !strings.Contains(string(a.Status.Attributes), want) {
			t.Errorf("%s: %s", failureCases[k].name, a.Status.Attributes)
		}
	}
}

// The service's layout, line by line.
func TestServiceText(t *testing.T) {
	f := &failure{kind: kindCompile, msg: "plain", serviceMsg: "Gremlin Query Compilation Error: Unable to resolve symbol 'c' in the current context. @ line 1, column 2."}
	var activity, request [16]byte
	request[0] = 1
	want := "\r\n\nActivityId : 00000000-0000-0000-0000-000000000000\n" +
		"ExceptionType : GraphCompileException\n" +
		"ExceptionMessage :\r\n\tGremlin Query Compilation Error: Unable to resolve symbol 'c' in the current context. @ line 1, column 2.\n" +
		"Source : Microsoft.Azure.Cosmos.Gremlin.Core\n\tGremlinRequestId : 01000000-0000-0000-0000-000000000000\n\tContext : graphcompute\n" +
		"\tScope : graphparse-translate-outer\n\tGraphInterOpStatusCode : QuerySyntaxError\n\tHResult : 0x80131500\r\n"
	if got := f.serviceText(activity, request); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestEveryCoreCodeHasAKind(t *testing.T) {
	for c := status.Internal; c <= status.Locked; c++ {
		if _, ok := codeKinds[c]; !ok && c != status.NotModified {
			t.Errorf("code %d has no kind", c)
		}
	}
}

func TestTimeSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{9053 * time.Millisecond: "00:00:09.0530000", 100: "00:00:00.0000001", 26*time.Hour + 61*time.Second: "26:01:01.0000000"} {
		if got := timeSpan(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
