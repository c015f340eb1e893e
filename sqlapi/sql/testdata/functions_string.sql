# String functions.
> CONCAT("a", "b", "c")
"abc"
> CONCAT("a", 1)
(none)
> CONTAINS("hello", "ell")
true
> CONTAINS("Hello", "hELL", true)
true
> CONTAINS("hello", "x")
false
> CONTAINS(5, "x")
(none)
> CONTAINS("hello", "ell", 1)
(none)
> STARTSWITH("hello", "he")
true
> STARTSWITH("Hello", "HE", true)
true
> STARTSWITH("Hello", "HE")
false
> ENDSWITH("hello", "lo")
true
> ENDSWITH("HELLO", "lo", true)
true
> STRINGEQUALS("abc", "ABC", true)
true
> STRINGEQUALS("abc", "ABC")
false
> INDEX_OF("abcabc", "b")
1
> INDEX_OF("abcabc", "b", 2)
4
> INDEX_OF("abc", "z")
-1
> LastIndexOf("abcabc", "b")
4
> LEFT("hello", 2)
"he"
> LEFT("hello", 99)
"hello"
> LEFT("hello", -1)
""
> RIGHT("hello", 2)
"lo"
> RIGHT("hello", 0)
""
> RIGHT("hello", 99)
"hello"
> LENGTH("héllo")
5
> LENGTH(5)
(none)
> LOWER("ABC")
"abc"
> UPPER("abc")
"ABC"
> LTRIM("  x ")
"x "
> RTRIM("  x ")
"  x"
> TRIM("  x ")
"x"
> TRIM("abcab", "ab")
"c"
> REPLACE("abcabc", "b", "X")
"aXcaXc"
> REPLICATE("ab", 3)
"ababab"
> REPLICATE("ab", -1)
(none)
> REPLICATE("ab", 10001)
(none)
> REVERSE("abc")
"cba"
> SUBSTRING("hello", 1, 3)
"ell"
> SUBSTRING("hello", 3, 99)
"lo"
> SUBSTRING("hello", -1, 2)
"he"
> SUBSTRING("héllo", 1, 1)
"é"
> SubstringBefore("a.b.c", ".")
"a"
> SubstringAfter("a.b.c", ".")
"b.c"
> LastSubstringBefore("a.b.c", ".")
"a.b"
> LastSubstringAfter("a.b.c", ".")
"c"
> StringJoin(["a", "b"], "-")
"a-b"
> StringJoin(["a", 1], "-")
(none)
> StringSplit("a-b-c", "-")
["a","b","c"]
> StringToArray("[1, 2]")
[1,2]
> StringToArray("{}")
(none)
> StringToBoolean("true")
true
> StringToBoolean("  false ")
false
> StringToBoolean("TRUE")
(none)
> StringToNull("null")
null
> StringToNumber("3.5")
3.5
> StringToNumber("x")
(none)
> StringToObject("{\"a\": 1}")
{"a":1}
> ToString(1)
"1"
> ToString(1.5)
"1.5"
> ToString("x")
"x"
> ToString(true)
"true"
> ToString([1, "a"])
"[1,\"a\"]"
> ToString(undefined)
(none)
> REGEXMATCH("abcd", "ABC", "i")
true
> REGEXMATCH("abcd", "^b")
false
> REGEXMATCH("abcd", "(")
(none)
> REGEXMATCH("abcd", "a", "q")
(none)
> RegexExtract("ab12cd34", "[0-9]+")
"12"
> RegexExtractAll("ab12cd34", "[0-9]+")
["12","34"]
> CONTAINS_ALL_CI("Hello World", "hello", "WORLD")
true
> CONTAINS_ALL_CS("Hello World", "hello", "World")
false
> CONTAINS_ANY_CI("Hello World", "nope", "WORLD")
true
> CONTAINS_ANY_CS("Hello World", "nope", "WORLD")
false
> contains("abc", "b")
true
