package tableapi

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// TestConcurrentETags: among writers that read an entity and write it with its ETag, no update is lost and only one
// writer wins each race, with single writes and in transactions.
func TestConcurrentETags(t *testing.T) {
	s, _ := newServer(t, false)
	do(s, "POST", "/Tables", `{"TableName":"data"}`)
	do(s, "POST", "/data", `{"PartitionKey":"p","RowKey":"r","n":0}`)
	const path = "/data(PartitionKey='p',RowKey='r')"
	var won atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for range 40 {
				got := do(s, "GET", path, "")
				var e struct{ N int }
				if err := json.Unmarshal(got.Body.Bytes(), &e); err != nil {
					t.Error(err)
					return
				}
				etag, body := got.Header().Get("ETag"), fmt.Sprintf(`{"n":%d}`, e.N+1)
				if w%2 == 0 {
					r := do(s, "MERGE", path, body, "If-Match", etag)
					if r.Code == 204 {
						won.Add(1)
					} else if r.Code != 412 {
						t.Errorf("merge: %d %s", r.Code, r.Body)
					}
					continue
				}
				r := do(s, "POST", "/$batch", "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type: "+
					"application/http\n\n"+
					"PUT "+path+" HTTP/1.1\nIf-Match: "+etag+"\n\n"+body+"\n--c--\n--b--\n", "Content-Type",
					"multipart/mixed; boundary=b")
				switch code := r.Header().Get("x-ms-error-code"); {
				case r.Code == 202 && code == "":
					won.Add(1)
				case code != "UpdateConditionNotSatisfied" && code != "ServerBusy":
					// busy: the partition stayed contended
					t.Errorf("batch: %d %s", r.Code, r.Body)
				}
			}
		})
	}
	wg.Wait()
	var e struct{ N int64 }
	if err := json.Unmarshal(do(s, "GET", path, "").Body.Bytes(), &e); err != nil || e.N != won.Load() {
		t.Errorf("n is %d after %d updates, %v", e.N, won.Load(), err)
	}
	if won.Load() == 0 {
		t.Error("nobody ever won")
	}
}
