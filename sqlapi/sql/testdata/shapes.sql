# Sub-queries that stand for the container and must see all its items, and groups in an order.
doc {"id":"1","pk":"a","n":10,"t":["x","y"],"w":1}
doc {"id":"2","pk":"a","n":20,"t":["y"],"w":2}
doc {"id":"3","pk":"b","n":null,"t":[],"w":3}
doc {"id":"4","pk":"b","n":5,"t":["x"],"w":4}
doc {"id":"5","pk":"c","n":"text","w":5}
doc {"id":"6","pk":"c","w":6}
doc {"id":"7","pk":"c","n":5,"w":7}

> SELECT VALUE x FROM (SELECT VALUE COUNT(1) FROM c) AS x
7
> SELECT VALUE x FROM (SELECT VALUE COUNT(1) FROM c WHERE c.pk = "none") AS x
0
> SELECT x.pk, x.n FROM (SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk) AS x WHERE x.n > 2
{"pk":"c","n":3}
> SELECT VALUE COUNT(1) FROM (SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk) AS x WHERE x.n = 2
2
> SELECT VALUE SUM(x.n) FROM (SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk) AS x
7
> SELECT VALUE MAX(x) FROM (SELECT VALUE COUNT(1) FROM c GROUP BY c.pk) AS x
3
> SELECT * FROM (SELECT MAX(c.w) AS m, MIN(c.w) AS l FROM c) AS x
{"m":7,"l":1}
> SELECT VALUE x.id FROM (SELECT TOP 3 * FROM c ORDER BY c.w DESC) AS x
"7"
"6"
"5"
> SELECT VALUE x.id FROM (SELECT TOP 3 * FROM c ORDER BY c.w DESC) AS x WHERE x.pk = "c" AND x.w < 7
"6"
"5"
> SELECT TOP 1 VALUE x.id FROM (SELECT TOP 3 * FROM c ORDER BY c.w DESC) AS x
"7"
> SELECT VALUE x.id FROM (SELECT TOP 3 * FROM c ORDER BY c.w DESC) AS x OFFSET 1 LIMIT 1
"6"
> SELECT VALUE x.id FROM (SELECT * FROM c ORDER BY c.w OFFSET 2 LIMIT 2) AS x
"3"
"4"
> SELECT VALUE SUM(x.w) FROM (SELECT * FROM c ORDER BY c.w OFFSET 2 LIMIT 2) AS x
7
> SELECT VALUE COUNT(1) FROM (SELECT TOP 3 * FROM c) AS x
3
> SELECT VALUE COUNT(1) FROM (SELECT TOP 0 * FROM c) AS x
0
> SELECT VALUE COUNT(1) FROM (SELECT * FROM c OFFSET 5 LIMIT 10) AS x
2
> SELECT VALUE x FROM (SELECT VALUE c.n FROM c ORDER BY c.n) AS x
null
5
5
10
20
"text"
> SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.n FROM c) AS x
5
> SELECT VALUE x.pk FROM (SELECT DISTINCT c.pk FROM c ORDER BY c.pk DESC) AS x
"c"
"b"
"a"
> SELECT DISTINCT VALUE x.k FROM (SELECT c.pk AS k, COUNT(1) AS n FROM c GROUP BY c.pk) AS x WHERE x.k < "c"
"a"
"b"
> SELECT x.k, t FROM (SELECT c.pk AS k, MAKELIST(c.w) AS ws FROM c GROUP BY c.pk) AS x JOIN t IN x.ws WHERE x.k = "b" AND t = 4
{"k":"b","t":4}
> SELECT VALUE t FROM t IN (SELECT TOP 1 VALUE c.t FROM c ORDER BY c.w)
"x"
"y"
> SELECT VALUE {"n": COUNT(1)} FROM (SELECT DISTINCT VALUE t FROM c JOIN t IN c.t) AS x
{"n":2}
> SELECT VALUE y FROM (SELECT VALUE MAX(x.n) FROM (SELECT COUNT(1) AS n FROM c GROUP BY c.pk) AS x) AS y
3
> SELECT VALUE y FROM (SELECT VALUE x FROM (SELECT TOP 2 VALUE c.w FROM c ORDER BY c.w DESC) AS x WHERE x < 7) AS y
6
> SELECT VALUE y.w FROM (SELECT TOP 2 * FROM (SELECT * FROM c WHERE c.pk != "a") AS x) AS y WHERE y.w > 100
(none)
> SELECT VALUE COUNT(1) FROM (SELECT TOP 2 VALUE x FROM (SELECT VALUE c.w FROM c ORDER BY c.w) AS x WHERE x > 3) AS y WHERE y < 6
2
> SELECT x.n, COUNT(1) AS k FROM (SELECT COUNT(1) AS n FROM c GROUP BY c.pk) AS x GROUP BY x.n ORDER BY x.n
{"n":2,"k":2}
{"n":3,"k":1}
> SELECT VALUE (SELECT VALUE COUNT(1) FROM q IN x.l) FROM (SELECT MAKELIST(c.w) AS l FROM c) AS x
7
> SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk ORDER BY c.pk DESC
{"pk":"c","n":3}
{"pk":"b","n":2}
{"pk":"a","n":2}
> SELECT c.pk FROM c GROUP BY c.pk ORDER BY c.pk
{"pk":"a"}
{"pk":"b"}
{"pk":"c"}
> SELECT c.pk, SUM(c.w) AS s FROM c GROUP BY c.pk ORDER BY SUM(c.w)
{"pk":"a","s":3}
{"pk":"b","s":7}
{"pk":"c","s":18}
> SELECT c.pk FROM c GROUP BY c.pk ORDER BY SUM(c.w) DESC
{"pk":"c"}
{"pk":"b"}
{"pk":"a"}
> SELECT VALUE c.pk FROM c GROUP BY c.pk ORDER BY COUNT(1) DESC, c.pk DESC
"c"
"b"
"a"
> SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n ORDER BY c.n
{"k":1}
{"n":null,"k":1}
{"n":5,"k":2}
{"n":10,"k":1}
{"n":20,"k":1}
{"n":"text","k":1}
> SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n ORDER BY c.n DESC OFFSET 1 LIMIT 2
{"n":20,"k":1}
{"n":10,"k":1}
> SELECT TOP 2 c.pk, MAX(c.w) AS m FROM c GROUP BY c.pk ORDER BY MAX(c.w) DESC
{"pk":"c","m":7}
{"pk":"b","m":4}
> SELECT UPPER(c.pk) AS p FROM c GROUP BY UPPER(c.pk) ORDER BY UPPER(c.pk) DESC
{"p":"C"}
{"p":"B"}
{"p":"A"}
> SELECT c.pk FROM c WHERE c.w > 2 GROUP BY c.pk ORDER BY AVG(c.w) * -1
{"pk":"c"}
{"pk":"b"}
> SELECT VALUE ARRAY(SELECT x.k, COUNT(1) AS n FROM x IN (SELECT VALUE [{"k": 2}, {"k": 1}, {"k": 2}]) GROUP BY x.k ORDER BY x.k)
[{"k":1,"n":1},{"k":2,"n":2}]
> SELECT VALUE ARRAY(SELECT VALUE x FROM x IN (SELECT VALUE [3, 1, 3, 2]) GROUP BY x ORDER BY COUNT(1) DESC, x)
[3,1,2]

