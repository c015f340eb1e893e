package store

import (
	"encoding/binary"
	"sync"
)

// claims are the items that the open transactions of this process have written. A transaction that writes an item which
// another one has written ends at once: one of both would be refused at its commit. Writers without a transaction don't
// look: they win. Transactions of another process are found by the commit.
//
// Example: T1 and T2 write item "x". T2's write fails, and T2 has done nothing else in vain. After T1's end a third one
// can write "x".
type claims struct {
	mu sync.Mutex
	of map[string]*Transaction // by generation and suffix
}

// claim notes that the transaction writes an item. It returns false if another open one has written it.
func (t *Transaction) claim(c *Container, suffix []byte) bool {
	key := string(append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(suffix)), c.gen), suffix...))
	s := &t.st.claims
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]*Transaction{}
	}
	if by := s.of[key]; by != nil && by != t {
		return false
	}
	s.of[key] = t
	t.claimed = append(t.claimed, key)
	return true
}

// give gives claims up.
func (s *claims) give(keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		delete(s.of, k)
	}
}
