# Full-text functions. Words are compared by their stems, without case and accents; common English words don't count.
> FullTextContains("Two red bicycles", "red")
true
> FullTextContains("Two red bicycles", "Bicycle")
true
> FullTextContains("Two red bicycles", "red bicycle")
true
> FullTextContains("Two red bicycles", "two bicycles")
false
> FullTextContains("The house of cards", "house cards")
true
> FullTextContains("The house of cards", "the")
false
> FullTextContains("Café au lait", "cafe")
true
> FullTextContains("redder", "red")
false
> FullTextContains("state-of-the-art, e-mail", "state art")
true
> FullTextContains("", "red")
false
> FullTextContains("red", "")
false

# Something that isn't a text has no answer.
> FullTextContains(5, "red")
(none)
> FullTextContains(c.missing, "red")
! SC2001 30-31 Identifier 'c' could not be resolved.
> FullTextContains("red", 5)
(none)
> FullTextContains("red", ["red"])
(none)
> NOT FullTextContains("red", "blue")
true

# All of several phrases, or any of them.
> FullTextContainsAll("Two red bicycles", "red", "bicycle")
true
> FullTextContainsAll("Two red bicycles", "red", "car")
false
> FullTextContainsAny("Two red bicycles", "car", "bicycle")
true
> FullTextContainsAny("Two red bicycles", "car", "train")
false
> FullTextContainsAll("Two red bicycles", "bicycle")
true

# Fuzzy terms.
> FullTextContains("Two red bicycles", {"term": "bycicle", "distance": 2})
true
> FullTextContains("Two red bicycles", {"term": "bycicle", "distance": 1})
false
> FullTextContains("Two red bicycles", {"term": "rad bycycle", "distance": 1})
true
> FullTextContains("Two red bicycles", {"term": "red"})
true
> FullTextContainsAll("Two red bicycles", {"term": "rod", "distance": 1}, {"term": "bicycle", "distance": 2})
true
> FullTextContains("red", {"term": "red", "distance": 3})
! The distance of a fuzzy search must be 0, 1 or 2.
> FullTextContains("red", {"distance": 1})
(none)

# What query plans use.
> _FullTextWordCount("The two red bicycles")
3
> _FullTextWordCount("")
0
> _FullTextWordCount(5)
(none)
> ROUND(_FullTextScore("swim in the deep sea now", ["swim"], 10, 80, [2]), 4)
1.8626
> _FullTextScore("swim", ["run"], 10, 80, [2])
0
> _FullTextScore(null, ["run"], 10, 80, [2])
(none)

# Only in ORDER BY RANK.
> SELECT FullTextScore(c.a, "x") AS s FROM c
! SC2221 7-30 The FullTextScore function is only allowed in the ORDER BY RANK clause.
> SELECT * FROM c WHERE FullTextScore(c.a, "x") > 0
! SC2221 22-45 The FullTextScore function is only allowed in the ORDER BY RANK clause.
> SELECT RRF(c.a, c.b) FROM c
! SC2005 7-20 'RRF' is not a recognized built-in function name.
> FullTextContains("red")
! SC2050 13-36 The FullTextContains function requires at least 2 argument(s).

# In queries: filters, values, groups, parameters, phrases of the item itself.
doc {"id":"1","text":"Beavers, otters and ducks swim","word":"otter","n":1}
doc {"id":"2","text":"The duck flies","word":"duck","n":2}
doc {"id":"3","text":"Foxes run. A beaver swims.","word":"otter","n":3}
doc {"id":"4","word":"x","n":4}
doc {"id":"5","text":["duck"],"n":5}
doc {"id":"6","items":[{"t":"A duck"},{"t":"An otter"}],"n":6}
@w = "beaver"
@f = {"term": "duk", "distance": 1}
@list = ["duck"]
> SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, @w)
"1"
"3"
> SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "beaver swims")
"3"
> SELECT VALUE c.id FROM c WHERE FullTextContainsAny(c.text, @w, "duck") AND c.n > 1
"2"
"3"
> SELECT VALUE c.id FROM c WHERE FullTextContainsAll(c.text, @w, "swimming", "otter")
"1"
> SELECT VALUE c.id FROM c WHERE NOT FullTextContains(c.text, "duck")
"3"
> SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, @f)
"1"
"2"
> SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, @list)
(none)
> SELECT c.id, FullTextContains(c.text, c.word) AS own FROM c WHERE IS_STRING(c.text)
{"id":"1","own":true}
{"id":"2","own":true}
{"id":"3","own":false}
> SELECT c.id, FullTextContains(c.text, c.n < 2 ? @w : "duck") AS has FROM c WHERE IS_STRING(c.text)
{"id":"1","has":true}
{"id":"2","has":true}
{"id":"3","has":false}
> SELECT VALUE i.t FROM c JOIN i IN c.items WHERE FullTextContains(i.t, "ducks")
"A duck"
> SELECT COUNT(1) AS documentCount, [{"totalWordCount": SUM(_FullTextWordCount(c.text)), "hitCounts": [COUNTIF(FullTextContains(c.text, "duck")), COUNTIF(FullTextContains(c.text, "swim"))]}] AS fullTextStatistics FROM c
{"documentCount":6,"fullTextStatistics":[{"totalWordCount":10,"hitCounts":[2,2]}]}
> SELECT VALUE COUNTIF(FullTextContains(c.text, "duck")) FROM c
2
