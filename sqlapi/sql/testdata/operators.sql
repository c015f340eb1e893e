# Operators on literals.
> 1 + 2 * 3
7
> (1 + 2) * 3
9
> 7 / 2
3.5
> 7 % 3
1
> -7 % 3
-1
> 1 / 0
(none)
> 1 + "a"
(none)
> 1 + null
(none)
> 1.5 + 1.5
3
> -(-3)
3
> +"a"
(none)
> ~5
-6
> 6 & 3
2
> 6 | 3
7
> 6 ^ 3
5
> 1 << 4
16
> -16 >> 2
-4
> -1 >>> 28
15
> 5000000000 | 0
705032704
> "a" || "b" || "c"
"abc"
> "a" || 1
(none)
> 1 = 1.0
true
> 1 = "1"
false
> 1 != "1"
true
> 1 <> 2
true
> null = null
true
> undefined = undefined
(none)
> null = undefined
(none)
> [1, 2] = [1, 2.0]
true
> {"a": 1, "b": 2} = {"b": 2, "a": 1}
true
> {"a": 1} != {"a": 2}
true
> 1 < 2
true
> "a" < "b"
true
> "a" < 1
(none)
> false < true
true
> null < null
false
> null <= null
true
> [1] < [2]
(none)
> true AND undefined
(none)
> false AND undefined
false
> undefined AND false
false
> true AND 1
(none)
> true OR undefined
true
> false OR undefined
(none)
> undefined OR true
true
> NOT true
false
> NOT 1
(none)
> NOT (1 = 2)
true
> 1 = 1 AND 2 = 2 OR 1 = 2
true
> true ? 1 : 2
1
> undefined ? 1 : 2
2
> 1 ? 1 : 2
2
> true ? false ? 1 : 2 : 3
2
> undefined ?? 5
5
> null ?? 5
null
> undefined ?? undefined ?? 7
7
> 2 BETWEEN 1 AND 3
true
> 2 NOT BETWEEN 1 AND 3
false
> "b" BETWEEN "a" AND "c"
true
> 2 BETWEEN "a" AND 3
(none)
> 4 BETWEEN "a" AND 3
false
> 1 IN (1, 2)
true
> 3 NOT IN (1, 2)
true
> undefined IN (1, undefined)
(none)
> [1] IN ([1], 2)
true
> null IN (null)
true
> 7 IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18)
true
> "x" IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18)
false
> "hello" LIKE "h%o"
true
> "hello" LIKE "h_llo"
true
> "hello" NOT LIKE "%x%"
true
> "100%" LIKE "100!%" ESCAPE '!'
true
> "cat" LIKE "[a-c]at"
true
> "hat" LIKE "[^a-c]at"
true
> "a]" LIKE "a]"
true
> "hello" LIKE 5
(none)
> [1, undefined, 2]
[1,2]
> {"a": undefined, "b": 1}
{"b":1}
> {'a': {"b": [1, {"c": null}]}}
{"a":{"b":[1,{"c":null}]}}
> {"a": {"b": [5, 6]}}.a.b[1]
6
> {"a b": 1}["a b"]
1
> [1, 2, 3][1]
2
> [1, 2, 3][3]
(none)
> [1, 2, 3][-1]
(none)
> [1, 2]["0"]
(none)
> {"0": "x"}[0]
(none)
> {"0": "x"}["0"]
"x"
> 0x1F
31
> 1e3
1000
> 1.5e-3
0.0015
> .5
0.5
> 9007199254740993
9007199254740993
> 9223372036854775807 = 9223372036854775807
true
> 'it\'s'
"it's"
> "tab\t\u00e9\ud83d\ude00"
"tab\té😀"
> "😀" || 'x'
"😀x"
> true -- a comment
true
> SELECT 1 AS a, 2 b, 3, 4
{"a":1,"b":2,"$1":3,"$2":4}
> SELECT 'x' AS 'quoted name'
{"quoted name":"x"}
> SELECT VALUE undefined
(none)
> SELECT undefined AS a, 1 AS b
{"b":1}
