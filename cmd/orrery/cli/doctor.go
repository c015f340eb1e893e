package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/core/clock"
)

// doctorCmd looks for what keeps a server from working, and packs an archive for a report of a fault.
type doctorCmd struct {
	Data, Archive string
	JSON          bool

	until time.Time // when the server's answers aren't waited for any more
}

// doctorPatience is how long the doctor waits for a server altogether. Tests change it.
var doctorPatience = 10 * time.Second

func (d *doctorCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "doctor", Short: "Look for what keeps a server from working: ports, disk, clock, " +
		"certificate.", Args: noArguments, RunE: runs(func() error { return d.run(s) })}
	f := cmd.Flags()
	f.StringVar(&d.Data, "data", "data", "Data `DIR` of the server.")
	f.StringVar(&d.Archive, "archive", "", "`FILE.tar.gz` for a report of a fault: findings, status and metrics, "+
		"without keys and data.")
	f.BoolVar(&d.JSON, "json", false, "Print JSON.")
	return cmd
}

// finding is what one check has found.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"` // ok, note or bad
	Says  string `json:"says"`
}

// The states of findings.
const (
	fine  = "ok"
	noted = "note"
	bad   = "bad"
)

// checks are the checks, in the order in which they are shown. conns is nil if no server runs.
var checks = []struct {
	name string
	find func(d *doctorCmd, conns *server.Connections) (state, says string)
}{
	{"version", func(*doctorCmd, *server.Connections) (string, string) {
		return fine, fmt.Sprintf("orrery %s, %s on %s/%s, %d processors", version(), runtime.Version(), runtime.GOOS,
			runtime.GOARCH, runtime.NumCPU())
	}},
	{"server", (*doctorCmd).serving},
	{"ports", (*doctorCmd).ports},
	{"disk", (*doctorCmd).disk},
	{"clock", (*doctorCmd).clock},
	{"certificate", (*doctorCmd).certificate},
	{"variables", variables},
}

func (d *doctorCmd) run(s *streams) error {
	d.until = clock.New().Now().Add(doctorPatience)
	conns, _ := server.ReadConnections(d.Data)
	var all []finding
	faults := 0
	for _, c := range checks {
		state, says := c.find(d, conns)
		if state == bad {
			faults++
		}
		all = append(all, finding{c.name, state, string(hideKey([]byte(says), conns))})
	}
	if d.Archive != "" {
		if err := d.pack(all, conns); err != nil {
			return err
		}
	}
	if d.JSON {
		if err := printJSON(s.out, all); err != nil {
			return err
		}
	} else {
		for _, f := range all {
			if _, err := fmt.Fprintf(s.out, "%-5s %-12s %s\n", f.State, f.Check, f.Says); err != nil {
				return err
			}
		}
	}
	if faults > 0 {
		return fmt.Errorf("%d of %d checks have found a fault", faults, len(all))
	}
	return nil
}

// serving asks the server whether it is ready.
func (d *doctorCmd) serving(conns *server.Connections) (string, string) {
	switch {
	case conns == nil:
		_, err := server.ReadConnections(d.Data)
		return noted, err.Error()
	case conns.Admin == nil:
		return noted, "the server of " + d.Data + " runs, and has no admin port to ask"
	}
	text, code, _, err := d.get(conns.Admin.Endpoint + "ready")
	for err == nil && code != http.StatusOK && d.until.Sub(clock.New().Now()) > doctorPatience/2 {
		time.Sleep(100 * time.Millisecond) // it may have just started
		text, code, _, err = d.get(conns.Admin.Endpoint + "ready")
	}
	switch {
	case err != nil:
		return bad, "the admin port doesn't answer: " + err.Error()
	case code != http.StatusOK:
		return bad, "the server is not ready: " + shown(hideKey(text, conns))
	}
	return fine, "the server of " + d.Data + " is ready"
}

// shown returns the beginning of a reply as one line without control characters, which could move a terminal's cursor.
func shown(text []byte) string {
	const most = 300
	line, _, _ := strings.Cut(strings.TrimSpace(string(text[:min(len(text), most)])), "\n")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '.'
		}
		return r
	}, line)
}

// get reads a URL of the server, in five seconds at most and not later than until. It follows no redirect.
func (d *doctorCmd) get(url string) (text []byte, code int, date time.Time, err error) {
	left := min(d.until.Sub(clock.New().Now()), 5*time.Second)
	if left <= 0 {
		return nil, 0, date, fmt.Errorf("%s was not asked: the server was waited for too long", url)
	}
	res, err := door.Client(left).Get(url)
	if err != nil {
		return nil, 0, date, err
	}
	defer res.Body.Close()
	text, err = io.ReadAll(io.LimitReader(res.Body, 16<<20))
	date, _ = http.ParseTime(res.Header.Get("Date"))
	return text, res.StatusCode, date, err
}

// ports tries to listen on the default ports, if no server runs.
func (d *doctorCmd) ports(conns *server.Connections) (string, string) {
	if conns != nil {
		return fine, "the server listens on " + strings.Join(conns.Addresses, ", ")
	}
	return d.free(server.Default())
}

