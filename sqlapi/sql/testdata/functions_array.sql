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
> ARRAY_CONCAT([], [])
[]
> ARRAY_CONCAT([null], [[1]])
[null,[1]]
> ARRAY_CONCAT([1])
! SC2050 13-30 The ARRAY_CONCAT function requires at least 2 argument(s).
> ARRAY_CONCAT([1], undefined)
(none)
> ARRAY_CONCAT([1], null)
(none)
> ARRAY_CONTAINS([], 1)
false
> ARRAY_CONTAINS([[1]], [1])
true
> ARRAY_CONTAINS([[1]], 1)
false
> ARRAY_CONTAINS(["1"], 1)
false
> ARRAY_CONTAINS([{"a": 1}], {"a": 2}, true)
false
> ARRAY_CONTAINS([{"a": 1, "b": {"c": 2, "d": 3}}], {"b": {"d": 3}}, true)
true
> ARRAY_CONTAINS([{"b": {"c": 2}}], {"b": {"d": 3}}, true)
false
> ARRAY_CONTAINS([{}], {}, true)
true
> ARRAY_CONTAINS([{"a": 1}], {}, true)
true
> ARRAY_CONTAINS([{"a": null}], {"a": null}, true)
true
> ARRAY_CONTAINS([{"a": [1, 2]}], {"a": [1]}, true)
false
> ARRAY_CONTAINS(null, 1)
(none)
> ARRAY_CONTAINS([1, 2], 1, false)
true
> ARRAY_CONTAINS([0], -0)
true
> ARRAY_CONTAINS([true], 1)
false
> ARRAY_CONTAINS_ANY([], 1)
false
> ARRAY_CONTAINS_ANY([null], null)
true
> ARRAY_CONTAINS_ANY([[1, 2]], [1, 2])
true
> ARRAY_CONTAINS_ANY([1], "1", true)
false
> ARRAY_CONTAINS_ALL([], 1)
false
> ARRAY_CONTAINS_ALL([1, "a", null], null, "a")
true
> ARRAY_CONTAINS_ALL("ab", "a")
(none)
> ARRAY_LENGTH([])
0
> ARRAY_LENGTH([undefined, 1])
1
> ARRAY_LENGTH([null, [1, 2]])
2
> ARRAY_LENGTH({"a": 1})
(none)
> ARRAY_LENGTH(undefined)
(none)
> ARRAY_SLICE([1, 2, 3], 0)
[1,2,3]
> ARRAY_SLICE([1, 2, 3], 0, 0)
[]
> ARRAY_SLICE([1, 2, 3], -1)
[3]
> ARRAY_SLICE([1, 2, 3], -99)
[1,2,3]
> ARRAY_SLICE([1, 2, 3], 1, -1)
[]
> ARRAY_SLICE([], 0)
[]
> ARRAY_SLICE("abc", 1)
(none)
> ARRAY_SLICE([1], "0")
(none)
> ARRAY_SUM([])
0
> ARRAY_SUM([0.5, 0.5])
1
> ARRAY_SUM([-1, 1])
0
> ARRAY_SUM([null])
(none)
> ARRAY_SUM([true])
(none)
> ARRAY_AVG([1, 2, 3, 4])
2.5
> ARRAY_AVG([1, null])
(none)
> ARRAY_MEDIAN([])
(none)
> ARRAY_MEDIAN([5])
5
> ARRAY_MEDIAN([2, 1])
1.5
> ARRAY_MEDIAN(["a"])
(none)
> ARRAY_MIN([])
(none)
> ARRAY_MIN([2, "a", null])
null
> ARRAY_MIN([true, 0])
true
> ARRAY_MAX([2, "a", null])
"a"
> ARRAY_MAX([-1, -2])
-1
> ARRAY_MAX("x")
(none)
> CHOOSE(1, "a")
"a"
> CHOOSE(3, "a", "b")
(none)
> CHOOSE(-1, "a")
(none)
> CHOOSE("1", "a")
(none)
> CHOOSE(1.5, "a", "b")
(none)
> ObjectToArray({})
[]
> ObjectToArray({"a": {"b": null}})
[{"k":"a","v":{"b":null}}]
> ObjectToArray([1])
(none)
> ObjectToArray(null)
(none)
> SetIntersect([], [1])
[]
> SetIntersect([1, "1", null], [null, 1])
[1,null]
> SetIntersect([{"a": 1}], [{"a": 1.0}])
[{"a":1}]
> SetIntersect([[1]], [[1], 1])
[[1]]
> SetUnion([], [])
[]
> SetUnion([1, 1], [1])
[1]
> SetUnion([null], [false, 0])
[null,false,0]
> SetUnion([1], 2)
(none)
> SetDifference([], [1])
[]
> SetDifference([1, 1, 2], [3])
[1,2]
> SetDifference([{"a": 1, "b": 2}], [{"b": 2, "a": 1}])
[]
> SetDifference(1, [1])
(none)
> SetEqual([], [])
true
> SetEqual([1, 2], [2, 1])
true
> SetEqual([1], ["1"])
false
> SetEqual([[1]], [[1, 1]])
false
> SetEqual([], null)
(none)
> VectorDistance([0, 0], [1, 1])
(none)
> VectorDistance([1, 0], [0, 1])
0
> VectorDistance([1, 0], [-2, 0])
-1
> VectorDistance([], [])
(none)
> VectorDistance([1, "a"], [1, 2])
(none)
> VectorDistance([0, 0], [3, 4], false, {"distanceFunction": "Euclidean"})
5
> VectorDistance([2, 3], [4, 5], true, {"distanceFunction": "DOTPRODUCT"})
23
> VectorDistance([1], [1], true, {"distanceFunction": "manhattan"})
(none)
> VectorDistance([1])
! SC2050 13-32 The VectorDistance function requires 2 to 4 argument(s).
> VectorDistance(null, [1])
(none)
