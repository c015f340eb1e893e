package core_test

import (
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
)

func TestUniqueKeys(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{UniqueKeys: [][]string{{"/email"}, {"/a", "/b/c"}}})
		put(t, c, core.Create, `{"id":"1","pk":"p","email":"x","a":1}`)
		_, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"2","pk":"p","email":"x","a":2}`)})
		wantCode(t, err, status.Conflict, 0)
		put(t, c, core.Create, `{"id":"2","pk":"q","email":"x","a":1}`) // another logical partition
		put(t, c, core.Create, `{"id":"3","pk":"p","email":"y","a":3}`)
		_, err = c.Write(bg, core.Write{Kind: core.Replace, Doc: mustDoc(t, `{"id":"3","pk":"p","email":"y","a":1}`)})
		wantCode(t, err, status.Conflict, 0)
		_, err = c.WithTx(bg, pk("p"), func(tx *core.Tx) error { // two items swap their values
			for _, d := range []string{`{"id":"1","pk":"p","email":"y","a":1}`,
				`{"id":"3","pk":"p","email":"x","a":3}`} {
				if _, err := tx.Write(&core.Write{Kind: core.Replace, Doc: mustDoc(t, d)}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
