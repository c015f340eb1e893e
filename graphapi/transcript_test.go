package graphapi

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/gorilla/websocket"
)

var (
	times    = regexp.MustCompile(`("x-ms-(?:total-)?server-time-ms"[:,](?:\{"@type":"g:Double","@value":)?)[0-9.E-]+`)
	activity = regexp.MustCompile(`("x-ms-activity-id"[:,]")[0-9a-f-]{36}|(ActivityId : )[0-9a-f-]{36}`)
)

// TestTranscripts replays conversations byte by byte as a client would see them, except for times and activity ids.
//
//	connect [auth]            opens a connection to a new server
//	send mime=M               sends the input as one binary frame; prints the replies up to the first that isn't 206
//	text                      the same as a text frame
//	hex mime=M                the same, with the input in hex
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		var c *client
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			body := []byte(strings.ReplaceAll(d.Input, "\n", ""))
			var mime string
			d.MaybeScanArgs(t, "mime", &mime)
			switch d.Cmd {
			case "connect":
				c = newServer(t, d.HasArg("auth")).dial(t)
				return ""
			case "text":
				c.ws.WriteMessage(websocket.TextMessage, body)
			case "hex":
				var err error
				if body, err = hex.DecodeString(strings.ReplaceAll(string(body), " ", "")); err != nil {
					t.Fatal(err)
				}
				fallthrough
			case "send":
				c.raw(append(append([]byte{byte(len(mime))}, mime...), body...))
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			return c.answers(t)
		})
	})
}

// answers reads replies until one that isn't partial.
func (c *client) answers(t *testing.T) string {
	var b strings.Builder
	for {
		c.ws.SetReadDeadline(time.Now().Add(10 * time.Second))
		typ, m, err := c.ws.ReadMessage()
		if err != nil {
			fmt.Fprintf(&b, "closed: %v\n", err)
			return b.String()
		}
		if m[0] == 0x81 {
			fmt.Fprintf(&b, "binary %x\n", m)
			return b.String()
		}
		text := times.ReplaceAllString(string(m), "${1}0.0")
		text = activity.ReplaceAllString(text, "${1}${2}ACTIVITY")
		fmt.Fprintf(&b, "%s %s\n", map[int]string{
			websocket.TextMessage: "text", websocket.BinaryMessage: "binary"}[typ], text)
		if !strings.Contains(text, `"code":206`) {
			return b.String()
		}
	}
}
