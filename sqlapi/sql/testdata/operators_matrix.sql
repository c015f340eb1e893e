# Every operator over values of every type; undefined shows as no row.
> undefined = undefined
(none)
> undefined = true
(none)
> undefined = ""
(none)
> undefined = [2]
(none)
> null = null
true
> null = 2
false
> null = "2"
false
> null = {"a": 2}
false
> true = undefined
(none)
> true = true
true
> true = ""
false
> true = [2]
false
> 2 = null
false
> 2 = 2
true
> 2 = "2"
false
> 2 = {"a": 2}
false
> "" = undefined
(none)
> "" = true
false
> "" = ""
true
> "" = [2]
false
> "2" = null
false
> "2" = 2
false
> "2" = "2"
true
> "2" = {"a": 2}
false
> [2] = undefined
(none)
> [2] = true
false
> [2] = ""
false
> [2] = [2]
true
> {"a": 2} = null
false
> {"a": 2} = 2
false
> {"a": 2} = "2"
false
> {"a": 2} = {"a": 2}
true
> undefined != undefined
(none)
> undefined != null
(none)
> undefined != 2
(none)
> undefined != "2"
(none)
> undefined != {"a": 2}
(none)
> null != undefined
(none)
> null != null
false
> null != true
true
> null != ""
true
> null != [2]
true
> true != null
true
> true != true
false
> true != 2
true
> true != "2"
true
> true != {"a": 2}
true
> 2 != undefined
(none)
> 2 != true
true
> 2 != 2
false
> 2 != ""
true
> 2 != [2]
true
> "" != null
true
> "" != 2
true
> "" != ""
false
> "" != "2"
true
> "" != {"a": 2}
true
> "2" != undefined
(none)
> "2" != true
true
> "2" != ""
true
> "2" != "2"
false
> "2" != [2]
true
> [2] != null
true
> [2] != 2
true
> [2] != "2"
true
> [2] != [2]
false
> [2] != {"a": 2}
true
> {"a": 2} != undefined
(none)
> {"a": 2} != true
true
> {"a": 2} != ""
true
> {"a": 2} != [2]
true
> {"a": 2} != {"a": 2}
false
> undefined < undefined
(none)
> undefined < "2"
(none)
> null < null
false
> null < true
(none)
> null < {"a": 2}
(none)
> true < true
false
> true < ""
(none)
> 2 < null
(none)
> 2 < 2
false
> 2 < [2]
(none)
> "" < 2
(none)
> "" < ""
false
> "2" < undefined
(none)
> "2" < "2"
false
> [2] < true
(none)
> [2] < [2]
(none)
> [2] < {"a": 2}
(none)
> {"a": 2} < ""
(none)
> {"a": 2} < {"a": 2}
(none)
> undefined >= undefined
(none)
> undefined >= true
(none)
> undefined >= {"a": 2}
(none)
> null >= null
true
> null >= ""
(none)
> true >= null
(none)
> true >= true
true
> true >= [2]
(none)
> 2 >= 2
true
> "" >= undefined
(none)
> "" >= ""
true
> "" >= "2"
false
> "2" >= true
(none)
> "2" >= "2"
true
> "2" >= {"a": 2}
(none)
> [2] >= ""
(none)
> [2] >= [2]
(none)
> {"a": 2} >= null
(none)
> {"a": 2} >= [2]
(none)
> {"a": 2} >= {"a": 2}
(none)
> false < false
false
> false < true
true
> true < false
false
> -1 < 0
true
> 2.5 < 2
false
> 0 < 0
false
> "" < "a"
true
> "a" < "2"
false
> "a" < "a"
false
> null < null
false
> false <= false
true
> false <= true
true
> true <= false
false
> -1 <= 0
true
> 2.5 <= 2
false
> 0 <= 0
true
> "" <= "a"
true
> "a" <= "2"
false
> "a" <= "a"
true
> null <= null
true
> false > false
false
> false > true
false
> true > false
true
> -1 > 0
false
> 2.5 > 2
true
> 0 > 0
false
> "" > "a"
false
> "a" > "2"
true
> "a" > "a"
false
> null > null
false
> false >= false
true
> false >= true
false
> true >= false
true
> -1 >= 0
false
> 2.5 >= 2
true
> 0 >= 0
true
> "" >= "a"
false
> "a" >= "2"
true
> "a" >= "a"
true
> null >= null
true
> undefined AND undefined
(none)
> undefined AND null
(none)
> undefined AND false
false
> undefined AND true
(none)
> undefined AND 0
(none)
> undefined AND "2"
(none)
> null AND undefined
(none)
> null AND null
(none)
> null AND false
false
> null AND true
(none)
> null AND 0
(none)
> null AND "2"
(none)
> false AND undefined
false
> false AND null
false
> false AND false
false
> false AND true
false
> false AND 0
false
> false AND "2"
false
> true AND undefined
(none)
> true AND null
(none)
> true AND false
false
> true AND true
true
> true AND 0
(none)
> true AND "2"
(none)
> 0 AND undefined
(none)
> 0 AND null
(none)
> 0 AND false
false
> 0 AND true
(none)
> 0 AND 0
(none)
> 0 AND "2"
(none)
> "2" AND undefined
(none)
> "2" AND null
(none)
> "2" AND false
false
> "2" AND true
(none)
> "2" AND 0
(none)
> "2" AND "2"
(none)
> undefined OR undefined
(none)
> undefined OR null
(none)
> undefined OR false
(none)
> undefined OR true
true
> undefined OR 0
(none)
> undefined OR "2"
(none)
> null OR undefined
(none)
> null OR null
(none)
> null OR false
(none)
> null OR true
true
> null OR 0
(none)
> null OR "2"
(none)
> false OR undefined
(none)
> false OR null
(none)
> false OR false
false
> false OR true
true
> false OR 0
(none)
> false OR "2"
(none)
> true OR undefined
true
> true OR null
true
> true OR false
true
> true OR true
true
> true OR 0
true
> true OR "2"
true
> 0 OR undefined
(none)
> 0 OR null
(none)
> 0 OR false
(none)
> 0 OR true
true
> 0 OR 0
(none)
> 0 OR "2"
(none)
> "2" OR undefined
(none)
> "2" OR null
(none)
> "2" OR false
(none)
> "2" OR true
true
> "2" OR 0
(none)
> "2" OR "2"
(none)
> NOT (undefined)
(none)
> NOT (null)
(none)
> NOT (false)
true
> NOT (true)
false
> NOT (-1)
(none)
> NOT (0)
(none)
> NOT (2)
(none)
> NOT (2.5)
(none)
> NOT ("")
(none)
> NOT ("2")
(none)
> NOT ("a")
(none)
> NOT ([])
(none)
> NOT ([2])
(none)
> NOT ({})
(none)
> NOT ({"a": 2})
(none)
> (undefined) ? "yes" : "no"
"no"
> (null) ? "yes" : "no"
"no"
> (false) ? "yes" : "no"
"no"
> (true) ? "yes" : "no"
"yes"
> (-1) ? "yes" : "no"
"no"
> (0) ? "yes" : "no"
"no"
> (2) ? "yes" : "no"
"no"
> (2.5) ? "yes" : "no"
"no"
> ("") ? "yes" : "no"
"no"
> ("2") ? "yes" : "no"
"no"
> ("a") ? "yes" : "no"
"no"
> ([]) ? "yes" : "no"
"no"
> ([2]) ? "yes" : "no"
"no"
> ({}) ? "yes" : "no"
"no"
> ({"a": 2}) ? "yes" : "no"
"no"
> (undefined) ?? "other"
"other"
> (null) ?? "other"
null
> (false) ?? "other"
false
> (true) ?? "other"
true
> (-1) ?? "other"
-1
> (0) ?? "other"
0
> (2) ?? "other"
2
> (2.5) ?? "other"
2.5
> ("") ?? "other"
""
> ("2") ?? "other"
"2"
> ("a") ?? "other"
"a"
> ([]) ?? "other"
[]
> ([2]) ?? "other"
[2]
> ({}) ?? "other"
{}
> ({"a": 2}) ?? "other"
{"a":2}
> -(undefined)
(none)
> -(null)
(none)
> -(false)
(none)
> -(true)
(none)
> -(-1)
1
> -(0)
0
> -(2)
-2
> -(2.5)
-2.5
> -("")
(none)
> -("2")
(none)
> -("a")
(none)
> -([])
(none)
> -([2])
(none)
> -({})
(none)
> -({"a": 2})
(none)
> ~(undefined)
(none)
> ~(null)
(none)
> ~(false)
(none)
> ~(true)
(none)
> ~(-1)
0
> ~(0)
-1
> ~(2)
-3
> ~(2.5)
-3
> ~("")
(none)
> ~("2")
(none)
> ~("a")
(none)
> ~([])
(none)
> ~([2])
(none)
> ~({})
(none)
> ~({"a": 2})
(none)
> 2 + (undefined)
(none)
> 2 + (null)
(none)
> 2 + (true)
(none)
> 2 + (2)
4
> 2 + ("")
(none)
> 2 + ("2")
(none)
> 2 + ([2])
(none)
> 2 + ({"a": 2})
(none)
> (undefined) + 2
(none)
> (null) + 2
(none)
> (true) + 2
(none)
> (2) + 2
4
> ("") + 2
(none)
> ("2") + 2
(none)
> ([2]) + 2
(none)
> ({"a": 2}) + 2
(none)
> 2 * (undefined)
(none)
> 2 * (null)
(none)
> 2 * (true)
(none)
> 2 * (2)
4
> 2 * ("")
(none)
> 2 * ("2")
(none)
> 2 * ([2])
(none)
> 2 * ({"a": 2})
(none)
> (undefined) * 2
(none)
> (null) * 2
(none)
> (true) * 2
(none)
> (2) * 2
4
> ("") * 2
(none)
> ("2") * 2
(none)
> ([2]) * 2
(none)
> ({"a": 2}) * 2
(none)
> 2 & (undefined)
(none)
> 2 & (null)
(none)
> 2 & (true)
(none)
> 2 & (2)
2
> 2 & ("")
(none)
> 2 & ("2")
(none)
> 2 & ([2])
(none)
> 2 & ({"a": 2})
(none)
> (undefined) & 2
(none)
> (null) & 2
(none)
> (true) & 2
(none)
> (2) & 2
2
> ("") & 2
(none)
> ("2") & 2
(none)
> ([2]) & 2
(none)
> ({"a": 2}) & 2
(none)
> (undefined) || "z"
(none)
> (null) || "z"
(none)
> (false) || "z"
(none)
> (true) || "z"
(none)
> (-1) || "z"
(none)
> (0) || "z"
(none)
> (2) || "z"
(none)
> (2.5) || "z"
(none)
> ("") || "z"
"z"
> ("2") || "z"
"2z"
> ("a") || "z"
"az"
> ([]) || "z"
(none)
> ([2]) || "z"
(none)
> ({}) || "z"
(none)
> ({"a": 2}) || "z"
(none)
> (undefined) IN (null, 2, "a", [2])
(none)
> (null) IN (null, 2, "a", [2])
true
> (false) IN (null, 2, "a", [2])
false
> (true) IN (null, 2, "a", [2])
false
> (-1) IN (null, 2, "a", [2])
false
> (0) IN (null, 2, "a", [2])
false
> (2) IN (null, 2, "a", [2])
true
> (2.5) IN (null, 2, "a", [2])
false
> ("") IN (null, 2, "a", [2])
false
> ("2") IN (null, 2, "a", [2])
false
> ("a") IN (null, 2, "a", [2])
true
> ([]) IN (null, 2, "a", [2])
false
> ([2]) IN (null, 2, "a", [2])
true
> ({}) IN (null, 2, "a", [2])
false
> ({"a": 2}) IN (null, 2, "a", [2])
false
> (undefined) BETWEEN 0 AND 2
(none)
> (null) BETWEEN 0 AND 2
(none)
> (false) BETWEEN 0 AND 2
(none)
> (true) BETWEEN 0 AND 2
(none)
> (-1) BETWEEN 0 AND 2
false
> (0) BETWEEN 0 AND 2
true
> (2) BETWEEN 0 AND 2
true
> (2.5) BETWEEN 0 AND 2
false
> ("") BETWEEN 0 AND 2
(none)
> ("2") BETWEEN 0 AND 2
(none)
> ("a") BETWEEN 0 AND 2
(none)
> ([]) BETWEEN 0 AND 2
(none)
> ([2]) BETWEEN 0 AND 2
(none)
> ({}) BETWEEN 0 AND 2
(none)
> ({"a": 2}) BETWEEN 0 AND 2
(none)
> IS_DEFINED(undefined)
false
> IS_DEFINED(null)
true
> IS_DEFINED(true)
true
> IS_DEFINED(2)
true
> IS_DEFINED("")
true
> IS_DEFINED("2")
true
> IS_DEFINED([2])
true
> IS_DEFINED({"a": 2})
true
> IS_DEFINED(false)
true
> IS_NULL(undefined)
false
> IS_NULL(null)
true
> IS_NULL(true)
false
> IS_NULL(2)
false
> IS_NULL("")
false
> IS_NULL("2")
false
> IS_NULL([2])
false
> IS_NULL({"a": 2})
false
> IS_NULL(false)
false
> IS_BOOL(undefined)
false
> IS_BOOL(null)
false
> IS_BOOL(true)
true
> IS_BOOL(2)
false
> IS_BOOL("")
false
> IS_BOOL("2")
false
> IS_BOOL([2])
false
> IS_BOOL({"a": 2})
false
> IS_BOOL(false)
true
> IS_NUMBER(undefined)
false
> IS_NUMBER(null)
false
> IS_NUMBER(true)
false
> IS_NUMBER(2)
true
> IS_NUMBER("")
false
> IS_NUMBER("2")
false
> IS_NUMBER([2])
false
> IS_NUMBER({"a": 2})
false
> IS_NUMBER(false)
false
> IS_STRING(undefined)
false
> IS_STRING(null)
false
> IS_STRING(true)
false
> IS_STRING(2)
false
> IS_STRING("")
true
> IS_STRING("2")
true
> IS_STRING([2])
false
> IS_STRING({"a": 2})
false
> IS_STRING(false)
false
> IS_ARRAY(undefined)
false
> IS_ARRAY(null)
false
> IS_ARRAY(true)
false
> IS_ARRAY(2)
false
> IS_ARRAY("")
false
> IS_ARRAY("2")
false
> IS_ARRAY([2])
true
> IS_ARRAY({"a": 2})
false
> IS_ARRAY(false)
false
> IS_OBJECT(undefined)
false
> IS_OBJECT(null)
false
> IS_OBJECT(true)
false
> IS_OBJECT(2)
false
> IS_OBJECT("")
false
> IS_OBJECT("2")
false
> IS_OBJECT([2])
false
> IS_OBJECT({"a": 2})
true
> IS_OBJECT(false)
false
> IS_PRIMITIVE(undefined)
false
> IS_PRIMITIVE(null)
true
> IS_PRIMITIVE(true)
true
> IS_PRIMITIVE(2)
true
> IS_PRIMITIVE("")
true
> IS_PRIMITIVE("2")
true
> IS_PRIMITIVE([2])
false
> IS_PRIMITIVE({"a": 2})
false
> IS_PRIMITIVE(false)
true
