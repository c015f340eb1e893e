package mongoshell

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dop251/goja"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// wall is the time and the randomness of ids that scripts make.
var wall = clock.New()

// bind sets the functions of $host, which types.js and db.js call.
func (s *Shell) bind() error {
	s.host = s.vm.NewObject()
	s.vm.SetRandSource(func() float64 { return float64(wall.Int63()>>10) / (1 << 53) })
	s.vm.SetTimeSource(wall.Now)
	process := s.vm.NewObject()
	var err error
	set := func(o *goja.Object, name string, v any) { err = errors.Join(err, o.Set(name, v)) }
	set(process, "env", s.o.Env)
	set(s.vm.GlobalObject(), "process", process)
	for name, v := range map[string]any{
		"database": s.o.Database, "address": s.o.Client.Address(), "version": s.o.Version, "interactive": s.o.Prompt,
		"run":         s.hostRun,
		"login":       func(user, password string) error { return s.o.Client.Login(s.ctx, user, password) },
		"print":       func(text string) error { _, err := fmt.Fprintln(s.o.Out, text); return err },
		"inspect":     func(v goja.Value) string { return s.inspect(v) },
		"sleep":       s.hostSleep,
		"quit":        func(code int) { s.vm.Interrupt(&Quit{code}) },
		"load":        s.hostLoad,
		"newObjectId": newObjectID,
		"newUUID":     func() string { return wall.UUID().String() },
		"decimal": func(text string) (string, error) {
			if d, ok := value.ParseDecimal(text); ok {
				return value.DecimalText(d), nil
			}
			return "", fmt.Errorf("%.50q is no decimal number", text)
		},
		"base64": s.hostBase64,
		"hex": func(text string) (string, error) {
			b, err := base64.StdEncoding.DecodeString(text)
			return hex.EncodeToString(b), err
		},
		"text": func(text string) (string, error) {
			b, err := base64.StdEncoding.DecodeString(text)
			return string(b), err
		},
		"extended": func(v goja.Value, relaxed bool) (string, error) { return s.extended(v, relaxed) },
		"indented": func(text, by string) (string, error) {
			var out bytes.Buffer
			err := json.Indent(&out, []byte(text), "", by)
			return out.String(), err
		},
		"parsed": func(text string) (goja.Value, error) {
			v, err := doc.ValueFromExtJSON([]byte(text))
			if err != nil {
				return nil, err
			}
			return s.toJS(v), nil
		},
	} {
		set(s.host, name, v)
	}
	return err
}

// hostRun sends a command and returns its reply, without what drivers use to order sessions.
func (s *Shell) hostRun(db string, command goja.Value) (goja.Value, error) {
	cmd, err := s.toBSON(command)
	if err != nil {
		return nil, err
	}
	reply, err := s.o.Client.Run(s.ctx, db, cmd)
	if err != nil {
		return nil, err
	}
	o := s.vm.NewObject()
	for it := doc.Value(reply).Iter(); it.Next(); {
		if name := string(it.Key()); name != "$clusterTime" && name != "operationTime" {
			s.set(o, name, s.toJS(it.Value()))
		}
	}
	return o, nil
}

// hostSleep waits some milliseconds, or until the script is cancelled.
func (s *Shell) hostSleep(ms float64) error {
	t := time.NewTimer(time.Duration(min(max(ms, 0), 1e12)) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// hostLoad runs a script of another file.
func (s *Shell) hostLoad(file string) error {
	if s.o.Load == nil {
		return errors.New("load isn't possible here")
	}
	text, err := s.o.Load(file)
	if err != nil {
		return err
	}
	p, err := compile(file, text)
	if err != nil {
		return syntaxError(file, err)
	}
	_, err = s.vm.RunProgram(p)
	return err
}

// hostBase64 returns bytes in base64: those of an array, or of a text in an encoding.
func (s *Shell) hostBase64(v goja.Value, encoding string) (string, error) {
	var b []byte
	var err error
	switch x := v.Export().(type) {
	case []byte:
		b = x
	case goja.ArrayBuffer:
		b = x.Bytes()
	case string:
		switch encoding {
		case "hex":
			b, err = hex.DecodeString(x)
		case "base64":
			b, err = base64.StdEncoding.DecodeString(x)
		default:
			b = []byte(x)
		}
	default:
		err = errors.New("want bytes, or a text")
	}
	return base64.StdEncoding.EncodeToString(b), err
}

// newObjectID returns an ObjectId of a time in seconds; 0 = now.
func newObjectID(seconds uint32) string {
	u := wall.UUID()
	if seconds == 0 {
		seconds = uint32(wall.Now().Unix())
	}
	return hex.EncodeToString(append(binary.BigEndian.AppendUint32(nil, seconds), u[8:]...))
}
