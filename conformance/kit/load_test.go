package kit

import (
	"fmt"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Restores while clients of all APIs write: nothing hangs, connections stay usable, and in the end the account has
// exactly what the snapshot has. A write may fail, because its container may be gone at that moment.
func TestRestoreUnderLoad(t *testing.T) {
	a := srv.Account(t)
	c := connect(t, a)
	c.put(t, "base")
	a.Snapshot(t, "under-load")
	items := c.items(t)
	docs := c.mongo.Database("shop").Collection("docs")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w, write := range []func(id string){
		func(id string) {
			_, _ = items.CreateItem(ctx, azcosmos.NewPartitionKeyString(id), fmt.Appendf(nil, `{"id":%q}`, id), nil)
		},
		func(id string) { _, _ = docs.InsertOne(ctx, bson.M{"_id": id}) },
		func(id string) { _, _ = submit(c.gremlin, "g.addV('thing').property(id, '"+id+"')") },
		func(id string) {
			_, _ = c.tables.NewClient("entities").AddEntity(ctx,
				fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":%q}`, id), nil)
		},
	} {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					write(fmt.Sprintf("w%d-%d", w, n))
				}
			}
		})
	}
	for n := range 40 {
		if n%4 == 0 {
			a.Reset(t)
		}
		a.Restore(t, "under-load")
	}
	close(stop)
	wg.Wait()
	a.Restore(t, "under-load")
	if got, want := c.seen(t), "base base base base"; got != want {
		t.Errorf("in the end the account shows %q, want %q", got, want)
	}
}
