package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// A client that begins with HTTP/2 is told in HTTP/2 to use HTTP/1.1, however much it sends before it reads.
func TestHTTP2WithoutAsking(t *testing.T) {
	s := guardedServer(t, func(c *Config) { c.Auth = true })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CertificatePEM())
	const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	const window = "\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\xff\xff"
	for _, door := range []string{NoSQL, Table, Gremlin, Admin} {
		for _, secure := range []bool{false, true} {
			for _, more := range []int{0, 1000} {
				c, err := net.Dial("tcp", s.Addr(door))
				if err == nil && secure {
					c = tls.Client(c, &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"h2"}})
				}
				if err != nil {
					t.Fatal(err)
				}
				_ = c.SetDeadline(time.Now().Add(10 * time.Second))
				first := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + strings.Repeat(window, more)
				if _, err := io.WriteString(c, first); err != nil {
					t.Fatal(door, secure, err)
				}
				got, err := io.ReadAll(c)
				// SETTINGS, then GOAWAY with the last stream 0 and the error 13.
				const want = "000000040000000000" + "000008070000000000" + "00000000" + "0000000d"
				if hex.EncodeToString(got) != want || err != nil {
					t.Errorf("%s, TLS %v, %d frames more: %x, %v", door, secure, more, got, err)
				}
				_ = c.Close()
			}
		}
	}
}