// free tries to listen on the ports of c.
func (d *doctorCmd) free(c server.Config) (string, string) {
	var taken []string
	for _, addr := range []string{c.NoSQLAddr, c.GremlinAddr, c.TableAddr, c.MongoAddr, c.AdminAddr} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			taken = append(taken, addr)
			continue
		}
		_ = l.Close()
	}
	if len(taken) > 0 {
		ctx, stop := context.WithDeadline(context.Background(), d.until)
		defer stop()
		if conns, err := server.AskForConnections(ctx, "http://"+c.AdminAddr); err == nil {
			return noted, "a server of other data (" + shown([]byte(conns.Data)) + ") has " + strings.Join(taken, ", ")
		}
		return bad, "another program has " + strings.Join(taken, ", ") + ": stop it, or give other addresses " +
			"(--nosql-addr and its kin)"
	}
	return fine, "the default ports are free"
}

// disk looks at the room on the disk of the data directory.
func (d *doctorCmd) disk(*server.Connections) (string, string) {
	dir := d.Data
	for {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		abs, err := filepath.Abs(dir)
		if err != nil || filepath.Dir(abs) == abs {
			return noted, "the directory can't be looked at"
		}
		dir = filepath.Dir(abs)
	}
	free, total, err := diskRoom(dir)
	if err != nil || total == 0 {
		return noted, "the room on the disk isn't known"
	}
	says := fmt.Sprintf("%s of %s are free on the disk of %s", size(free), size(total), d.Data)
	const least = 512 << 20 // twice what --min-free keeps
	if free < least {
		return bad, says + ": new data will be refused soon"
	}
	f, err := os.CreateTemp(dir, ".orrery-doctor-*")
	if err != nil {
		return bad, "nothing can be written to " + dir
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	return fine, says
}

// clock compares this process's time with the server's, and with what is possible. Signatures are good for 15 minutes.
func (d *doctorCmd) clock(conns *server.Connections) (string, string) {
	now := clock.New().Now()
	if info, err := os.Stat(d.Data); err == nil && info.ModTime().After(now.Add(time.Hour)) {
		return bad,
			fmt.Sprintf("the data directory was changed at %s, which is in the future: the clock (%s) is behind",
				info.ModTime().UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if conns != nil && conns.NoSQL != nil {
		_, _, date, err := d.get(conns.NoSQL.Endpoint)
		if err == nil && !date.IsZero() {
			if off := now.Sub(date).Abs(); off > 10*time.Minute {
				return bad, fmt.Sprintf("the server's clock is off by %v: signatures of requests will be refused", off)
			}
			return fine, now.UTC().Format(time.RFC3339) + ", as the server's"
		}
	}
	return fine, now.UTC().Format(time.RFC3339)
}

// certificate looks at the certificate in the data directory.
func (d *doctorCmd) certificate(*server.Connections) (string, string) {
	c := certCmd{Data: d.Data}
	_, cert, err := c.read()
	if err != nil {
		return noted, err.Error()
	}
	now := clock.New().Now()
	switch until := cert.NotAfter.Format(time.DateOnly); {
	case now.After(cert.NotAfter):
		return bad, "the certificate has expired on " + until + ": restart the server, which makes another"
	case now.Before(cert.NotBefore):
		return bad, "the certificate isn't valid yet: the clock is behind"
	default:
		return fine, "valid until " + until + " for " + strings.Join(cert.DNSNames, ", ")
	}
}

// variables names the variables that change a server. Their values may be secret.
func variables(*doctorCmd, *server.Connections) (string, string) {
	var names []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "ORRERY_") || name == "GOGC" || name == "GOMEMLIMIT" || name == "GOMAXPROCS" {
			names = append(names, name)
		}
	}
	if slices.Sort(names); len(names) == 0 {
		return fine, "none is set"
	}
	return noted, "set: " + strings.Join(names, ", ")
}

// pack writes the archive. Whatever has the key of the server is left out of it, in every form in which keys are
// written.
func (d *doctorCmd) pack(all []finding, conns *server.Connections) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	files := []struct {
		name string
		text []byte
	}{{"findings.json", text}}
	if conns != nil && conns.Admin != nil {
		for _, page := range []string{"status", "metrics"} {
			if text, _, _, err := d.get(conns.Admin.Endpoint + page); err == nil {
				files = append(files, struct {
					name string
					text []byte
				}{page, text})
			}
		}
	}
	f, err := os.OpenFile(d.Archive, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	t := tar.NewWriter(z)
	for _, file := range files {
		b := hideKey(file.text, conns)
		err = errors.Join(err, t.WriteHeader(&tar.Header{Name: "orrery-doctor/" + file.name, Mode: 0o600,
			Size: int64(len(b)), ModTime: clock.New().Now()}))
		if err == nil {
			_, err = t.Write(b)
		}
	}
	return errors.Join(err, t.Close(), z.Close(), f.Close())
}

// hideKey replaces the key in a text.
func hideKey(text []byte, conns *server.Connections) []byte {
	if conns == nil || conns.Key == "" {
		return text
	}
	quoted, err := json.Marshal(conns.Key)
	if err == nil {
		text = bytes.ReplaceAll(text, quoted[1:len(quoted)-1], []byte("<key>"))
	}
	for _, form := range []string{conns.Key, url.QueryEscape(conns.Key), url.PathEscape(conns.Key)} {
		text = bytes.ReplaceAll(text, []byte(form), []byte("<key>"))
	}
	return text
}
