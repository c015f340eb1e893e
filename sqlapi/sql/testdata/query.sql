# Queries over documents.
doc {"id":"1","pk":"a","n":10,"s":"one","tags":["x","y"],"o":{"p":{"q":1}},"kids":[{"g":"m","age":3},{"g":"f","age":5}]}
doc {"id":"2","pk":"a","n":20,"s":"two","tags":["y"],"o":{"p":{}},"kids":[{"g":"f","age":7}]}
doc {"id":"3","pk":"b","n":null,"s":"three","tags":[],"flag":true}
doc {"id":"4","pk":"b","n":5,"s":"four","flag":false,"_id":"mine","date":"2024-01-01"}
doc {"id":"5","pk":"c","s":"five","n":"text"}

> SELECT VALUE c.id FROM c
"1"
"2"
"3"
"4"
"5"
> SELECT c.id, c.n FROM c
{"id":"1","n":10}
{"id":"2","n":20}
{"id":"3","n":null}
{"id":"4","n":5}
{"id":"5","n":"text"}
> SELECT c.id AS key, {"n": c.n, "t": c.tags} AS o FROM c WHERE c.pk = "a"
{"key":"1","o":{"n":10,"t":["x","y"]}}
{"key":"2","o":{"n":20,"t":["y"]}}
> SELECT * FROM c WHERE c.id = "4"
{"id":"4","pk":"b","n":5,"s":"four","flag":false,"_id":"mine","date":"2024-01-01"}
> SELECT VALUE c FROM c WHERE c.id = "3"
{"id":"3","pk":"b","n":null,"s":"three","tags":[],"flag":true}
> SELECT c FROM c WHERE c.id = "3"
{"c":{"id":"3","pk":"b","n":null,"s":"three","tags":[],"flag":true}}
> SELECT VALUE root.id FROM root
"1"
"2"
"3"
"4"
"5"
> SELECT VALUE f.s FROM Families AS f WHERE f.n > 5
"one"
"two"
> SELECT VALUE c.id FROM c WHERE c.n >= 5
"1"
"2"
"4"
> SELECT VALUE c.id FROM c WHERE c.n = null
"3"
> SELECT VALUE c.id FROM c WHERE IS_NULL(c.n)
"3"
> SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.flag)
"1"
"2"
"5"
> SELECT VALUE c.id FROM c WHERE c.flag
"3"
> SELECT VALUE c.id FROM c WHERE NOT c.flag
"4"
> SELECT VALUE c.id FROM c WHERE c.flag != true
"4"
> SELECT VALUE c.id FROM c WHERE c.n != 10
"2"
"3"
"4"
"5"
> SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, "y")
"1"
"2"
> SELECT VALUE c.id FROM c WHERE c.o.p.q = 1
"1"
> SELECT VALUE c.id FROM c WHERE c["o"]["p"]["q"] = 1
"1"
> SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.o.p)
"1"
"2"
> SELECT VALUE c.id FROM c WHERE c._id = "mine"
"4"
> SELECT VALUE c._id FROM c
"mine"
> SELECT VALUE c.id FROM c WHERE c.s LIKE "t%"
"2"
"3"
> SELECT VALUE c.id FROM c WHERE c.id IN ("1", "3", "9")
"1"
"3"
> SELECT VALUE c.id FROM c WHERE c.n BETWEEN 5 AND 10
"1"
"4"
> SELECT VALUE c.id FROM c ORDER BY c.n
"3"
"4"
"1"
"2"
"5"
> SELECT VALUE c.id FROM c ORDER BY c.n DESC
"5"
"2"
"1"
"4"
"3"
> SELECT VALUE c.id FROM c ORDER BY c.pk DESC, c.s ASC
"5"
"4"
"3"
"1"
"2"
> SELECT TOP 2 VALUE c.id FROM c ORDER BY c.s
"5"
"4"
> SELECT TOP 0 VALUE c.id FROM c
(none)
> SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 1 LIMIT 2
"2"
"3"
> SELECT VALUE c.id FROM c OFFSET 3 LIMIT 10
"4"
"5"
> SELECT VALUE c.n FROM c OFFSET 1 LIMIT 2
20
null
> SELECT c.o.p.q FROM c OFFSET 1 LIMIT 2
{}
{}
> SELECT VALUE c.o.p.q FROM c
1
> SELECT c.o.p.q FROM c
{"q":1}
{}
{}
{}
{}
> SELECT DISTINCT VALUE c.pk FROM c
"a"
"b"
"c"
> SELECT DISTINCT c.pk FROM c
{"pk":"a"}
{"pk":"b"}
{"pk":"c"}
> SELECT DISTINCT VALUE c.pk FROM c ORDER BY c.pk DESC
"c"
"b"
"a"
> SELECT DISTINCT VALUE c.flag FROM c
true
false
> SELECT DISTINCT TOP 2 VALUE c.pk FROM c
"a"
"b"
> SELECT VALUE COUNT(1) FROM c
5
> SELECT COUNT(1) FROM c
{"$1":5}
> SELECT COUNT(1) AS n, MAX(c.s) AS m FROM c WHERE c.pk = "a"
{"n":2,"m":"two"}
> SELECT VALUE COUNT(c.n) FROM c
5
> SELECT VALUE SUM(c.n) FROM c WHERE c.pk = "a"
30
> SELECT VALUE SUM(c.n) FROM c
(none)
> SELECT VALUE AVG(c.n) FROM c WHERE IS_NUMBER(c.n)
11.666666666666666
> SELECT VALUE MIN(c.n) FROM c
null
> SELECT VALUE MAX(c.n) FROM c
"text"
> SELECT VALUE COUNT(1) FROM c WHERE c.pk = "zz"
0
> SELECT VALUE SUM(c.n) FROM c WHERE c.pk = "zz"
0
> SELECT VALUE AVG(c.n) FROM c WHERE c.pk = "zz"
(none)
> SELECT VALUE MAX(c.n) FROM c WHERE c.pk = "zz"
(none)
> SELECT AVG(c.n) AS a, SUM(c.n) AS s FROM c WHERE c.pk = "zz"
{"s":0}
> SELECT VALUE COUNTIF(c.n > 5) FROM c
2
> SELECT VALUE MAKELIST(c.pk) FROM c
["a","a","b","b","c"]
> SELECT VALUE MAKESET(c.pk) FROM c
["a","b","c"]
> SELECT VALUE {"n": COUNT(1), "top": MAX(c.s)} FROM c
{"n":5,"top":"two"}
> SELECT VALUE SUM(c.n) + 1 FROM c WHERE c.pk = "a"
31
> SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk
{"pk":"a","n":2}
{"pk":"b","n":2}
{"pk":"c","n":1}
> SELECT COUNT(1) AS n, c.pk FROM c GROUP BY c.pk
{"n":2,"pk":"a"}
{"n":2,"pk":"b"}
{"n":1,"pk":"c"}
> SELECT VALUE {"k": c.pk, "n": COUNT(1)} FROM c GROUP BY c.pk
{"k":"a","n":2}
{"k":"b","n":2}
{"k":"c","n":1}
> SELECT c.flag, COUNT(1) AS n FROM c GROUP BY c.flag
{"n":3}
{"flag":true,"n":1}
{"flag":false,"n":1}
> SELECT UPPER(c.pk) AS p, COUNT(1) AS n FROM c GROUP BY UPPER(c.pk)
{"p":"A","n":2}
{"p":"B","n":2}
{"p":"C","n":1}
> SELECT c.pk, c.flag FROM c GROUP BY c.pk, c.flag
{"pk":"a"}
{"pk":"b","flag":true}
{"pk":"b","flag":false}
{"pk":"c"}
> SELECT c.o.p.q FROM c GROUP BY c.o.p
{"q":1}
{}
{}
> SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk OFFSET 1 LIMIT 1
{"pk":"b","n":2}
> SELECT VALUE c.pk FROM c GROUP BY c.pk
"a"
"b"
"c"
> SELECT c.id, t FROM c JOIN t IN c.tags
{"id":"1","t":"x"}
{"id":"1","t":"y"}
{"id":"2","t":"y"}
> SELECT VALUE t FROM t IN c.tags
"x"
"y"
"y"
> SELECT VALUE k.age FROM c JOIN k IN c.kids WHERE k.g = "f"
5
7
> SELECT c.id, k.age, t FROM c JOIN k IN c.kids JOIN t IN c.tags
{"id":"1","age":3,"t":"x"}
{"id":"1","age":3,"t":"y"}
{"id":"1","age":5,"t":"x"}
{"id":"1","age":5,"t":"y"}
{"id":"2","age":7,"t":"y"}
> SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags
3
> SELECT t, COUNT(1) AS n FROM c JOIN t IN c.tags GROUP BY t
{"t":"x","n":1}
{"t":"y","n":2}
> SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags
"x"
"y"
> SELECT TOP 2 c.id, t FROM c JOIN t IN c.tags
{"id":"1","t":"x"}
{"id":"1","t":"y"}
> SELECT c.id, t FROM c JOIN t IN c.tags OFFSET 1 LIMIT 1
{"id":"1","t":"y"}
> SELECT VALUE o FROM c.o
{"p":{"q":1}}
{"p":{}}
> SELECT * FROM c.o.p
{"q":1}
{}
> SELECT VALUE x.q FROM c.o.p AS x
1
> SELECT VALUE k.age FROM c.kids k
(none)
> SELECT VALUE x.p.q FROM c.o x ORDER BY x.p.q
1
> SELECT c.id, k FROM c JOIN (SELECT VALUE k FROM k IN c.kids WHERE k.age > 4) AS k
{"id":"1","k":{"g":"f","age":5}}
{"id":"2","k":{"g":"f","age":7}}
> SELECT c.id, m.total FROM c JOIN (SELECT SUM(k.age) AS total FROM k IN c.kids) AS m
{"id":"1","total":8}
{"id":"2","total":7}
{"id":"3","total":0}
{"id":"4","total":0}
{"id":"5","total":0}
> SELECT c.id, (SELECT VALUE COUNT(1) FROM t IN c.tags) AS n FROM c
{"id":"1","n":2}
{"id":"2","n":1}
{"id":"3","n":0}
{"id":"4","n":0}
{"id":"5","n":0}
> SELECT c.id, ARRAY(SELECT VALUE k.age FROM k IN c.kids WHERE k.g = "f") AS ages FROM c
{"id":"1","ages":[5]}
{"id":"2","ages":[7]}
{"id":"3","ages":[]}
{"id":"4","ages":[]}
{"id":"5","ages":[]}
> SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = "x")
"1"
> SELECT VALUE c.id FROM c WHERE NOT EXISTS(SELECT VALUE t FROM t IN c.tags)
"3"
"4"
"5"
> SELECT VALUE c.id FROM c WHERE ALL(SELECT VALUE k.age > 4 FROM k IN c.kids)
"2"
"3"
"4"
"5"
> SELECT VALUE FIRST(SELECT VALUE t FROM t IN c.tags) FROM c
"x"
"y"
> SELECT VALUE LAST(SELECT VALUE t FROM t IN c.tags) FROM c
"y"
"y"
> SELECT VALUE (SELECT VALUE k.age FROM k IN c.kids) FROM c WHERE c.id = "2"
7
> SELECT VALUE (SELECT VALUE k.age FROM k IN c.kids) FROM c WHERE c.id = "1"
! The cardinality of a scalar subquery result set cannot be greater than one.
> SELECT VALUE ARRAY(SELECT VALUE k.age FROM k IN c.kids ORDER BY k.age DESC) FROM c WHERE c.id = "1"
[5,3]
> SELECT VALUE ARRAY(SELECT TOP 1 k.age FROM k IN c.kids) FROM c WHERE c.id = "1"
[{"age":3}]
> SELECT VALUE ARRAY(SELECT DISTINCT VALUE k.g FROM k IN c.kids) FROM c WHERE c.id = "1"
["m","f"]
> SELECT VALUE {"i": c.id, "whole": c.o} FROM c WHERE c.pk = "a"
{"i":"1","whole":{"p":{"q":1}}}
{"i":"2","whole":{"p":{}}}
> SELECT VALUE [c.id, c.n, c.missing] FROM c
["1",10]
["2",20]
["3",null]
["4",5]
["5","text"]
> SELECT VALUE IS_OBJECT(c) FROM c WHERE c.id = "1"
true
> SELECT VALUE EXISTS(SELECT VALUE c.flag FROM c) FROM c
false
false
true
true
false
> SELECT VALUE c.s || "-" || c.pk FROM c WHERE c.n > 5
"one-a"
"two-a"
> SELECT VALUE c.n > 5 ? "big" : "small" FROM c
"big"
"big"
"small"
"small"
"small"
> SELECT VALUE c.n ?? "none" FROM c
10
20
null
5
"text"
> SELECT VALUE 1 FROM c WHERE c.id = "1"
1
> SELECT VALUE c.tags[0] FROM c
"x"
"y"

