package exec

// settle waits until everything is durable that the view shows of the slots that the query reads: also what is not
// there, or is there and doesn't match. It waits once for each view, before anything of it leaves.
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
