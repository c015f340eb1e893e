# Queries that an index may answer: single paths, several, ordered, covered, over arrays and geometries.
doc {"id":"a1","pk":"p1","cat":"fruit","n":1,"price":2.5,"o":{"x":1,"y":"u"},"tags":["red","round"],"on":true,"loc":{"type":"Point","coordinates":[10,50]}}
doc {"id":"a2","pk":"p1","cat":"fruit","n":2,"price":2.5,"o":{"x":2,"y":"v"},"tags":["green"],"on":false,"loc":{"type":"Point","coordinates":[10.01,50.01]}}
doc {"id":"a3","pk":"p2","cat":"fruit","n":3,"price":4,"o":{"x":1,"y":"v"},"tags":["red","long"],"loc":{"type":"Point","coordinates":[11,51]}}
doc {"id":"a4","pk":"p2","cat":"root","n":2,"price":1,"o":{"x":3},"tags":[],"on":true}
doc {"id":"a5","pk":"p3","cat":"root","n":5,"price":1.25,"o":{"x":null,"y":"u"},"tags":["long",7],"on":null}
doc {"id":"a6","pk":"p3","cat":"rooted","n":"5","price":1,"o":{"y":"w"},"tags":[["red"]]}
doc {"id":"a7","pk":"p4","cat":"Root","n":null,"price":9,"o":[1,2],"tags":"red"}
doc {"id":"a8","pk":"p4","n":-1,"price":2.5,"o":{"x":1,"y":"u","z":{"w":[1,2]}},"tags":["red","red"],"loc":{"type":"Polygon","coordinates":[[[9,49],[12,49],[12,52],[9,52],[9,49]]]}}
doc {"id":"a9","pk":"p5","cat":"fruit","n":4,"price":2.5,"o":{"x":2},"loc":{"type":"Point","coordinates":[-70,-30]}}

