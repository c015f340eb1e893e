package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// splitting is an engine that records where ranges will begin, and fails.
type splitting struct {
	kv.Engine
	keys [][]byte
}

func (s *splitting) Presplit(_ context.Context, keys [][]byte) error {
	s.keys = append(s.keys, keys...)
	return errors.New("no")
}

// An engine on several machines is told where the slots of a large container begin. Nothing depends on what it does.
func TestPresplit(t *testing.T) {
	eng := &splitting{Engine: memkv.New()}
	e, err := core.Open(bg, eng, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	newContainer(t, e, core.ContainerSpec{ID: "small"})
	if len(eng.keys) != 0 {
		t.Errorf("%d ranges for one slot", len(eng.keys))
	}
	newContainer(t, e, core.ContainerSpec{ID: "large", Throughput: core.Throughput{Manual: 30000}})
	if len(eng.keys) != 3 {
		t.Errorf("%d ranges for three slots", len(eng.keys))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
