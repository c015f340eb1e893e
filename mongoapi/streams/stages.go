package streams

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/changes"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/update"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// SplitStage is the stage that splits large events.
const SplitStage = "$changeStreamSplitLargeEvent"

// Through returns the events behind the stages of a pipeline. If it fails, the stream is closed.
func (st *Stream) Through(p *agg.Pipeline, x *agg.Exec) (agg.Iter, error) {
	src, err := p.Run(x, &matching{src: st, f: p.Lead.Filter, env: x.Env})
	if err != nil {
		st.Close()
		return nil, err
	}
	src = &unchangedIDs{src: src, st: st}
	if st.o.Split {
		src = &splitting{src: src, st: st}
	}
	return src, nil
}

// matching filters the documents of a source.
type matching struct {
	src agg.Iter
	f   *filter.Filter
	env *expr.Env
}

// Next implements agg.Iter.
func (m *matching) Next() (value.Value, bool, error) {
	for {
		d, ok, err := m.src.Next()
		if !ok || err != nil {
			return d, ok, err
		}
		if ok, err = m.f.Match(m.env, d); ok || err != nil {
			return d, ok && err == nil, err
		}
	}
}

// Close implements agg.Iter.
func (m *matching) Close() { m.src.Close() }

// unchangedIDs refuses events whose _id isn't the one that the stream has given them.
type unchangedIDs struct {
	src agg.Iter
	st  *Stream
}

// Next implements agg.Iter.
func (u *unchangedIDs) Next() (value.Value, bool, error) {
	d, ok, err := u.src.Next()
	if !ok || err != nil {
		return d, ok, err
	}
	if want := tokenDoc(u.st.last); !value.Identical(d.Get("_id"), want) {
		return d, false, merr.New(merr.ChangeStreamFatal, "Encountered an event whose _id field, which contains the "+
			"resume token, was modified by the pipeline. Modifying the _id field of an event makes it impossible to "+
			"resume the stream from that point. Only transformations that retain the unmodified _id field are "+
			"allowed. Expected: %s but found: %s", update.Show(want), shownID(d.Get("_id")))
	}
	return d, true, nil
}

// Close implements agg.Iter.
func (u *unchangedIDs) Close() { u.src.Close() }

func shownID(id value.Value) string {
	if !id.IsDefined() {
		return "MISSING"
	}
	return update.Show(id)
}

// splitting is the stage $changeStreamSplitLargeEvent.
type splitting struct {
	src  agg.Iter
	st   *Stream
	left []value.Value
}

// Next implements agg.Iter.
func (s *splitting) Next() (value.Value, bool, error) {
	if len(s.left) == 0 {
		d, ok, err := s.src.Next()
		if !ok || err != nil {
			return d, ok, err
		}
		of := s.st.last
		if s.left = changes.Split(d, wire.MaxDocument, func(n int) value.Value {
			t := of
			t.Fragment = uint16(n)
			return tokenDoc(t)
		}); len(s.left) <= s.st.skip {
			return d, false, merr.New(7182500, "an event can't be split: one of its fields is too large")
		}
		s.left, s.st.skip = s.left[s.st.skip:], 0
	}
	d := s.left[0]
	if s.left = s.left[1:]; d.Get("splitEvent").IsDefined() {
		s.st.last.Fragment = uint16(d.Get("splitEvent").Get("fragment").Int())
	}
	return d, true, nil
}

// Close implements agg.Iter.
func (s *splitting) Close() { s.src.Close() }
