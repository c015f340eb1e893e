package memkv

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core/kv"
)

// A checkpoint is one file, checkpointName:
//
//	magic (8 bytes)
//	for each key: uvarint len(key)+1, uvarint len(value), key, value
//	uvarint 0
//	xxhash64 of everything before it, big-endian
const (
	checkpointName  = "memkv.checkpoint"
	checkpointMagic = "ORRMEM01"
)

// Checkpoint implements kv.Engine; Load reads it back.
func (e *Engine) Checkpoint(ctx context.Context, dir string) error {
	t, err := e.present()
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%w: checkpoint directory exists: %s", kv.ErrContract, dir)
		}
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	if err := writeCheckpoint(ctx, t, filepath.Join(dir, checkpointName)); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	return nil
}

func writeCheckpoint(ctx context.Context, t *tree, name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := xxhash.New()
	buf := bufio.NewWriter(f)
	w := io.MultiWriter(buf, sum)
	if _, err := io.WriteString(w, checkpointMagic); err != nil {
		return err
	}
	var head []byte
	t.Scan(func(it entry) bool {
		head = binary.AppendUvarint(head[:0], uint64(len(it.key))+1)
		head = binary.AppendUvarint(head, uint64(len(it.val)))
		for _, p := range [][]byte{head, it.key, it.val} {
			if _, err = w.Write(p); err != nil {
				return false
			}
		}
		err = ctx.Err()
		return err == nil
	})
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte{0}); err != nil {
		return err
	}
	if err := binary.Write(buf, binary.BigEndian, sum.Sum64()); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// Load returns an engine with the content of a checkpoint directory. A damaged file is kv.ErrCorruption.
func Load(dir string) (*Engine, error) {
	raw, err := os.ReadFile(filepath.Join(dir, checkpointName))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	n := len(raw) - 8
	if n < len(checkpointMagic)+1 || string(raw[:len(checkpointMagic)]) != checkpointMagic ||
		binary.BigEndian.Uint64(raw[n:]) != xxhash.Sum64(raw[:n]) {
		return nil, fmt.Errorf("%w: not a whole checkpoint: %s", kv.ErrCorruption, dir)
	}
	e := New()
	for p := raw[len(checkpointMagic):n]; ; {
		kl, a := binary.Uvarint(p)
		if a > 0 && kl == 0 {
			return e, nil
		}
		vl, c := binary.Uvarint(p[max(a, 0):])
		if a <= 0 || c <= 0 || kl-1 > uint64(len(p)) || vl > uint64(len(p)) || uint64(a+c)+kl-1+vl > uint64(len(p)) {
			return nil, fmt.Errorf("%w: bad lengths in checkpoint: %s", kv.ErrCorruption, dir)
		}
		p = p[a+c:]
		k, v := p[:kl-1:kl-1], p[kl-1:kl-1+vl:kl-1+vl]
		e.tree.Load(entry{key: k, val: v})
		p = p[kl-1+vl:]
	}
}
