package script

// Pids returns the processes of p.
func Pids(p *Pool) (pids []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.live {
		pids = append(pids, w.cmd.Process.Pid)
	}
	return pids
}

// Idle returns how many processes of p wait for a run.
func Idle(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// Expire ends the idle processes of p as if they had been idle for long.
func Expire(p *Pool) {
	p.mu.Lock()
	idle := append([]*process(nil), p.idle...)
	p.mu.Unlock()
	for _, w := range idle {
		p.expire(w)
	}
}

// AnyAlive reports whether a process of p hasn't ended.
func AnyAlive(p *Pool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.live {
		if w.alive() {
			return true
		}
	}
	return false
}

// Unserved makes this binary one that doesn't have WorkerCommand, until the function that it returns is called.
func Unserved() func() {
	served.Store(false)
	return func() { served.Store(true) }
}
