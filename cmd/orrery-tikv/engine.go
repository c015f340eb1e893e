package main

import (
	"context"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/tikvkv"
)

// tikv opens the stores whose addresses begin with tikv://.
var tikv = server.EngineKind{Scheme: tikvkv.Scheme, Open: open}

// open returns a nil interface with an error, not one that holds a nil engine.
func open(ctx context.Context, address string, o server.EngineOptions) (kv.Engine, error) {
	e, err := tikvkv.Open(ctx, address, tikvkv.Options{Logger: o.Logger, ReadOnly: o.ReadOnly,
		Upgrade: o.Upgrade})
	if err != nil {
		return nil, err
	}
	return e, nil
}
