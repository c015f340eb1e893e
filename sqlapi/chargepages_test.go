package sqlapi

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestChargesOfPagesAddUp: a query costs the same in pages of any size, whether a page finds its rows by a walk, by a
// sort of all that it could give, or by the names in an index.
func TestChargesOfPagesAddUp(t *testing.T) {
	const items = 400
	for _, ru := range []string{"400", "20000"} {
		a := newAPI(t)
		a.do("POST", "/dbs", `{"id":"db"}`).is(201)
		a.do("POST", "/dbs/db/colls", collC, "x-ms-offer-throughput: "+ru).is(201)
		for i := range items {
			a.do("POST", docsOfC, fmt.Sprintf(`{"id":"%d","pk":"a","n":%d,"m":%d,"pad":%q}`, i, i%7, i,
				strings.Repeat("x", i)), keyA).is(201)
		}
		for _, q := range []struct {
			text string
			rows int
		}{
			{"SELECT * FROM c", items},
			{"SELECT c.id FROM c WHERE c.n = 3", 57},
			{"SELECT * FROM c WHERE c.n > 2", 228},
			{"SELECT * FROM c WHERE c.n = 3 OR c.m < 20", 74},
			{"SELECT * FROM c WHERE c.n = 3 AND c.m > 300", 14},
			{"SELECT * FROM c WHERE LENGTH(c.pad) % 5 = 0", 80},
			{"SELECT * FROM c WHERE LENGTH(c.pad) > 390", 9},
			{"SELECT * FROM c WHERE LENGTH(c.pad) < 10", 10},
			{"SELECT * FROM c WHERE LENGTH(c.pad) > 900", 0},
		} {
			for _, headers := range [][]string{{keyA}, {}} {
				whole := a.queried(q.text, q.rows, 1000, headers...)
				for _, page := range []int{1, 7, 30, 60, 90, 200, 399, 400} {
					if page == 1 && q.rows > 100 {
						continue
					}
					// An empty last page costs at least 0.01.
					if got := a.queried(q.text, q.rows, page, headers...); math.Abs(got-whole) > 0.0105 {
						t.Errorf("%s RU/s, %s %v: %.4f in pages of %d, %.4f as a whole", ru, q.text, headers, got, page,
							whole)
					}
				}
			}
		}
	}
}
