package batch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestParse runs testdata/parse. Line ends of the input become CRLF (LF with lf); the boundary is "b".
func TestParse(t *testing.T) {
	datadriven.RunTest(t, "testdata/parse", func(t *testing.T, d *datadriven.TestData) string {
		ctype := "multipart/mixed; boundary=b"
		body := strings.ReplaceAll(d.Input, "~", "") // "~" marks blank lines, which the script can't contain
		if !d.HasArg("lf") {
			body = strings.ReplaceAll(body, "\n", "\r\n")
		}
		if d.HasArg("type") {
			ctype = strings.Join(d.CmdArgs[0].Vals, ";")
		}
		r, err := Parse(ctype, []byte(body))
		if err != nil {
			return "error: " + err.Error()
		}
		var out strings.Builder
		fmt.Fprintf(&out, "query=%v\n", r.IsQuery)
		for _, o := range r.Ops {
			fmt.Fprintf(&out, "%s %s id=%q if-match=%q body=%s\n", o.Method, o.URI, o.ContentID,
				o.Get("if-match"), o.Body)
		}
		return out.String()
	})
}

func TestLimits(t *testing.T) {
	part := "--c\r\nContent-Type: application/http\r\n\r\nDELETE /t HTTP/1.1\r\n\r\n"
	body := func(n int) []byte {
		return []byte("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + strings.Repeat(part, n) +
			"--c--\r\n--b--\r\n")
	}
	if r, err := Parse("multipart/mixed;boundary=b", body(100)); err != nil || len(r.Ops) != 100 {
		t.Errorf("100 operations: %v", err)
	}
	if _, err := Parse("multipart/mixed;boundary=b", body(101)); err == nil {
		t.Error("101 operations: no error")
	}
}

func TestWriter(t *testing.T) {
	var w Writer
	w.Begin("1", true)
	w.Part("204 No Content", "7")
	w.Header("ETag", "x")
	w.Body(nil)
	w.End()
	want := strings.ReplaceAll(`--batchresponse_1
Content-Type: multipart/mixed; boundary=changesetresponse_1

--changesetresponse_1
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
Content-ID: 7
ETag: x


--changesetresponse_1--
--batchresponse_1--
`, "\n", "\r\n")
	if got := string(w.Buf); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := w.ContentType(); got != "multipart/mixed; boundary=batchresponse_1" {
		t.Error(got)
	}
}

// FuzzParse: Parse doesn't panic on any input, and accepts only input within the limits.
func FuzzParse(f *testing.F) {
	f.Add("multipart/mixed; boundary=b", []byte("--b\r\nContent-Type: multipart/mixed; "+
		"boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\nPOST /t HTTP/1.1\r\n\r\n{}\r\n--c--\r\n--b--\r\n"))
	f.Add(`multipart/mixed; boundary="b"`, []byte("--b\nContent-Type: application/http\n\nGET /t HTTP/1.1\n\n--b--"))
	f.Fuzz(func(t *testing.T, ctype string, body []byte) {
		r, err := Parse(ctype, body)
		if err == nil && (len(r.Ops) == 0 || len(r.Ops) > maxOperations) {
			t.Fatalf("%d operations", len(r.Ops))
		}
	})
}