# Nearest vectors first: similarities fall, distances rise, items without a vector of that length come last.
reset
doc {"id":"1","pk":"a","v":[1,0]}
doc {"id":"2","pk":"b","v":[0,1]}
doc {"id":"3","pk":"a","v":[3,4]}
doc {"id":"4","pk":"c","v":[-2,0]}
doc {"id":"5","pk":"d","v":[1,2,3]}

> SELECT TOP 4 c.id, VectorDistance(c.v, [1, 0]) AS s FROM c ORDER BY VectorDistance(c.v, [1, 0])
{"id":"1","s":1}
{"id":"3","s":0.6}
{"id":"2","s":0}
{"id":"4","s":-1}
> SELECT TOP 2 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0], true, {"distanceFunction": "Euclidean"})
"1"
"2"
> SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0], true, {"distanceFunction": "euclidean"}) OFFSET 2 LIMIT 2
"4"
"3"
> SELECT TOP 1 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 1], false, {"distanceFunction": "dotproduct", "dataType": "float32"})
"3"
> SELECT TOP 1 VALUE c.id FROM c WHERE c.id != "1" ORDER BY VectorDistance(c.v, [1, 0])
"3"
> SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0])
"1"
"3"
"2"
"4"
"5"
> SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0]), c.id
! 2206 34-61 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
