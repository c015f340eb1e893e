# Edges of queries: undefined and null in every clause, type order, unicode names, joins, sub-queries.
doc {"id":"1","pk":"a","k":null,"n":0,"é":"x","a b":1,"arr":[1,null,"x",[2],{"y":3}],"deep":{"a":{"b":{"c":{"d":[{"e":5}]}}}}}
doc {"id":"2","pk":"a","k":false,"n":-0.0,"arr":[],"value":7,"select":"kw"}
doc {"id":"3","pk":"b","k":true,"n":1e2,"arr":null}
doc {"id":"4","pk":"b","k":-5,"n":"1","arr":"text"}
doc {"id":"5","pk":"b","k":"Z","arr":[[1,2],[3]]}
doc {"id":"6","pk":"c","k":"a","n":9007199254740993,"s":"😀"}
doc {"id":"7","pk":"c","s":"ÿ"}

> SELECT VALUE c.k FROM c ORDER BY c.k
null
false
true
-5
"Z"
"a"
> SELECT VALUE c.k FROM c ORDER BY c.k DESC
"a"
"Z"
-5
true
false
null
> SELECT VALUE c.id FROM c ORDER BY c.k, c.id
"7"
"1"
"2"
"3"
"4"
"5"
"6"
> SELECT VALUE c.id FROM c ORDER BY c.pk DESC, c.id ASC
"6"
"7"
"3"
"4"
"5"
"1"
"2"
> SELECT VALUE c.id FROM c ORDER BY c.s, c.id DESC
"5"
"4"
"3"
"2"
"1"
"7"
"6"
> SELECT VALUE c.id FROM c WHERE c.s > "ÿ"
"6"
> SELECT VALUE c.id FROM c WHERE c.s >= "ÿ" AND c.s < "😀"
"7"
> SELECT VALUE c["é"] FROM c WHERE IS_DEFINED(c["é"])
"x"
> SELECT VALUE c.é FROM c WHERE c.id = "1"
"x"
> SELECT VALUE c["a b"] FROM c WHERE c["a b"] = 1
1
> SELECT c["value"], c["select"] FROM c WHERE c.id = "2"
{"value":7,"select":"kw"}
> SELECT VALUE c.deep.a.b.c.d[0].e FROM c
5
> SELECT VALUE c.deep["a"].b["c"]["d"][0]["e"] FROM c WHERE c.deep.a.b.c.d[0].e = 5
5
> SELECT VALUE c.deep.a.x.y.z FROM c
(none)
> SELECT c.deep.a.x.y.z AS q FROM c WHERE c.id = "1"
{}
> SELECT VALUE c.id FROM c WHERE c.n = 0
"1"
"2"
> SELECT VALUE c.id FROM c WHERE c.n = -0
"1"
"2"
> SELECT VALUE c.id FROM c WHERE c.n = 100
"3"
> SELECT VALUE c.id FROM c WHERE c.n = "1"
"4"
> SELECT VALUE c.id FROM c WHERE c.n = 1
(none)
> SELECT VALUE c.id FROM c WHERE c.n > 9007199254740992
"6"
> SELECT VALUE c.id FROM c WHERE c.n != 0
"3"
"4"
"6"
> SELECT VALUE c.id FROM c WHERE NOT (c.n = 0)
"3"
"4"
"6"
> SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.n)
"5"
"7"
> SELECT VALUE c.id FROM c WHERE c.n < 0 OR c.n >= 0
"1"
"2"
"3"
"6"
> SELECT VALUE c.id FROM c WHERE c.k = null
"1"
> SELECT VALUE c.id FROM c WHERE c.k != null
"2"
"3"
"4"
"5"
"6"
> SELECT VALUE c.id FROM c WHERE c.k = undefined
(none)
> SELECT VALUE c.id FROM c WHERE c.k
"3"
> SELECT VALUE c.id FROM c WHERE NOT c.k
"2"
> SELECT VALUE c.id FROM c WHERE c.k = true OR c.missing
"3"
> SELECT VALUE c.id FROM c WHERE c.k = true AND c.missing
(none)
> SELECT VALUE c.id FROM c WHERE (c.missing ?? true) AND c.pk = "a"
"1"
"2"
> SELECT VALUE c.id FROM c WHERE 1
(none)
> SELECT VALUE c.id FROM c WHERE "true"
(none)
> SELECT VALUE c.id FROM c WHERE undefined
(none)
> SELECT VALUE c.id FROM c WHERE c.arr = []
"2"
> SELECT VALUE c.id FROM c WHERE c.arr = null
"3"
> SELECT VALUE c.id FROM c WHERE c.arr[3] = [2]
"1"
> SELECT VALUE c.id FROM c WHERE c.arr[4].y = 3
"1"
> SELECT VALUE c.id FROM c WHERE c.arr[1] = null
"1"
> SELECT VALUE c.id FROM c WHERE c.deep = {"a": {"b": {"c": {"d": [{"e": 5.0}]}}}}
"1"
> SELECT VALUE c.id FROM c WHERE c.deep.a.b > {}
(none)
> SELECT VALUE c.id FROM c WHERE c.id IN ("3", "1", "nope", "3")
"1"
"3"
> SELECT VALUE c.id FROM c WHERE c.k IN (null, true)
"1"
"3"
> SELECT VALUE c.id FROM c WHERE c.k NOT IN (null, true, -5)
"2"
"5"
"6"
> SELECT VALUE c.id FROM c WHERE c.k BETWEEN "A" AND "z"
"5"
"6"
> SELECT VALUE c.id FROM c WHERE c.k NOT BETWEEN -10 AND 0
(none)
> SELECT VALUE c.id FROM c WHERE c.id BETWEEN "2" AND "3"
"2"
"3"
> SELECT VALUE t FROM c JOIN t IN c.arr WHERE c.id = "1"
1
null
"x"
[2]
{"y":3}
> SELECT VALUE t FROM c JOIN t IN c.arr WHERE c.id IN ("2", "3", "4")
(none)
> SELECT VALUE u FROM c JOIN t IN c.arr JOIN u IN t WHERE c.id = "5"
1
2
3
> SELECT VALUE [t, u] FROM c JOIN t IN c.arr JOIN u IN c.arr WHERE c.id = "5"
[[1,2],[1,2]]
[[1,2],[3]]
[[3],[1,2]]
[[3],[3]]
> SELECT VALUE y FROM c JOIN y IN c.arr[3]
2
> SELECT VALUE d FROM d IN c.deep.a.b.c.d
{"e":5}
> SELECT VALUE d.b.c FROM c.deep.a AS d
{"d":[{"e":5}]}
> SELECT VALUE d FROM c.deep.nothing AS d
(none)
> SELECT VALUE COUNT(1) FROM c JOIN t IN c.arr
7
> SELECT VALUE COUNT(t) FROM c JOIN t IN c.arr WHERE IS_NUMBER(t)
1
> SELECT VALUE COUNT(c.k) FROM c
6
> SELECT VALUE COUNT(c.missing) FROM c
0
> SELECT VALUE COUNT(undefined) FROM c
0
> SELECT VALUE COUNT(null) FROM c
7
> SELECT VALUE SUM(c.n) FROM c WHERE c.pk = "a"
0
> SELECT VALUE SUM(c.n) FROM c
(none)
> SELECT SUM(c.n) AS s, COUNT(c.n) AS n FROM c
{"n":5}
> SELECT VALUE AVG(c.missing) FROM c
(none)
> SELECT VALUE MIN(c.k) FROM c
null
> SELECT VALUE MAX(c.k) FROM c
"a"
> SELECT VALUE MIN(c.k) FROM c WHERE c.k != null
false
> SELECT VALUE MAX(c.arr) FROM c
(none)
> SELECT VALUE COUNTIF(c.k) FROM c
1
> SELECT VALUE COUNTIF(IS_STRING(c.k)) FROM c
2
> SELECT VALUE COUNT(1) FROM c WHERE false
0
> SELECT COUNT(1) AS n FROM c WHERE false GROUP BY c.pk
(none)
> SELECT MAX(c.id) AS m FROM c WHERE false
{}
> SELECT c.pk, COUNT(c.k) AS n, MAX(c.k) AS m FROM c GROUP BY c.pk ORDER BY c.pk
{"pk":"a","n":2,"m":false}
{"pk":"b","n":3,"m":"Z"}
{"pk":"c","n":1,"m":"a"}
> SELECT IS_DEFINED(c.s) AS d, COUNT(1) AS n FROM c GROUP BY IS_DEFINED(c.s) ORDER BY IS_DEFINED(c.s)
{"d":false,"n":5}
{"d":true,"n":2}
> SELECT VALUE MAKELIST(c.id) FROM c WHERE c.pk = "none"
[]
> SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n
0
100
9007199254740993
"1"
> SELECT DISTINCT c.nothing FROM c
{}
> SELECT DISTINCT VALUE c.nothing FROM c
(none)
> SELECT DISTINCT VALUE c.pk FROM c ORDER BY c.pk OFFSET 1 LIMIT 1
"b"
> SELECT TOP 0 * FROM c
(none)
> SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 6 LIMIT 10
"7"
> SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 7 LIMIT 10
(none)
> SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 0 LIMIT 0
(none)
> SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.arr) FROM c WHERE c.id = "1"
5
> SELECT VALUE (SELECT VALUE t FROM t IN c.arr) FROM c WHERE c.id = "2"
(none)
> SELECT VALUE (SELECT VALUE t FROM t IN c.arr) FROM c WHERE c.id = "1"
! The cardinality of a scalar subquery result set cannot be greater than one.
> SELECT VALUE FIRST(SELECT VALUE t FROM t IN c.arr) FROM c WHERE c.id IN ("1", "2")
1
> SELECT VALUE LAST(SELECT VALUE t FROM t IN c.arr) FROM c WHERE c.id IN ("1", "2")
{"y":3}
> SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.arr WHERE IS_PRIMITIVE(t)) FROM c WHERE c.id IN ("1", "2")
[1,null,"x"]
[]
> SELECT VALUE EXISTS(SELECT VALUE t FROM t IN c.arr WHERE t = null) FROM c WHERE c.id IN ("1", "2", "3")
true
false
false
> SELECT VALUE EXISTS(SELECT VALUE undefined) FROM c WHERE c.id = "1"
false
> SELECT VALUE ALL(SELECT VALUE ARRAY_LENGTH(t) > 0 FROM t IN c.arr) FROM c WHERE c.id IN ("2", "5")
true
true
> SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.arr ORDER BY t) FROM c WHERE c.id = "1"
[null,1,"x",[2],{"y":3}]
> SELECT VALUE ARRAY(SELECT TOP 2 VALUE t FROM t IN c.arr) FROM c WHERE c.id = "1"
[1,null]
> SELECT VALUE ARRAY(SELECT DISTINCT VALUE t FROM t IN (SELECT VALUE [1, 1.0, "1", null, null]))
[1,"1",null]
> SELECT VALUE x.m FROM c JOIN (SELECT MAX(t) AS m FROM t IN c.arr WHERE IS_NUMBER(t)) AS x WHERE c.id = "1"
1
> SELECT c.id, x AS n FROM c JOIN (SELECT VALUE ARRAY_LENGTH(c.arr)) AS x WHERE x > 0
{"id":"1","n":5}
{"id":"5","n":2}
> SELECT VALUE {"a": c.missing, "b": [c.missing, c.id], "c": {"d": c.missing}} FROM c WHERE c.id = "7"
{"b":["7"],"c":{}}
> SELECT c.id AS a, c.id AS b FROM c WHERE c.id = "7"
{"a":"7","b":"7"}
> SELECT c.id || "!" FROM c WHERE c.id = "7"
{"$1":"7!"}
> SELECT c.pk, 1, c.id || "!", c.missing FROM c WHERE c.id = "7"
{"pk":"c","$1":1,"$2":"7!"}
> SELECT c.arr[0], c.deep.a.b FROM c WHERE c.id = "5"
{"$1":[1,2]}
> select value C.id from C where C.id = "7" order by C.id desc offset 0 limit 1
"7"
> SELECT/**/VALUE 1
! SC1001 6-7 Syntax error, incorrect syntax near '/'.
> SELECT VALUE c.id FROM c -- the last one
"1"
"2"
"3"
"4"
"5"
"6"
"7"
