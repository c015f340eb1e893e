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
