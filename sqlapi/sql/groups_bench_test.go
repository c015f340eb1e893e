package sql

import "testing"

// BenchmarkGroups measures groups and distinct rows that fit into memory.
func BenchmarkGroups(b *testing.B) {
	c := benchContainer(b, 20000)
	for _, q := range []struct {
		name, text string
		rows       int
	}{
		{"group 10", "SELECT c.ten, SUM(c.price) AS s FROM c GROUP BY c.ten", 10},
		{"group 2000", "SELECT c.cat, COUNT(1) AS n, MAX(c.price) AS s FROM c GROUP BY c.cat", 2000},
		{"group 20000", "SELECT c.id, COUNT(1) AS n FROM c GROUP BY c.id", 20000},
		{"distinct 2000", "SELECT DISTINCT VALUE c.cat FROM c", 2000},
		{"distinct 20000", "SELECT DISTINCT c.cat, c.price FROM c", 20000},
		{"count distinct 20000", "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.cat, c.price FROM c)", 1},
		{"group by sets", "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_LENGTH(ARRAY(SELECT DISTINCT VALUE t FROM t " +
			"IN c.tags)) = 2", 1},
	} {
		b.Run(q.name, func(b *testing.B) { benchEnv(b, itemEnv, c, q.text, Request{MaxBytes: 64 << 20}, q.rows) })
	}
}
