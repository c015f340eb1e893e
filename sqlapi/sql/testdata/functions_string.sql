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
> CONCAT("a")
! SC2050 13-24 The CONCAT function requires at least 2 argument(s).
> CONCAT("", "")
""
> CONCAT("a", undefined)
(none)
> CONCAT("a", null)
(none)
> CONCAT("é", "😀")
"é😀"
> concat('a', "b")
"ab"
> CONTAINS("abc", "")
true
> CONTAINS("", "")
true
> CONTAINS("", "a")
false
> CONTAINS("ÄÖÜ", "öü", true)
true
> CONTAINS("ÄÖÜ", "öü", false)
false
> CONTAINS(null, "a")
(none)
> CONTAINS("a", undefined)
(none)
> CONTAINS(["a"], "a")
(none)
> CONTAINS("a", "a", null)
(none)
> STARTSWITH("", "")
true
> STARTSWITH("a", "ab")
false
> STARTSWITH("abc", "")
true
> STARTSWITH("😀x", "😀")
true
> STARTSWITH(1, "1")
(none)
> STARTSWITH("abc", "AB", false)
false
> STARTSWITH("abc")
! SC2050 13-30 The STARTSWITH function requires 2 to 3 argument(s).
> ENDSWITH("", "")
true
> ENDSWITH("a", "ba")
false
> ENDSWITH("x😀", "😀")
true
> ENDSWITH("abc", 1)
(none)
> ENDSWITH("ABC", "bc", true)
true
> STRINGEQUALS("", "")
true
> STRINGEQUALS("a", "a ")
false
> STRINGEQUALS("É", "é", true)
true
> STRINGEQUALS("1", 1)
(none)
> STRINGEQUALS(undefined, "a")
(none)
> INDEX_OF("abc", "")
0
> INDEX_OF("", "a")
-1
> INDEX_OF("a😀b", "b")
2
> INDEX_OF("abc", "a", 1)
-1
> INDEX_OF("abc", "c", 99)
-1
> INDEX_OF(null, "a")
(none)
> INDEX_OF("abc", "b", "0")
(none)
> LastIndexOf("aaa", "a")
2
> LastIndexOf("abc", "z")
-1
> LastIndexOf("😀😀", "😀")
1
> LastIndexOf(1, "a")
(none)
> LEFT("", 3)
""
> LEFT("a😀b", 2)
"a😀"
> LEFT("abc", 0)
""
> LEFT("abc", "1")
(none)
> LEFT(null, 1)
(none)
> RIGHT("a😀b", 2)
"😀b"
> RIGHT("abc", -1)
""
> RIGHT("", 1)
""
> RIGHT("abc", undefined)
(none)
> LENGTH("")
0
> LENGTH("😀")
1
> LENGTH("a\u0000b")
3
> LENGTH(null)
(none)
> LENGTH([1, 2])
(none)
> LENGTH(undefined)
(none)
> LOWER("ÄB1")
"äb1"
> UPPER("äb1")
"ÄB1"
> LOWER("")
""
> LOWER(1)
(none)
> UPPER(undefined)
(none)
> UPPER(null)
(none)
> TRIM("\t x \n")
"x"
> TRIM("")
""
> TRIM("   ")
""
> LTRIM("x ")
"x "
> RTRIM(" x")
" x"
> TRIM(5)
(none)
> REPLACE("aaa", "a", "")
""
> REPLACE("aaa", "", "b")
"aaa"
> REPLACE("aaa", "aa", "b")
"ba"
> REPLACE("😀a", "😀", "b")
"ba"
> REPLACE("a", 1, "b")
(none)
> REPLACE("a", "a")
! SC2050 13-30 The REPLACE function requires 3 argument(s).
> REPLICATE("", 5)
""
> REPLICATE("a", 0)
""
> REPLICATE("a", 2.9)
"aa"
> REPLICATE("a", 10001)
(none)
> REPLICATE(1, 2)
(none)
> REPLICATE("a", "2")
(none)
> REVERSE("")
""
> REVERSE("a😀é")
"é😀a"
> REVERSE(12)
(none)
> SUBSTRING("abc", 0, 0)
""
> SUBSTRING("abc", 3, 1)
""
> SUBSTRING("a😀b", 1, 1)
"😀"
> SUBSTRING("abc", 1, -1)
""
> SUBSTRING("abc", "1", 1)
(none)
> SUBSTRING("abc", 1, null)
(none)
> SUBSTRING("abc", 1)
! SC2050 13-32 The SUBSTRING function requires 3 argument(s).
> StringJoin([], "-")
""
> StringJoin(["a"], "-")
"a"
> StringJoin(["a", null], "-")
(none)
> StringJoin("ab", "-")
(none)
> StringJoin(["", ""], "-")
"-"
> StringSplit("", "-")
[""]
> StringSplit("a--b", "-")
["a","","b"]
> StringSplit("abc", "z")
["abc"]
> StringSplit("-", "-")
["",""]
> StringSplit(1, "-")
(none)
> StringToArray("[]")
[]
> StringToArray(" [1, [2]] ")
[1,[2]]
> StringToArray("[1,]")
(none)
> StringToArray("1")
(none)
> StringToArray(1)
(none)
> StringToArray("")
(none)
> StringToBoolean("")
(none)
> StringToBoolean("1")
(none)
> StringToBoolean(true)
(none)
> StringToBoolean("\"true\"")
(none)
> StringToNull("NULL")
(none)
> StringToNull(" null ")
null
> StringToNull(null)
(none)
> StringToNull("undefined")
(none)
> StringToNumber("1e2") = 100
true
> StringToNumber("-0") = 0
true
> StringToNumber("NaN")
(none)
> StringToNumber("Infinity")
(none)
> StringToNumber("0x10")
(none)
> StringToNumber("01")
(none)
> StringToNumber(" 7 ")
7
> StringToNumber("\"7\"")
(none)
> StringToNumber(7)
(none)
> StringToObject("{}")
{}
> StringToObject("[]")
(none)
> StringToObject("{\"a\": {\"b\": [null]}}")
{"a":{"b":[null]}}
> StringToObject("{a: 1}")
(none)
> ToString(null)
"null"
> ToString(false)
"false"
> ToString({"a": [1, "b"]})
"{\"a\":[1,\"b\"]}"
> ToString(-0)
"0"
> ToString(1e3)
"1000"
> ToString("")
""
> SubstringBefore("abc", "z")
"abc"
> SubstringAfter("abc", "z")
"abc"
> SubstringBefore("a.b", "")
""
> LastSubstringAfter("a.b.", ".")
""
> LastSubstringBefore(1, ".")
(none)
> REGEXMATCH("", "^$")
true
> REGEXMATCH("a\nb", "a.b")
false
> REGEXMATCH("a\nb", "a.b", "s")
true
> REGEXMATCH("a\nb", "^b$", "m")
true
> REGEXMATCH("ab", "a b", "x")
true
> REGEXMATCH("AB", "a b", "xi")
true
> REGEXMATCH(1, "1")
(none)
> REGEXMATCH("a", null)
(none)
> RegexExtract("abc", "z")
(none)
> RegexExtractAll("abc", "z")
[]
> CONTAINS_ALL_CS("abc", "a", "d")
false
> CONTAINS_ANY_CS("abc", "x", "c")
true
> CONTAINS_ALL_CI("É", "é")
true
> CONTAINS_ANY_CI("abc", 1)
(none)
> "a" LIKE ""
false
> "" LIKE ""
true
> "" LIKE "%"
true
> "abc" LIKE "%%c"
true
> "😀" LIKE "_"
true
> "a%b" LIKE "a[%]b"
true
> "axb" LIKE "a[%]b"
false
> "a_b" LIKE "a\\_b" ESCAPE "\\"
true
> "axb" LIKE "a\\_b" ESCAPE "\\"
false
> "ABC" LIKE "abc"
false
> null LIKE "%"
(none)
> undefined NOT LIKE "%"
(none)
> 1 LIKE "1"
(none)
> "aab" LIKE "a%ab%"
true
> "mississippi" LIKE "%iss%ip%i"
true
> "b" LIKE "[a-c]"
true
> "d" LIKE "[a-c]"
false
> "b" LIKE "[^a-c]"
false
> REGEXMATCH("price: 42", "(?<=: )[0-9]+")
true
> REGEXMATCH("foobar", "foo(?!bar)")
false
> REGEXMATCH("foobaz", "foo(?!bar)", "i")
true
> REGEXMATCH("abab", "^(ab)\\1$")
true
> REGEXMATCH("abba", "^(ab)\\1$")
false
> RegexExtract("a1 b22", "(?<=b)[0-9]+")
"22"
> RegexExtractAll("aa bc dd", "(.)\\1")
["aa","dd"]
> REGEXMATCH("a b", "a\\ b # a comment", "x")
true
> REGEXMATCH("A\nB", "^ b $", "xim")
true
> REGEXMATCH("a", "(?<=a")
(none)
