# Type checks and conditionals.
> IS_ARRAY([1])
true
> IS_ARRAY(undefined)
false
> IS_BOOL(false)
true
> IS_BOOL(0)
false
> IS_BOOLEAN(true)
true
> IS_BOOLEAN("true")
false
> IS_DATETIME("2024-01-02T03:04:05.1234567Z")
true
> IS_DATETIME("yesterday")
false
> IS_DEFINED(null)
true
> IS_DEFINED(undefined)
false
> IS_FINITE_NUMBER(1)
true
> IS_FINITE_NUMBER("1")
false
> IS_INTEGER(2)
true
> IS_INTEGER(2.5)
false
> IS_NULL(null)
true
> IS_NULL(undefined)
false
> IS_NUMBER(1.5)
true
> IS_NUMBER("1")
false
> IS_OBJECT({})
true
> IS_OBJECT([])
false
> IS_OBJECT(null)
false
> IS_PRIMITIVE("a")
true
> IS_PRIMITIVE({})
false
> IS_PRIMITIVE(undefined)
false
> IS_STRING("")
true
> IS_STRING(1)
false
> IIF(true, 1, 2)
1
> IIF(1, 1, 2)
2
> IIF(false, 1, undefined)
(none)
> IS_INTEGER(0)
true
> IS_INTEGER(-5)
true
> IS_INTEGER(1.0)
true
> IS_INTEGER(1e3)
true
> IS_INTEGER(0.5)
false
> IS_INTEGER("1")
false
> IS_INTEGER(null)
false
> IS_INTEGER(true)
false
> IS_INTEGER([1])
false
> IS_INTEGER(undefined)
false
> IS_FINITE_NUMBER(0)
true
> IS_FINITE_NUMBER(-1.5)
true
> IS_FINITE_NUMBER(1e300)
true
> IS_FINITE_NUMBER("1")
false
> IS_FINITE_NUMBER(null)
false
> IS_FINITE_NUMBER(undefined)
false
> IS_FINITE_NUMBER([])
false
> IS_DATETIME("2024-02-29T00:00:00Z")
true
> IS_DATETIME("2024-01-01T00:00:00.123Z")
true
> IS_DATETIME("0001-01-01T00:00:00.0000000Z")
true
> IS_DATETIME("9999-12-31T23:59:59.9999999Z")
true
> IS_DATETIME("2023-02-29T00:00:00Z")
false
> IS_DATETIME("2024-13-01T00:00:00Z")
false
> IS_DATETIME("2024-01-01T24:00:01Z")
false
> IS_DATETIME("2024")
false
> IS_DATETIME("")
false
> IS_DATETIME(null)
false
> IS_DATETIME(undefined)
false
> IS_DATETIME(20240101)
false
> IS_DATETIME({})
false
> IS_DATETIME("T00:00:00Z")
false
> IS_DEFINED()
! SC2050 13-25 The IS_DEFINED function requires 1 argument(s).
> IS_NULL(1, 2)
! SC2050 13-26 The IS_NULL function requires 1 argument(s).
> IS_DEFINED({}.a)
false
> IS_DEFINED({"a": null}.a)
true
> IS_DEFINED([].a)
false
> IS_NULL({}.a)
false
> IS_DEFINED([1][1])
false
> IS_STRING("a" || "b")
true
> IS_NUMBER(1 / 0)
false
> IS_BOOL(1 = 1)
true
> IS_BOOL(1 = undefined)
false
> IS_OBJECT({"a": 1}.a)
false
> IS_ARRAY({"a": []}["a"])
true
> is_defined(1)
true
> {"a": 1}["a"]
1
> {"a": {"b": {"c": 1}}}.a.b.c
1
> {"a": 1}.a.b
(none)
> [[1, 2], [3]][0][1]
2
> [1][0.0]
1
> [1][0.5]
(none)
> [1][true]
(none)
> "abc"[0]
(none)
> null.a
(none)
> {"": 1}[""]
1
> {"é": 1}["é"]
1
> [1, null, undefined, [undefined]]
[1,null,[]]
> {"a": undefined, "b": {"c": undefined}}
{"b":{}}
> "\u0041\u00e9"
"Aé"
> "\"\\\/\b\f\n\r\t"
"\"\\/\b\f\n\r\t"
> 'a"b'
"a\"b"
> "it's"
"it's"
