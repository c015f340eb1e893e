# Array, set and object functions.
> ARRAY_CONCAT([1], [2, 3], [])
[1,2,3]
> ARRAY_CONCAT([1], 2)
(none)
> ARRAY_CONTAINS([1, 2, 3], 2)
true
> ARRAY_CONTAINS([1, 2, 3], 2.0)
true
> ARRAY_CONTAINS(["a"], "b")
false
> ARRAY_CONTAINS([{"a": 1, "b": 2}], {"a": 1})
false
> ARRAY_CONTAINS([{"a": 1, "b": 2}], {"a": 1}, true)
true
> ARRAY_CONTAINS([{"a": {"b": 1, "c": 2}}], {"a": {"b": 1}}, true)
true
> ARRAY_CONTAINS("abc", "a")
(none)
> ARRAY_CONTAINS([null], null)
true
> ARRAY_CONTAINS([1], undefined)
(none)
> ARRAY_CONTAINS_ANY([1, 2], 5, 2)
true
> ARRAY_CONTAINS_ALL([1, 2], 1, 2)
true
> ARRAY_CONTAINS_ALL([1, 2], 1, 3)
false
> ARRAY_LENGTH([1, 2, 3])
3
> ARRAY_LENGTH("abc")
(none)
> ARRAY_SLICE([1, 2, 3, 4], 1)
[2,3,4]
> ARRAY_SLICE([1, 2, 3, 4], 1, 2)
[2,3]
> ARRAY_SLICE([1, 2, 3, 4], -2, 1)
[3]
> ARRAY_SLICE([1, 2, 3, 4], 9)
[]
> ARRAY_SUM([1, 2, 3.5])
6.5
> ARRAY_SUM([1, "a"])
(none)
> ARRAY_AVG([1, 2])
1.5
> ARRAY_AVG([])
(none)
> ARRAY_MEDIAN([3, 1, 2])
2
> ARRAY_MEDIAN([4, 1, 2, 3])
2.5
> ARRAY_MIN([3, 1, 2])
1
> ARRAY_MAX(["a", 1, true])
"a"
> CHOOSE(2, "a", "b", "c")
"b"
> CHOOSE(0, "a")
(none)
> ObjectToArray({"a": 1, "b": "x"})
[{"k":"a","v":1},{"k":"b","v":"x"}]
> ObjectToArray({"a": 1}, "name", "value")
[{"name":"a","value":1}]
> SetIntersect([1, 2, 2, 3], [2, 3, 4])
[2,3]
> SetUnion([1, 2], [2.0, 3])
[1,2,3]
> SetDifference([1, 2, 3], [2])
[1,3]
> SetEqual([1, 2], [2, 1, 1])
true
> SetEqual([1], [2])
false
> VectorDistance([1, 0], [1, 0])
1
> VectorDistance([3, 4], [0, 0], true, {"distanceFunction": "euclidean"})
5
> VectorDistance([1, 2], [3, 4], false, {"distanceFunction": "dotproduct"})
11
> VectorDistance([1, 2], [3])
(none)
