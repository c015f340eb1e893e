# Type checks and conditionals.
> IS_ARRAY([1])
true
> IS_ARRAY(undefined)
false
> IS_BOOL(false)
true
> IS_BOOL(0)
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
