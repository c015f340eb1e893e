package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/tikvkv"
	"github.com/orrerydb/orrery/core/kv/tikvkv/tikvtest"
)

// doors are the addresses of the four APIs of a server, which asks for no credentials: name to host:port.
type doors map[string]string

// rest sends a request to the NoSQL or the Table API and returns the body of the reply.
func (d doors) rest(t *testing.T, api, method, path, body string, header ...string) string {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+d[api]+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if api == server.NoSQL {
		req.Header.Set("x-ms-version", "2018-12-31")
	} else {
		req.Header.Set("Accept", "application/json;odata=nometadata")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %s, %v", method, path, res.Status, text, err)
	}
	return string(text)
}

// mongo sends one command as an OP_MSG and returns the reply as JSON.
func (d doors) mongo(t *testing.T, command string) string {
	t.Helper()
	body, err := doc.FromExtJSON(nil, []byte(command))
	if err != nil {
		t.Fatal(err)
	}
	const head, opMsg = 16 + 4 + 1, 2013 // the header, flags, and the kind of the section
	msg := make([]byte, head, head+len(body))
	binary.LittleEndian.PutUint32(msg, uint32(head+len(body)))
	binary.LittleEndian.PutUint32(msg[12:], opMsg)
	c, err := net.DialTimeout("tcp", d[server.Mongo], 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write(append(msg, body...)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, msg[:4]); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, binary.LittleEndian.Uint32(msg)-4)
	if _, err := io.ReadFull(c, reply); err != nil {
		t.Fatal(err)
	}
	text := string(doc.AppendJSON(nil, doc.Value(doc.Doc(reply[head-4:]))))
	if !strings.Contains(text, `"ok":1`) || strings.Contains(text, "writeErrors") {
		t.Fatalf("%s: %s", command, text)
	}
	return text
}

// gremlin runs a script on the graph g/g and returns the result as JSON.
func (d doors) gremlin(t *testing.T, script string) string {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial("ws://"+d[server.Gremlin]+"/gremlin", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	const mime = "application/json"
	ask := fmt.Sprintf(`{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","op":"eval","processor":"","args":`+
		`{"gremlin":%q,"language":"gremlin-groovy","aliases":{"g":"g"}}}`, script)
	if err := c.WriteMessage(websocket.BinaryMessage, append([]byte{byte(len(mime))}, mime+ask...)); err != nil {
		t.Fatal(err)
	}
	_, reply, err := c.ReadMessage()
	if err != nil || !bytes.Contains(reply, []byte(`"code":200`)) {
		t.Fatalf("%s: %s, %v", script, reply, err)
	}
	return string(reply)
}

// crossing writes one item through each API of a server, and reads all of them through each API of another one. The
// items are in the graph that every server has.
func crossing(t *testing.T, a, b doors) {
	t.Helper()
	const docs = "/dbs/graphs/colls/g/docs"
	a.rest(t, server.NoSQL, "POST", docs, `{"id":"by-nosql","label":"thing","_partitionKey":"by-nosql"}`,
		"x-ms-documentdb-partitionkey", `["by-nosql"]`)
	a.rest(t, server.Table, "POST", "/graphs.g", `{"PartitionKey":"by-table","RowKey":"by-table","label":"thing"}`)
	a.mongo(t, `{"insert":"g","documents":[{"_id":"by-mongo","_partitionKey":"by-mongo","label":"thing"}],`+
		`"$db":"graphs"}`)
	a.gremlin(t, "g.addV('thing').property(id, 'by-gremlin').count()")
	for api, text := range map[string]string{
		"NoSQL":   b.rest(t, server.NoSQL, "GET", docs, ""),
		"Table":   b.rest(t, server.Table, "GET", "/graphs.g()", ""),
		"MongoDB": b.mongo(t, `{"find":"g","filter":{},"$db":"graphs"}`),
		"Gremlin": b.gremlin(t, "g.V().id()"),
	} {
		for _, id := range []string{"by-nosql", "by-table", "by-mongo", "by-gremlin"} {
			if !strings.Contains(text, `"`+id+`"`) {
				t.Errorf("%s of the other server doesn't show %s: %s", api, id, text)
			}
		}
	}
}

// simulatedDoors starts a server over a simulated cluster.
func simulatedDoors(t *testing.T, c *tikvtest.Cluster) doors {
	cfg := server.Ephemeral()
	cfg.Memory, cfg.Engine, cfg.Engines = false, "tikv://pd:1/main", []server.EngineKind{simulation(c)}
	cfg.Auth, cfg.Logger = false, slog.New(slog.DiscardHandler)
	s, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(bg, 20*time.Second)
		defer cancel()
		if problems, err := s.Engine().Check(ctx); err != nil || len(problems) > 0 {
			t.Errorf("check: %q, %v", problems, err)
		}
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(bg, 20*time.Second)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	d := doors{}
	for _, api := range []string{server.NoSQL, server.Table, server.Gremlin, server.Mongo} {
		d[api] = s.Addr(api)
	}
	return d
}

// Two servers over one simulated cluster: what the APIs of one write, those of the other read.
func TestDoorsOverASimulation(t *testing.T) {
	c := tikvtest.New(t)
	a := simulatedDoors(t, c)
	crossing(t, a, simulatedDoors(t, c))
}

// process is a running orrery-tikv.
type process struct {
	cmd    *exec.Cmd
	log    bytes.Buffer
	doors  doors
	status string // the address of /status
}

// launch starts the binary over the store at an address and returns when every API answers.
func launch(t *testing.T, address string) *process {
	t.Helper()
	p := &process{cmd: orrery("main", "serve", "--engine", address, "--auth=false", "--nosql-addr", "127.0.0.1:0",
		"--table-addr", "127.0.0.1:0", "--gremlin-addr", "127.0.0.1:0", "--mongo-addr", "127.0.0.1:0", "--admin-addr",
		"127.0.0.1:0"), doors: doors{}}
	p.cmd.Stderr = &p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	admin := ""
	for lines := bufio.NewScanner(out); lines.Scan() && admin == ""; {
		if f := strings.Fields(lines.Text()); len(f) > 1 && f[0] == "Admin" {
			admin, _, _ = strings.Cut(f[1], "{")
		}
	}
	if admin == "" {
		_ = p.cmd.Wait()
		t.Fatal(p.log.String())
	}
	go io.Copy(io.Discard, out)
	p.status = admin + "status"
	var st server.Status
	for end := time.Now().Add(20 * time.Second); !st.Ready; time.Sleep(10 * time.Millisecond) {
		if st = p.ask(t); time.Now().After(end) {
			t.Fatal("never ready")
		}
	}
	for api, d := range st.APIs {
		p.doors[api] = d.Addr
	}
	return p
}

// ask returns the status of a process.
func (p *process) ask(t *testing.T) (st server.Status) {
	t.Helper()
	res, err := http.Get(p.status)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&st); err != nil {
		t.Fatal(err)
	}
	return st
}

