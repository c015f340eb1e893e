# Mathematical functions.
> ABS(-5)
5
> ABS("x")
(none)
> CEILING(1.2)
2
> FLOOR(-1.2)
-2
> ROUND(2.5)
3
> ROUND(-2.5)
-3
> ROUND(2.345, 2)
2.35
> ROUND(1234, -2)
1200
> TRUNC(-1.7)
-1
> SIGN(-3)
-1
> SQRT(16)
4
> SQRT(-1)
(none)
> SQUARE(4)
16
> POWER(2, 10)
1024
> EXP(0)
1
> LOG(1)
0
> LOG(8, 2)
3
> LOG10(1000)
3
> PI()
3.141592653589793
> SIN(0)
0
> COS(0)
1
> TAN(0)
0
> ASIN(1)
1.5707963267948966
> ACOS(1)
0
> ATAN(0)
0
> ATN2(1, 1)
0.7853981633974483
> COT(1)
0.6420926159343308
> DEGREES(PI())
180
> RADIANS(180)
3.141592653589793
> RAND()
0.5
> NumberBin(17, 5)
15
> NumberBin(1.7, 0.5)
1.5
> IntAdd(9007199254740993, 1)
9007199254740994
> IntSub(5, 7)
-2
> IntMul(6, 7)
42
> IntDiv(7, 2)
3
> IntDiv(7, 0)
(none)
> IntMod(7, 4)
3
> IntAdd(1.5, 1)
(none)
> IntBitAnd(6, 3)
2
> IntBitOr(6, 3)
7
> IntBitXor(6, 3)
5
> IntBitNot(0)
-1
> IntBitLeftShift(1, 40)
1099511627776
> IntBitRightShift(1024, 3)
128
> IntBitwiseAnd(6, 3)
2
> ABS("1")
(none)
> ABS(undefined)
(none)
> ABS(null)
(none)
> ACOS("1")
(none)
> ACOS(undefined)
(none)
> ACOS(null)
(none)
> ASIN("1")
(none)
> ASIN(undefined)
(none)
> ASIN(null)
(none)
> ATAN("1")
(none)
> ATAN(undefined)
(none)
> ATAN(null)
(none)
> CEILING("1")
(none)
> CEILING(undefined)
(none)
> CEILING(null)
(none)
> COS("1")
(none)
> COS(undefined)
(none)
> COS(null)
(none)
> COT("1")
(none)
> COT(undefined)
(none)
> COT(null)
(none)
> DEGREES("1")
(none)
> DEGREES(undefined)
(none)
> DEGREES(null)
(none)
> EXP("1")
(none)
> EXP(undefined)
(none)
> EXP(null)
(none)
> FLOOR("1")
(none)
> FLOOR(undefined)
(none)
> FLOOR(null)
(none)
> LOG("1")
(none)
> LOG(undefined)
(none)
> LOG(null)
(none)
> LOG10("1")
(none)
> LOG10(undefined)
(none)
> LOG10(null)
(none)
> RADIANS("1")
(none)
> RADIANS(undefined)
(none)
> RADIANS(null)
(none)
> ROUND("1")
(none)
> ROUND(undefined)
(none)
> ROUND(null)
(none)
> SIGN("1")
(none)
> SIGN(undefined)
(none)
> SIGN(null)
(none)
> SIN("1")
(none)
> SIN(undefined)
(none)
> SIN(null)
(none)
> SQRT("1")
(none)
> SQRT(undefined)
(none)
> SQRT(null)
(none)
> SQUARE("1")
(none)
> SQUARE(undefined)
(none)
> SQUARE(null)
(none)
> TAN("1")
(none)
> TAN(undefined)
(none)
> TAN(null)
(none)
> TRUNC("1")
(none)
> TRUNC(undefined)
(none)
> TRUNC(null)
(none)
> ABS(0)
0
> ABS(-2.5)
2.5
> ABS(-0)
0
> CEILING(-1.2)
-1
> CEILING(2)
2
> FLOOR(1.9)
1
> FLOOR(-0.5)
-1
> ROUND(0.5)
1
> ROUND(-0.5)
-1
> ROUND(0.49)
0
> ROUND(1.005, 0)
1
> ROUND(15, -1)
20
> ROUND(1.5, 0.5)
(none)
> ROUND(1.25, 1)
1.3
> TRUNC(1.9)
1
> TRUNC(-0.9)
0
> SIGN(0)
0
> SIGN(0.1)
1
> SIGN(-0)
0
> SQRT(0)
0
> SQRT(2.25)
1.5
> SQUARE(-3)
9
> SQUARE(0.5)
0.25
> POWER(0, 0)
1
> POWER(2, -1)
0.5
> POWER(4, 0.5)
2
> POWER(-8, 0.5)
(none)
> POWER(10, 400)
(none)
> POWER(0, -1)
(none)
> POWER("2", 2)
(none)
> POWER(2)
! SC2050 13-21 The POWER function requires 2 argument(s).
> EXP(1000)
(none)
> EXP(-1000)
0
> LOG(0)
(none)
> LOG(-1)
(none)
> LOG(16, 4)
2
> LOG(4, 1)
(none)
> LOG10(0)
(none)
> LOG10(0.1)
-1
> ACOS(2)
(none)
> ASIN(-2)
(none)
> ACOS(1)
0
> ASIN(0)
0
> ATN2(0, 0)
0
> ATN2(0, 1)
0
> ATN2(1, "0")
(none)
> COT(0)
(none)
> DEGREES(0)
0
> RADIANS(0)
0
> ROUND(DEGREES(PI() / 2))
90
> RADIANS(180) = PI()
true
> ROUND(SIN(PI() / 2), 9)
1
> ROUND(COS(PI()), 9)
-1
> ROUND(TAN(PI() / 4), 9)
1
> NumberBin(-1, 5)
-5
> NumberBin(10, 5)
10
> NumberBin(3.7)
3
> NumberBin(1, 0)
(none)
> NumberBin("1", 1)
(none)
> IntAdd(9223372036854775807, 1) = -9223372036854775807 - 1
true
> IntAdd("1", 1)
(none)
> IntAdd(1)
! SC2050 13-22 The IntAdd function requires 2 argument(s).
> IntSub(0, 1)
-1
> IntMul(-3, 4)
-12
> IntMul(0.5, 2)
(none)
> IntDiv(-7, 2)
-3
> IntDiv(6, -2)
-3
> IntMod(-7, 3)
-1
> IntMod(7, 0)
(none)
> IntBitAnd(-1, 255)
255
> IntBitOr(0, 0)
0
> IntBitXor(5, 5)
0
> IntBitNot(-1)
0
> IntBitNot(1.5)
(none)
> IntBitLeftShift(1, 0)
1
> IntBitLeftShift(3, 2)
12
> IntBitRightShift(-8, 1)
-4
> IntBitRightShift(1, 1)
0
> intadd(1, 2)
3
> IIF(true, 1, 2)
1
> IIF(false, 1, 2)
2
> IIF(null, 1, 2)
2
> IIF(undefined, 1, 2)
2
> IIF(1, 1, 2)
2
> IIF("true", 1, 2)
2
> IIF(true, undefined, 2)
(none)
> IIF(1 < 2, "a", "b")
"a"
> 1e308 * 10
(none)
> -1e308 * 10
(none)
> 0 / 0
(none)
> 0 * -1
0
> 0 % 5
0
> 5 % 0
(none)
> -5.5 % 2
-1.5
> 5 % -3
2
> 0.1 + 0.2 = 0.3
false
> 9007199254740992 + 1
9007199254740992
> 1e15 + 0.5
1000000000000000.5
> 2147483648 | 0
-2147483648
> 4294967296 | 0
0
> 1 << 31
-2147483648
> 1 << 32
1
> -1 >>> 0
4294967295
> -1 >> 31
-1
> 1.9 | 0
1
> -1.9 | 0
-1
> 3 & null
(none)
> "3" | 0
(none)
> 1e10 ^ 0
1410065408
> 10 - 4 - 3
3
> 100 / 10 / 2
5
> 2 + 3 * 4 - 5
9
> -2 * -3
6
> 1 + 1 = 2
true
> 1 < 2 = true
true
> 1 | 2 & 2
3
> 6 ^ 3 & 1
7
> 1 + 2 << 1
6
> 1 << 1 + 1
4
> - -1
1
> +5
5
> +"5"
(none)
> NOT false AND true
true
> NOT (false OR true)
false
> false AND true OR true
true
> true OR true AND false
true
> (1 IN (1)) = true
true
> 1 IN (1) = true
! SC1001 22-23 Syntax error, incorrect syntax near '='.
