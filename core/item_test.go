package core_test

import (
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

func TestItemLife(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		_, err := c.Read(bg, pk("a"), value.StringOf("1"))
		wantCode(t, err, status.NotFound, 0)
		r := put(t, c, core.Create, `{"id":"1","pk":"a","n":1}`)
		if !r.Created || r.Charge <= 0 {
			t.Errorf("create: %+v", r)
		}
		_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"1","pk":"a"}`)})
		wantCode(t, err, status.Conflict, 0)
		first, err := c.Read(bg, pk("a"), value.StringOf("1"))
		if err != nil {
			t.Fatal(err)
		}
		if first.ETag() != r.Item.ETag() || first.LSN != r.LSN {
			t.Errorf("read shows another version than the write: %s %s", first.ETag(), r.Item.ETag())
		}
		r2 := put(t, c, core.Upsert, `{"id":"1","pk":"a","n":2}`)
		if r2.Created || r2.Item.ETag() == r.Item.ETag() || r2.Item.Number != r.Item.Number {
			t.Errorf("upsert: %+v", r2)
		}
		if counted(c) != 1 {
			t.Errorf("count is %d", counted(c))
		}
		_, err = c.Write(bg, core.Write{Kind: core.Replace, PK: pk("b"), Doc: mustDoc(t, `{"id":"1","pk":"a"}`)})
		wantCode(t, err, status.BadRequest, status.SubPartitionKeyMismatch)
		stale := r.Item.ETag()
		_, err = c.Write(bg, core.Write{
			Kind: core.Delete, PK: pk("a"), ID: value.StringOf("1"), Check: func(old *core.Item) error {
				if old.ETag() != stale {
					return status.New(status.PreconditionFailed, "etag")
				}
				return nil
			}})
		wantCode(t, err, status.PreconditionFailed, 0)
		if _, err = c.Write(bg, core.Write{Kind: core.Delete, PK: pk("a"), ID: value.StringOf("1")}); err != nil {
			t.Fatal(err)
		}
		_, err = c.Write(bg, core.Write{Kind: core.Delete, PK: pk("a"), ID: value.StringOf("1")})
		wantCode(t, err, status.NotFound, 0)
		if counted(c) != 0 || bytesOf(c) != 0 {
			t.Errorf("count %d, size %d after the last delete", counted(c), bytesOf(c))
		}
	})
}