// Two processes have one store in a cluster. One of them is killed, the other one goes on, and ends with status 0. The
// store is clean then. ORRERY_TEST_PD has the Placement Drivers of the cluster.
func TestProcessesOnACluster(t *testing.T) {
	members := os.Getenv("ORRERY_TEST_PD")
	if members == "" {
		t.Skip("there is no cluster: ORRERY_TEST_PD")
	}
	address := fmt.Sprintf("tikv://%s/door-%d?commit=2pc", members, time.Now().UnixNano())
	t.Cleanup(func() { empty(t, address) })
	a, b := launch(t, address), launch(t, address)
	crossing(t, a.doors, b.doors)
	shown, _, _ := strings.Cut(address, "?")
	if st := b.ask(t); st.Engine != "tikv" || st.Data != shown || len(st.Upkeep) == 0 || len(st.Leases) == 0 {
		t.Errorf("status: %s at %s, chores %v, leases %v", st.Engine, st.Data, st.Upkeep, st.Leases)
	}
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	b.writes(t)
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, b.log.String())
	}
	out, err := orrery("main", "check", "--engine", address).CombinedOutput()
	if err != nil || !strings.Contains(string(out), ": clean, 1 containers with 5 items") {
		t.Errorf("check: %v: %s", err, out)
	}
}

// writes writes one more item.
func (p *process) writes(t *testing.T) {
	p.doors.rest(t, server.NoSQL, "POST", "/dbs/graphs/colls/g/docs",
		`{"id":"later","label":"thing","_partitionKey":"later"}`, "x-ms-documentdb-partitionkey", `["later"]`)
}

// empty removes the keys of a store.
func empty(t *testing.T, address string) {
	e, err := tikvkv.Open(bg, address, tikvkv.Options{})
	if err == nil {
		err = errors.Join(e.DropRange(bg, []byte{0}, []byte{0xff}), e.Close())
	}
	if err != nil {
		t.Error(err)
	}
}
