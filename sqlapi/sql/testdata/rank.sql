# ORDER BY RANK: by the score of texts, and by several scores together.
doc {"id":"1","text":"Beavers, otters and ducks swim","title":"Water","v":[1,0]}
doc {"id":"2","text":"The duck flies over the duck pond","title":"Air","v":[0.9,0.1]}
doc {"id":"3","text":"Foxes run. A beaver swims.","title":"Land and water","v":[0,1]}
doc {"id":"4","title":"Nothing","v":[0.5,0.5]}
doc {"id":"5","text":"duck","title":"Duck"}
@w = "duck"
@list = ["beaver", "swim"]
@f = {"term": "duk", "distance": 1}
@n = 2
@weights = [1, 2]
> SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, "duck")
"5"
"2"
"1"
"3"
"4"
> SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, @w)
"5"
"2"
"1"
"3"
"4"
> SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, ["duck"])
"5"
"2"
"1"
"3"
"4"
> SELECT TOP 2 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, "beaver", "swimming")
"3"
"1"
> SELECT TOP @n VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, @list)
"3"
"1"
> SELECT TOP 3 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, ["beaver", @w])
"1"
"5"
"3"
> SELECT c.id FROM c ORDER BY RANK FullTextScore(c.text, "beaver swims") OFFSET 1 LIMIT 1
{"id":"5"}
> SELECT c.id, c.title FROM c WHERE FullTextContains(c.text, "duck") ORDER BY RANK FullTextScore(c.text, "duck", "pond")
{"id":"2","title":"Air"}
{"id":"5","title":"Duck"}
{"id":"1","title":"Water"}
> SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, @f)
"5"
"2"
"1"
"3"
"4"
> SELECT VALUE c.id FROM c ORDER BY RANK VectorDistance(c.v, [1, 0])
"1"
"2"
"4"
"3"
"5"
> SELECT TOP 3 VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, "duck"), FullTextScore(c.title, "water"))
"1"
"5"
"2"
> SELECT TOP 3 VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, "duck"), VectorDistance(c.v, [0, 1]))
"3"
"2"
"5"
> SELECT TOP 3 VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, "duck"), VectorDistance(c.v, [0, 1]), [1, 2])
"3"
"2"
"4"
> SELECT TOP 3 VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, "duck"), VectorDistance(c.v, [0, 1]), @weights)
"3"
"2"
"4"
> SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.text) ORDER BY RANK RRF(FullTextScore(c.text, "duck"), FullTextScore(c.title, "water"), [-1, 1])
"1"
"3"
"2"
"5"
> SELECT VALUE c.id FROM c ORDER BY RANK RRF(VectorDistance(c.v, [1, 0]), VectorDistance(c.v, [0, 1])) OFFSET 1 LIMIT 2
"3"
"2"
> SELECT c.id, c.missing FROM c ORDER BY RANK RRF(FullTextScore(c.text, "swim"), FullTextScore(c.text, "beaver"), FullTextScore(c.title, "land"))
{"id":"3"}
{"id":"1"}
{"id":"2"}
{"id":"5"}
{"id":"4"}

# What a query plan orders by.
> SELECT c.id, _FullTextScore(c.text, ["duck"], 5, 16, [3]) AS s FROM c ORDER BY _FullTextScore(c.text, ["duck"], 5, 16, [3]) DESC
{"id":"5","s":0.7499081749324343}
{"id":"2","s":0.6924334607952769}
{"id":"1","s":0.48898651612862337}
{"id":"3","s":0}
{"id":"4"}
> SELECT VALUE c.id FROM c ORDER BY _FullTextScore(c.text, ["duck"], 5, 16, [3])
"3"
"1"
"2"
"5"
"4"
> SELECT VALUE c.id FROM c ORDER BY _VectorScore(c.v, [1, 0]) DESC
"1"
"2"
"4"
"3"
"5"
> SELECT VALUE c.id FROM c ORDER BY _VectorScore(c.v, [1, 0])
"3"
"4"
"2"
"1"
"5"
> SELECT VALUE c.id FROM c ORDER BY _VectorScore(c.v, [1, 0], false, {"distanceFunction": "euclidean"}) DESC
"1"
"2"
"4"
"3"
"5"
> _VectorScore([1, 0], [0, 2], false, {"distanceFunction": "euclidean"})
-2.23606797749979
> _VectorScore([1, 2], [3, 4], false, {"distanceFunction": "dotproduct"})
11