> SELECT VALUE c.id FROM c WHERE c.cat = "fruit"
"a1"
"a2"
"a3"
"a9"
> SELECT VALUE c.id FROM c WHERE c.cat = "fruit" AND c.n > 1
"a2"
"a3"
"a9"
> SELECT VALUE c.id FROM c WHERE c.cat = "fruit" AND c.n > 1 AND c.price = 2.5
"a2"
"a9"
> SELECT VALUE c.id FROM c WHERE c.cat = "root" OR c.n = 3
"a3"
"a4"
"a5"
> SELECT VALUE c.id FROM c WHERE c.cat = "root" OR c.o.x = 2 OR c.price > 8
"a2"
"a4"
"a5"
"a7"
"a9"
> SELECT VALUE c.id FROM c WHERE (c.cat = "fruit" AND c.n = 1) OR (c.cat = "root" AND c.n = 5)
"a1"
"a5"
> SELECT VALUE c.id FROM c WHERE c.cat IN ("root", "rooted") AND c.price < 1.1
"a4"
"a6"
> SELECT VALUE c.id FROM c WHERE c.n IN (1, 2, "5", null)
"a1"
"a2"
"a4"
"a6"
"a7"
> SELECT VALUE c.id FROM c WHERE c.n NOT IN (1, 2)
"a3"
"a5"
"a6"
"a7"
"a8"
"a9"
> SELECT VALUE c.id FROM c WHERE c.n BETWEEN 2 AND 4 AND c.cat != "root"
"a2"
"a3"
"a9"
> SELECT VALUE c.id FROM c WHERE c.n >= 2 AND c.n < 4
"a2"
"a3"
"a4"
> SELECT VALUE c.id FROM c WHERE c.n > 1 AND c.n > 3
"a5"
"a9"
> SELECT VALUE c.id FROM c WHERE c.n > 3 AND c.n < 2
(none)
> SELECT VALUE c.id FROM c WHERE c.cat >= "root"
"a4"
"a5"
"a6"
> SELECT VALUE c.id FROM c WHERE STARTSWITH(c.cat, "root")
"a4"
"a5"
"a6"
> SELECT VALUE c.id FROM c WHERE STARTSWITH(c.cat, "root", true)
"a4"
"a5"
"a6"
"a7"
> SELECT VALUE c.id FROM c WHERE c.cat LIKE "roo%"
"a4"
"a5"
"a6"
> SELECT VALUE c.id FROM c WHERE c.cat LIKE "%oot"
"a4"
"a5"
"a7"
> SELECT VALUE c.id FROM c WHERE c.cat LIKE "r_ot%" AND c.n = 2
"a4"
> SELECT VALUE c.id FROM c WHERE CONTAINS(c.cat, "oo")
"a4"
"a5"
"a6"
"a7"
> SELECT VALUE c.id FROM c WHERE c.o.x = 1
"a1"
"a3"
"a8"
> SELECT VALUE c.id FROM c WHERE c.o.x = null
"a5"
> SELECT VALUE c.id FROM c WHERE c.o.y = "u" AND c.o.x = 1
"a1"
"a8"
> SELECT VALUE c.id FROM c WHERE c.o.z.w[1] = 2
"a8"
> SELECT VALUE c.id FROM c WHERE c.o[0] = 1
"a7"
> SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.o.y) AND NOT IS_DEFINED(c.on)
"a3"
"a6"
"a8"
> SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.cat)
"a8"
> SELECT VALUE c.id FROM c WHERE IS_STRING(c.n)
"a6"
> SELECT VALUE c.id FROM c WHERE IS_NULL(c.on)
"a5"
> SELECT VALUE c.id FROM c WHERE c.on
"a1"
"a4"
> SELECT VALUE c.id FROM c WHERE NOT c.on
"a2"
> SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, "red")
"a1"
"a3"
"a8"
> SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, ["red"])
"a6"
> SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, "red") AND ARRAY_CONTAINS(c.tags, "long")
"a3"
> SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, "green") OR c.cat = "root"
"a2"
"a4"
"a5"
> SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(["fruit", "Root"], c.cat)
"a1"
"a2"
"a3"
"a7"
"a9"
> SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = "long")
"a3"
"a5"
> SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t > "long" AND t < "s")
"a1"
"a3"
"a8"
> SELECT VALUE {"i": c.id, "t": t} FROM c JOIN t IN c.tags WHERE t = "red"
{"i":"a1","t":"red"}
{"i":"a3","t":"red"}
{"i":"a8","t":"red"}
{"i":"a8","t":"red"}
> SELECT VALUE {"i": c.id, "t": t} FROM c JOIN t IN c.tags WHERE t = "red" AND c.n = 1
{"i":"a1","t":"red"}
> SELECT VALUE c.id FROM c WHERE c.tags[0] = "red"
"a1"
"a3"
"a8"
> SELECT VALUE c.id FROM c WHERE c.tags = "red"
"a7"
> SELECT VALUE c.id FROM c WHERE c.o = {"x": 2}
"a9"
> SELECT VALUE c.id FROM c WHERE c.cat = c.pk OR c.n = c.o.x
"a1"
"a2"
> SELECT VALUE c.id FROM c ORDER BY c.price
"a4"
"a6"
"a5"
"a1"
"a2"
"a8"
"a9"
"a3"
"a7"
> SELECT VALUE c.id FROM c ORDER BY c.price DESC
"a7"
"a3"
"a9"
"a8"
"a2"
"a1"
"a5"
"a6"
"a4"
> SELECT VALUE c.id FROM c ORDER BY c.n
"a7"
"a8"
"a1"
"a2"
"a4"
"a3"
"a9"
"a5"
"a6"
> SELECT VALUE c.id FROM c ORDER BY c.cat DESC
"a6"
"a5"
"a4"
"a9"
"a3"
"a2"
"a1"
"a7"
"a8"
> SELECT VALUE c.id FROM c WHERE c.n >= 2 ORDER BY c.n
"a2"
"a4"
"a3"
"a9"
"a5"
> SELECT VALUE c.id FROM c WHERE c.n >= 2 ORDER BY c.n DESC
"a5"
"a9"
"a3"
"a4"
"a2"
> SELECT TOP 3 VALUE c.id FROM c WHERE c.price > 1 ORDER BY c.price
"a5"
"a1"
"a2"
> SELECT VALUE c.id FROM c WHERE c.cat = "fruit" ORDER BY c.n DESC
"a9"
"a3"
"a2"
"a1"
> SELECT VALUE c.id FROM c WHERE c.cat = "fruit" ORDER BY c.cat, c.n DESC
"a9"
"a3"
"a2"
"a1"
> SELECT VALUE c.id FROM c ORDER BY c.cat, c.n
"a8"
"a7"
"a1"
"a2"
"a3"
"a9"
"a4"
"a5"
"a6"
> SELECT VALUE c.id FROM c ORDER BY c.cat DESC, c.n DESC
"a6"
"a5"
"a4"
"a9"
"a3"
"a2"
"a1"
"a7"
"a8"
> SELECT VALUE c.id FROM c ORDER BY c.price, c.n DESC
"a6"
"a4"
"a5"
"a9"
"a2"
"a1"
"a8"
"a3"
"a7"
> SELECT VALUE c.id FROM c ORDER BY c.price DESC, c.n
"a7"
"a3"
"a8"
"a1"
"a2"
"a9"
"a5"
"a4"
"a6"
> SELECT VALUE c.id FROM c ORDER BY c.price, c.cat, c.n
"a4"
"a6"
"a5"
"a8"
"a1"
"a2"
"a9"
"a3"
"a7"
> SELECT VALUE c.id FROM c WHERE c.price = 2.5 AND c.n > 0 ORDER BY c.price, c.n
"a1"
"a2"
"a9"
> SELECT VALUE c.id FROM c WHERE c.price >= 1 AND c.cat = "root" ORDER BY c.cat, c.price OFFSET 1 LIMIT 1
"a5"
> SELECT VALUE c.id FROM c WHERE c.cat > "a" ORDER BY c.cat OFFSET 2 LIMIT 3
"a3"
"a9"
"a4"
> SELECT VALUE c.id FROM c WHERE c.cat IN ("fruit", "root") ORDER BY c.cat DESC, c.price DESC, c.n
"a5"
"a4"
"a3"
"a1"
"a2"
"a9"
> SELECT c.cat, c.n FROM c WHERE c.n > 0 ORDER BY c.n, c.cat
{"cat":"fruit","n":1}
{"cat":"fruit","n":2}
{"cat":"root","n":2}
{"cat":"fruit","n":3}
{"cat":"fruit","n":4}
{"cat":"root","n":5}
> SELECT VALUE c.id FROM c ORDER BY c.o.x, c.price
"a6"
"a7"
"a5"
"a1"
"a8"
"a3"
"a2"
"a9"
"a4"
> SELECT VALUE c.id FROM c WHERE STARTSWITH(c.cat, "r") ORDER BY c.cat
"a4"
"a5"
"a6"
> SELECT VALUE COUNT(1) FROM c WHERE c.cat = "fruit"
4
> SELECT VALUE COUNT(1) FROM c WHERE c.n > 1
5
> SELECT VALUE COUNT(1) FROM c WHERE c.cat IN ("root", "Root") 
3
> SELECT VALUE COUNT(c.cat) FROM c
8
> SELECT VALUE COUNT(c.tags) FROM c WHERE c.n > 0
5
> SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.tags, "red")
3
> SELECT VALUE COUNT(1) FROM c WHERE c.cat = "fruit" AND c.price = 2.5
3
> SELECT VALUE COUNT(1) FROM c WHERE STARTSWITH(c.cat, "root")
3
> SELECT VALUE MIN(c.price) FROM c
1
> SELECT VALUE MAX(c.price) FROM c
9
> SELECT VALUE MAX(c.n) FROM c WHERE c.n < 4
3
> SELECT VALUE MIN(c.cat) FROM c WHERE c.cat > "fruit"
"root"
> SELECT VALUE MIN(c.n) FROM c
null
> SELECT VALUE MAX(c.n) FROM c
"5"
> SELECT VALUE MIN(c.o) FROM c
(none)
> SELECT VALUE MAX(c.nothing) FROM c
(none)
> SELECT MIN(c.price) AS low, MAX(c.price) AS high, COUNT(1) AS n FROM c WHERE c.cat = "fruit"
{"low":2.5,"high":4,"n":4}
> SELECT VALUE SUM(c.price) FROM c WHERE c.cat = "fruit"
11.5
> SELECT VALUE AVG(c.n) FROM c WHERE c.n >= 0
2.8333333333333335
> SELECT DISTINCT VALUE c.cat FROM c
"fruit"
"root"
"rooted"
"Root"
> SELECT DISTINCT VALUE c.price FROM c WHERE c.price > 1
2.5
4
1.25
9
> SELECT DISTINCT VALUE c.price FROM c ORDER BY c.price DESC
9
4
2.5
1.25
1
> SELECT DISTINCT c.cat FROM c WHERE c.cat > "a"
{"cat":"fruit"}
{"cat":"root"}
{"cat":"rooted"}
> SELECT DISTINCT VALUE c.n FROM c
1
2
3
5
"5"
null
-1
4
> SELECT DISTINCT VALUE c.o.x FROM c
1
2
3
null
> SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags
"red"
"round"
"green"
"long"
7
["red"]
> SELECT c.cat, COUNT(1) AS n FROM c GROUP BY c.cat
{"cat":"fruit","n":4}
{"cat":"root","n":2}
{"cat":"rooted","n":1}
{"cat":"Root","n":1}
{"n":1}
> SELECT c.cat, COUNT(1) AS n FROM c WHERE c.cat > "g" GROUP BY c.cat
{"cat":"root","n":2}
{"cat":"rooted","n":1}
> SELECT c.price, COUNT(1) AS n FROM c GROUP BY c.price ORDER BY c.price
{"price":1,"n":2}
{"price":1.25,"n":1}
{"price":2.5,"n":4}
{"price":4,"n":1}
{"price":9,"n":1}
> SELECT c.cat, MIN(c.price) AS low, MAX(c.n) AS hi FROM c GROUP BY c.cat
{"cat":"fruit","low":2.5,"hi":4}
{"cat":"root","low":1,"hi":5}
{"cat":"rooted","low":1,"hi":"5"}
{"cat":"Root","low":9,"hi":null}
{"low":2.5,"hi":-1}
> SELECT c.cat, c.price, COUNT(1) AS n FROM c GROUP BY c.cat, c.price ORDER BY c.cat, c.price
{"price":2.5,"n":1}
{"cat":"Root","price":9,"n":1}
{"cat":"fruit","price":2.5,"n":3}
{"cat":"fruit","price":4,"n":1}
{"cat":"root","price":1,"n":1}
{"cat":"root","price":1.25,"n":1}
{"cat":"rooted","price":1,"n":1}
> SELECT VALUE c.n FROM c WHERE c.n > 1
2
3
2
5
4
> SELECT VALUE c.cat FROM c WHERE c.cat = "root"
"root"
"root"
> SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.loc, {"type":"Point","coordinates":[10,50]}) < 2000
"a1"
"a2"
"a8"
> SELECT VALUE c.id FROM c WHERE ST_DISTANCE({"type":"Point","coordinates":[-70,-30]}, c.loc) <= 0
"a9"
> SELECT VALUE c.id FROM c WHERE ST_WITHIN(c.loc, {"type":"Polygon","coordinates":[[[9.5,49.5],[11.5,49.5],[11.5,51.5],[9.5,51.5],[9.5,49.5]]]})
"a1"
"a2"
"a3"
> SELECT VALUE c.id FROM c WHERE ST_INTERSECTS(c.loc, {"type":"Point","coordinates":[11,51]})
"a3"
"a8"
> SELECT VALUE c.id FROM c WHERE ST_WITHIN(c.loc, {"type":"Polygon","coordinates":[[[9.5,49.5],[11.5,49.5],[11.5,51.5],[9.5,51.5],[9.5,49.5]]]}) AND c.cat = "fruit" AND c.n > 1
"a2"
"a3"
> SELECT VALUE COUNT(1) FROM c WHERE ST_DISTANCE(c.loc, {"type":"Point","coordinates":[10,50]}) > 100000
2
