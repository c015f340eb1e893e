package tikvkv

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pingcap/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The client writes to one logger of the process, much of it about what it repeats and gets right. Here only its errors
// are passed on.

// The client asks for a timestamp every 250 ms and logs each failure: a Placement Driver that is away for an hour would
// be 14,400 lines. So of equal texts only the first ones in each repeatTime are passed on.
const (
	repeatTime = 10 * time.Second
	repeats    = 2
)

// target is where errors of the client go; nil: nowhere.
var target atomic.Pointer[slog.Logger]

// replaceLogger replaces the client's logger, once.
var replaceLogger = sync.OnceFunc(func() {
	core := zapcore.NewSamplerWithOptions(toSlog{}, repeatTime, repeats, 0)
	log.ReplaceGlobals(zap.New(core), &log.ZapProperties{Core: core, Level: zap.NewAtomicLevelAt(zapcore.ErrorLevel)})
	// The part that reads the safe point makes a logger of its own, and this variable is its only setting.
	const etcd = "ETCD_CLIENT_DEBUG"
	if _, set := os.LookupEnv(etcd); !set {
		_ = os.Setenv(etcd, "fatal")
	}
})

// toSlog is a zapcore.Core that passes errors on.
type toSlog struct{ fields []zapcore.Field }

// Enabled implements zapcore.Core.
func (toSlog) Enabled(l zapcore.Level) bool { return l >= zapcore.ErrorLevel && target.Load() != nil }

// With implements zapcore.Core.
func (c toSlog) With(f []zapcore.Field) zapcore.Core {
	return toSlog{append(c.fields[:len(c.fields):len(c.fields)], f...)}
}

// Check implements zapcore.Core.
func (c toSlog) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write implements zapcore.Core.
func (c toSlog) Write(e zapcore.Entry, f []zapcore.Field) error {
	to := target.Load()
	if to == nil {
		return nil
	}
	values := zapcore.NewMapObjectEncoder()
	for _, field := range append(c.fields[:len(c.fields):len(c.fields)], f...) {
		field.AddTo(values)
	}
	attrs := make([]slog.Attr, 0, len(values.Fields))
	for k, v := range values.Fields {
		if k != "stack" {
			attrs = append(attrs, slog.Any(k, v))
		}
	}
	to.LogAttrs(context.Background(), slog.LevelWarn, "tikv client: "+e.Message, attrs...)
	return nil
}

// Sync implements zapcore.Core.
func (toSlog) Sync() error { return nil }