# Refused.
> SELECT * FROM c ORDER BY RANK c.n
! SC2221 30-33 The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.
> SELECT * FROM c ORDER BY RANK FullTextScore(c.text, "a") DESC
! SC2221 57-61 Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.
> SELECT * FROM c ORDER BY RANK FullTextScore(c.text, "a"), c.n
! SC2221 58-61 The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.
> SELECT * FROM c ORDER BY RANK FullTextScore(c.text)
! SC2050 30-51 The FullTextScore function requires at least 2 argument(s).
> SELECT * FROM c ORDER BY RANK FullTextScore(c.text, c.word)
! SC2221 52-58 The second argument of the FullTextScore function must be a non-empty array of string literals.
> SELECT * FROM c ORDER BY RANK FullTextScore(c.text, [])
! SC2221 52-54 The second argument of the FullTextScore function must be a non-empty array of string literals.
> SELECT * FROM c ORDER BY RANK FullTextScore(c.text, [c.n > 1 ? "a" : "b"])
! SC2221 52-73 The second argument of the FullTextScore function must be a non-empty array of string literals.
> SELECT * FROM c ORDER BY RANK FullTextScore(c.text, 5)
! SC2221 52-53 The second argument of the FullTextScore function must be a non-empty array of string literals.
> SELECT * FROM c ORDER BY RANK FullTextScore(c.text, @n)
! The second argument of the FullTextScore function must be a non-empty array of string literals.
> SELECT * FROM c ORDER BY RANK FullTextScore(c.text, {"term": "a", "distance": 5})
! The distance of a fuzzy search must be 0, 1 or 2.
> SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.text, "a"))
! SC2221 30-61 The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.
> SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.text, "a"), 20.5)
! SC2221 62-66 The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.
> SELECT * FROM c ORDER BY RANK RRF(RRF(FullTextScore(c.text, "a"), FullTextScore(c.text, "b")), FullTextScore(c.text, "c"))
! SC2005 34-93 'RRF' is not a recognized built-in function name.
> SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.text, "a"), FullTextScore(c.text, "b"), [1])
! The weights of RRF must be an array with a number for each of its 2 scores.
> SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.text, "a"), FullTextScore(c.text, "b"), @n)
! The weights of RRF must be an array with a number for each of its 2 scores.
> SELECT DISTINCT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, "a")
! SC2221 48-74 The DISTINCT keyword is not allowed with the ORDER BY RANK clause.
> SELECT COUNT(1) FROM c ORDER BY RANK FullTextScore(c.text, "a")
! SC2221 37-63 Aggregates and GROUP BY are not allowed with the ORDER BY RANK clause.
> SELECT VALUE x FROM (SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, "a")) x
! SC2221 60-86 The ORDER BY RANK clause is not allowed in a sub-query.
> SELECT * FROM c ORDER BY RANK FullTextScore(d.text, "a")
! SC2001 44-45 Identifier 'd' could not be resolved.
> SELECT * FROM c ORDER BY FullTextScore(c.text, "a")
! 2206 25-51 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT t FROM c JOIN t IN c.tags ORDER BY RANK FullTextScore(t, "a")
! SC2001 61-62 Identifier 't' could not be resolved.
> SELECT t FROM c JOIN t IN c.tags ORDER BY RANK RRF(FullTextScore(c.text, "a"), FullTextScore(c.text, "b"))
! SC2221 47-106 RRF is not allowed with JOIN.
