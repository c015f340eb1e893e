package exec

// settle waits until everything that the view shows of the query's slots is durable. That includes absent items and
// items that don't match. It waits once for each view, before any result of the view is returned.
func (r *Rows) settle() error {
	if r.settled {
		return nil
	}
	r.settled = true
	for i := range r.spans {
		if err := r.view.SettleSlot(r.ctx, r.spans[i].slot); err != nil {
			return err
		}
	}
	return nil
}