@p = "a"
@list = ["x"]
@n = 1
> SELECT VALUE c.id FROM c WHERE c.pk = @p
"1"
"2"
> SELECT TOP @n VALUE c.id FROM c WHERE c.pk = @p
"1"
> SELECT VALUE c.id FROM c OFFSET @n LIMIT @n
"2"
> SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(@list, c.tags[0])
"1"
> SELECT TOP @p VALUE c.id FROM c
! The value of TOP must be a whole number from 0 to 4294967295.
> SELECT VALUE @list
["x"]
> SELECT c._rid, [{"item": c.n}] AS orderByItems, c AS payload FROM c WHERE (true) ORDER BY c.n
{"orderByItems":[{"item":null}],"payload":{"id":"3","pk":"b","n":null,"s":"three","tags":[],"flag":true}}
{"orderByItems":[{"item":5}],"payload":{"id":"4","pk":"b","n":5,"s":"four","flag":false,"_id":"mine","date":"2024-01-01"}}
{"orderByItems":[{"item":10}],"payload":{"id":"1","pk":"a","n":10,"s":"one","tags":["x","y"],"o":{"p":{"q":1}},"kids":[{"g":"m","age":3},{"g":"f","age":5}]}}
{"orderByItems":[{"item":20}],"payload":{"id":"2","pk":"a","n":20,"s":"two","tags":["y"],"o":{"p":{}},"kids":[{"g":"f","age":7}]}}
{"orderByItems":[{"item":"text"}],"payload":{"id":"5","pk":"c","s":"five","n":"text"}}
> SELECT [{"item": c.pk}] AS groupByItems, {"pk": c.pk, "n": {"item": COUNT(1)}} AS payload FROM c GROUP BY c.pk
{"groupByItems":[{"item":"a"}],"payload":{"pk":"a","n":{"item":2}}}
{"groupByItems":[{"item":"b"}],"payload":{"pk":"b","n":{"item":2}}}
{"groupByItems":[{"item":"c"}],"payload":{"pk":"c","n":{"item":1}}}
> SELECT VALUE [{"item": {"sum": SUM(c.n), "count": COUNT(c.n)}}] FROM c WHERE c.pk = "a"
[{"item":{"sum":30,"count":2}}]
> SELECT VALUE [{"item": MIN(c.n), "item2": {"min": MIN(c.n), "count": COUNT(c.n)}}] FROM c
[{"item":null,"item2":{"min":null,"count":5}}]
> SELECT VALUE x FROM (SELECT VALUE c.pk FROM c WHERE c.n > 5) AS x
"a"
"a"
> SELECT x.id, x.k.age FROM (SELECT c.id, k FROM c JOIN k IN c.kids) AS x WHERE x.k.age > 3
{"id":"1","age":5}
{"id":"2","age":7}
> SELECT COUNT(1) AS n FROM (SELECT DISTINCT VALUE c.pk FROM c)
{"n":3}
> SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.pk, c.flag FROM c) AS d
4
> SELECT TOP 1 VALUE c.n FROM c ORDER BY c.n DESC
"text"
> SELECT TOP 2 VALUE c.flag FROM c ORDER BY c.s
false
true
> SELECT VALUE c.flag FROM c OFFSET 1 LIMIT 1
false
> SELECT {"n": COUNT(1)} AS a, [COUNT(1)] AS b FROM c
{"a":{"n":5},"b":[5]}
