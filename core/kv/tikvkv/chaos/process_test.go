//go:build unix

package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// startProcess starts a worker.
func startProcess(t *testing.T, address string, number int) *process {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(self), t: t}
	p.Env = append(os.Environ(), workerEnv+"="+address, fmt.Sprint(numberEnv, "=", number))
	p.Stdout, p.Stderr = &p.output, &p.errors
	if p.input, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

func (p *process) signal(s os.Signal) {
	if err := p.Process.Signal(s); err != nil {
		p.t.Error(err)
	}
}

func (p *process) pause() {
	p.pauses = append(p.pauses, fault{from: time.Now()})
	p.signal(syscall.SIGSTOP)
}

func (p *process) resume() {
	p.signal(syscall.SIGCONT)
	p.pauses[len(p.pauses)-1].to = time.Now()
}

func (p *process) kill() {
	p.ended = time.Now()
	p.signal(syscall.SIGKILL)
	_ = p.Wait()
	p.read()
}

// end tells the process to end, and waits for it. None of its operations may last much longer than their deadline.
func (p *process) end() {
	p.ended = time.Now()
	_ = p.input.Close()
	late := time.AfterFunc(3*deadline, func() {
		p.t.Error("a process doesn't end")
		_ = p.Process.Signal(syscall.SIGQUIT)
	})
	if err := p.Wait(); err != nil {
		p.t.Errorf("a process: %v %s", err, p.errors.String())
	}
	late.Stop()
	p.read()
}

// read reads the events. Of a killed process the last line may be a part.
func (p *process) read() {
	for line := range bytes.Lines(p.output.Bytes()) {
		var e event
		if json.Unmarshal(line, &e) == nil {
			p.events = append(p.events, e)
		}
	}
}
