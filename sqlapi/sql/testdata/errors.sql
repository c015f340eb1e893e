# Refused texts: the service's codes and positions.
> SELECT
! SC1002 6-6 Syntax error, unexpected end-of-file.
> SELECT * FORM c
! SC1001 9-13 Syntax error, incorrect syntax near 'FORM'.
> SELECT c.value FROM c
! SC1001 9-14 Syntax error, incorrect syntax near 'value'.
> SELECT VALUE c["value"] FROM c
(none)
> SELECT * FROM c WHERE
! SC1002 21-21 Syntax error, unexpected end-of-file.
> SELECT * FROM c WHERE c.a = 
! SC1002 28-28 Syntax error, unexpected end-of-file.
> SELECT * FROM c WHERE c.a == 1
! SC1001 27-28 Syntax error, incorrect syntax near '='.
> SELECT * FROM c WHERE (c.a = 1
! SC1002 30-30 Syntax error, unexpected end-of-file.
> SELECT * FROM c WHERE c.a = "x
! SC1012 28-30 Syntax error, invalid string literal token '"x'.
> SELECT * FROM c WHERE c.a = 'x\q'
! SC1012 28-32 Syntax error, invalid string literal token ''x\q'.
> SELECT * FROM c WHERE d.a = 1
! SC2001 22-23 Identifier 'd' could not be resolved.
> SELECT x FROM c
! SC2001 7-8 Identifier 'x' could not be resolved.
> SELECT * FROM c WHERE FOO(c.a)
! SC2005 22-30 'FOO' is not a recognized built-in function name.
> SELECT * FROM c WHERE STARTSWITH(c.a)
! SC2050 22-37 The STARTSWITH function requires 2 to 3 argument(s).
> SELECT * FROM c WHERE PI(1) = 1
! SC2050 22-27 The PI function requires 0 argument(s).
> SELECT *
! SC2039 7-8 'SELECT *' is not valid if FROM clause is omitted.
> SELECT * FROM c JOIN d IN c.a
! SC2040 7-8 'SELECT *' is only valid with a single input set.
> SELECT * FROM c GROUP BY c.a
! SC2041 7-8 'SELECT *' is not allowed with GROUP BY.
> SELECT c.b FROM c GROUP BY c.a
! SC2102 7-10 Property reference 'c.b' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.
> SELECT c.a, COUNT(1) FROM c
! SC2102 7-10 Property reference 'c.a' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.
> SELECT VALUE COUNT(SUM(c.a)) FROM c
! SC2101 19-27 Cannot perform an aggregate function on an expression containing an aggregate or a subquery.
> SELECT * FROM c WHERE COUNT(1) > 2
! SC2103 22-30 Aggregate function 'COUNT' may not appear here.
> SELECT COUNT(1, 2) FROM c
! SC2050 7-18 The COUNT function requires 1 argument(s).
> SELECT TOP -1 * FROM c
! SC1001 11-12 Syntax error, incorrect syntax near '-'.
> SELECT TOP 4294967296 * FROM c
! SC2060 11-21 The count value provided for a TOP clause must be an integer.
> SELECT TOP 1.5 * FROM c
! SC2060 11-14 The count value provided for a TOP clause must be an integer.
> SELECT * FROM c OFFSET 1
! SC1002 24-24 Syntax error, unexpected end-of-file.
> SELECT * FROM c OFFSET 0 LIMIT 99999999999
! SC2061 31-42 The LIMIT count value exceeds the maximum allowed value.
> SELECT * FROM c ORDER BY c.a + 1
! 2206 25-32 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT * FROM c ORDER BY 1
! 2206 25-26 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT * FROM c ORDER BY c.a[0]
! 2206 25-31 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT * FROM c ORDER BY c
! 2206 25-26 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT * FROM c WHERE c.a = @missing
! The query parameter '@missing' is not specified.
> SELECT * FROM c JOIN c IN c.a
! SC2011 21-29 The input alias 'c' is specified more than once in the FROM clause.
> SELECT FullTextContains(c.a, "x") FROM c
(none)
> SELECT udf.f(c.a, d.b) FROM c
! SC2001 18-19 Identifier 'd' could not be resolved.
> SELECT udf.f(NO_SUCH(1)) FROM c
! SC2005 13-23 'NO_SUCH' is not a recognized built-in function name.
> SELECT * FROM c ORDER BY RANK FullTextScore(c.a, ["x"])
(none)
> SELECT * FROM c;
! SC1010 15-16 Syntax error, invalid token ';'.
> SELECT c.zeta AS a, c.alpha AS a FROM c
! SC2022 31-32 Object creation error, property name 'a' specified more than once.
> SELECT c.id, x.id FROM c JOIN x IN c.l
! SC2022 13-17 Object creation error, property name 'id' specified more than once.
> SELECT VALUE ARRAY(SELECT x.a, x.b AS 'a' FROM x IN c.l) FROM c
! SC2022 38-41 Object creation error, property name 'a' specified more than once.
> SELECT c.a, c.A, c["$1"] AS two, 1 FROM c
(none)
> SELECT c.a AS FROM c
! SC1001 14-18 Syntax error, incorrect syntax near 'FROM'.
> SELECT "é😀" $ FROM c
! SC1010 13-14 Syntax error, invalid token '$'.
> SELECT 12ab FROM c
! SC1001 7-11 Syntax error, incorrect syntax near '12ab'.
> SELECT 1e999 FROM c
! SC1003 7-12 Syntax error, number literal '1e999' is too large.
> selectttt * FROM c
! SC1001 0-9 Syntax error, incorrect syntax near 'selectttt'.
> SELECT VALUE x FROM (SELECT TOP 1 VALUE c.a FROM c) AS x WHERE c.a = 1
! SC2001 63-64 Identifier 'c' could not be resolved.
> SELECT VALUE x FROM (SELECT DISTINCT VALUE c.a FROM c) AS x ORDER BY x.a
! 2206 69-72 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a ORDER BY c.b
! SC2102 55-58 Property reference 'c.b' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.
> SELECT c.a FROM c ORDER BY COUNT(1)
! 2206 27-35 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT c.a FROM c WHERE COUNT(1) > 1 GROUP BY c.a ORDER BY c.a
! SC2103 24-32 Aggregate function 'COUNT' may not appear here.
> SELECT VALUE
! SC1002 12-12 Syntax error, unexpected end-of-file.
> SELECT TOP
! SC1002 10-10 Syntax error, unexpected end-of-file.
> SELECT DISTINCT
! SC1002 15-15 Syntax error, unexpected end-of-file.
> SELECT * FROM
! SC1002 13-13 Syntax error, unexpected end-of-file.
> SELECT * FROM c JOIN
! SC1002 20-20 Syntax error, unexpected end-of-file.
> SELECT * FROM c JOIN t IN
! SC1002 25-25 Syntax error, unexpected end-of-file.
> SELECT * FROM c ORDER
! SC1002 21-21 Syntax error, unexpected end-of-file.
> SELECT * FROM c ORDER BY
! SC1002 24-24 Syntax error, unexpected end-of-file.
> SELECT c.a FROM c GROUP BY
! SC1002 26-26 Syntax error, unexpected end-of-file.
> SELECT * FROM c OFFSET
! SC1002 22-22 Syntax error, unexpected end-of-file.
> SELECT * FROM c OFFSET 1 LIMIT
! SC1002 30-30 Syntax error, unexpected end-of-file.
> SELECT VALUE [1, 2
! SC1002 18-18 Syntax error, unexpected end-of-file.
> SELECT VALUE {"a": 1
! SC1002 20-20 Syntax error, unexpected end-of-file.
> SELECT VALUE {"a":
! SC1002 18-18 Syntax error, unexpected end-of-file.
> SELECT VALUE COUNT(
! SC1002 19-19 Syntax error, unexpected end-of-file.
> SELECT VALUE c.a[1
! SC1002 18-18 Syntax error, unexpected end-of-file.
> SELECT VALUE c.
! SC1002 15-15 Syntax error, unexpected end-of-file.
> SELECT VALUE 1 +
! SC1002 16-16 Syntax error, unexpected end-of-file.
> SELECT VALUE NOT
! SC1002 16-16 Syntax error, unexpected end-of-file.
> SELECT VALUE true ? 1
! SC1002 21-21 Syntax error, unexpected end-of-file.
> SELECT VALUE true ? 1 :
! SC1002 23-23 Syntax error, unexpected end-of-file.
> SELECT VALUE 1 BETWEEN 2
! SC1002 24-24 Syntax error, unexpected end-of-file.
> SELECT VALUE 1 IN (2
! SC1002 20-20 Syntax error, unexpected end-of-file.
> SELECT VALUE "a" LIKE
! SC1002 21-21 Syntax error, unexpected end-of-file.
> SELECT VALUE EXISTS(SELECT VALUE 1
! SC1002 34-34 Syntax error, unexpected end-of-file.
> SELECT , c.a FROM c
! SC1001 7-8 Syntax error, incorrect syntax near ','.
> SELECT c.a, FROM c
! SC1001 12-16 Syntax error, incorrect syntax near 'FROM'.
> SELECT * FROM c WHERE AND c.a
! SC1001 22-25 Syntax error, incorrect syntax near 'AND'.
> SELECT * FROM c WHERE c.a = = 1
! SC1001 28-29 Syntax error, incorrect syntax near '='.
> SELECT * FROM c WHERE )
! SC1001 22-23 Syntax error, incorrect syntax near ')'.
> SELECT * FROM c GROUP c.a
! SC1001 22-23 Syntax error, incorrect syntax near 'c'.
> SELECT * FROM c ORDER c.a
! SC1001 22-23 Syntax error, incorrect syntax near 'c'.
> SELECT VALUE [1 2]
! SC1001 16-17 Syntax error, incorrect syntax near '2'.
> SELECT VALUE {a b}
! SC1001 16-17 Syntax error, incorrect syntax near 'b'.
> SELECT VALUE {1: 2}
! SC1001 14-15 Syntax error, incorrect syntax near '1'.
> SELECT VALUE (1, 2)
! SC1001 15-16 Syntax error, incorrect syntax near ','.
> SELECT VALUE 1 1
! SC1001 15-16 Syntax error, incorrect syntax near '1'.
> SELECT * * FROM c
! SC1001 9-10 Syntax error, incorrect syntax near '*'.
> SELECT *, c.a FROM c
! SC1001 8-9 Syntax error, incorrect syntax near ','.
> SELECT VALUE c..a FROM c
! SC1001 15-16 Syntax error, incorrect syntax near '.'.
> SELECT TOP "1" * FROM c
! SC1001 11-14 Syntax error, incorrect syntax near '"1"'.
> SELECT * FROM c OFFSET -1 LIMIT 1
! SC1001 23-24 Syntax error, incorrect syntax near '-'.
> SELECT * FROM c OFFSET 0 LIMIT -1
! SC1001 31-32 Syntax error, incorrect syntax near '-'.
> SELECT * FROM c ORDER BY c.a UP
! SC1001 29-31 Syntax error, incorrect syntax near 'UP'.
> SELECT * FROM c ORDER BY c.a, ASC
! SC1001 30-33 Syntax error, incorrect syntax near 'ASC'.
> SELECT VALUE c.select FROM c
! SC1001 15-21 Syntax error, incorrect syntax near 'select'.
> SELECT VALUE c.a BETWEEN 1 OR 2 FROM c
! SC1001 27-29 Syntax error, incorrect syntax near 'OR'.
> SELECT VALUE c.a IN 1 FROM c
! SC1001 20-21 Syntax error, incorrect syntax near '1'.
> SELECT VALUE c.a IN () FROM c
! SC1001 21-22 Syntax error, incorrect syntax near ')'.
> SELECT VALUE c.a NOT 1 FROM c
! SC1001 21-22 Syntax error, incorrect syntax near '1'.
> SELECT VALUE @ FROM c
! SC1001 13-14 Syntax error, incorrect syntax near '@'.
> SELECT VALUE # FROM c
! SC1010 13-14 Syntax error, invalid token '#'.
> SELECT VALUE c.a && c.b FROM c
! SC1001 18-19 Syntax error, incorrect syntax near '&'.
> SELECT VALUE d.a FROM c
! SC2001 13-14 Identifier 'd' could not be resolved.
> SELECT VALUE C.a FROM c
! SC2001 13-14 Identifier 'C' could not be resolved.
> SELECT VALUE t FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.a)
! SC2001 13-14 Identifier 't' could not be resolved.
> SELECT VALUE 1 FROM c JOIN t IN d.a
! SC2001 32-33 Identifier 'd' could not be resolved.
> SELECT VALUE c.a FROM c ORDER BY d.a
! SC2001 33-34 Identifier 'd' could not be resolved.
> SELECT VALUE 1 FROM c GROUP BY q.x
! SC2001 31-32 Identifier 'q' could not be resolved.
> SELECT VALUE c.a FROM x AS y
! SC2001 13-14 Identifier 'c' could not be resolved.
> SELECT VALUE x.a FROM x AS y
! SC2001 13-14 Identifier 'x' could not be resolved.
> SELECT VALUE Nope() FROM c
! SC2005 13-19 'Nope' is not a recognized built-in function name.
> SELECT VALUE 1 FROM c WHERE ABS(nope(c.a)) = 1
! SC2005 32-41 'nope' is not a recognized built-in function name.
> SELECT VALUE ABS() FROM c
! SC2050 13-18 The ABS function requires 1 argument(s).
> SELECT VALUE abs(1, 2) FROM c
! SC2050 13-22 The ABS function requires 1 argument(s).
> SELECT VALUE COUNT() FROM c
! SC2050 13-20 The COUNT function requires 1 argument(s).
> SELECT VALUE "😀" || ABS() FROM c
! SC2050 21-26 The ABS function requires 1 argument(s).
> SELECT c.a, c.b FROM c GROUP BY c.a
! SC2102 12-15 Property reference 'c.b' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.
> SELECT VALUE {"x": c.b.d} FROM c GROUP BY c.b.c
! SC2102 19-24 Property reference 'c.b.d' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.
> SELECT COUNT(1), c FROM c
! SC2102 17-18 Property reference 'c' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.
> SELECT VALUE ABS(c.a) FROM c GROUP BY c.b
! SC2102 17-20 Property reference 'c.a' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.
> SELECT VALUE MAX(MIN(c.a)) FROM c
! SC2101 17-25 Cannot perform an aggregate function on an expression containing an aggregate or a subquery.
> SELECT VALUE 1 FROM c GROUP BY COUNT(1)
! SC2103 31-39 Aggregate function 'COUNT' may not appear here.
> SELECT VALUE 1 FROM c JOIN t IN MAX(c.a)
! SC1001 35-36 Syntax error, incorrect syntax near '('.
> SELECT * FROM c JOIN t IN c.a JOIN t IN c.b
! SC2011 35-43 The input alias 't' is specified more than once in the FROM clause.
> SELECT TOP 4294967296 * FROM c
! SC2060 11-21 The count value provided for a TOP clause must be an integer.
> SELECT * FROM c OFFSET 4294967296 LIMIT 1
! SC2062 23-33 The OFFSET count value exceeds the maximum allowed value.
> SELECT * FROM c ORDER BY -c.a
! 2206 25-29 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT * FROM c ORDER BY c.a ?? 1
! 2206 25-33 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT * FROM c ORDER BY LOWER(c.a)
! 2206 25-35 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT * FROM c ORDER BY "a"
! 2206 25-28 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT * FROM c ORDER BY c["a"][0]
! 2206 25-34 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT * FROM c ORDER BY (SELECT VALUE 1)
! 2206 25-41 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT * FROM c ORDER BY @p
! 2206 25-27 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT * FROM c ORDER BY {"a": 1}
! 2206 25-33 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT VALUE t FROM c JOIN t IN c.a ORDER BY t
! 2206 45-46 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT VALUE FullTextScore(c.a, "x") FROM c
! SC2221 13-36 The FullTextScore function is only allowed in the ORDER BY RANK clause.
> SELECT VALUE RRF(1, 2) FROM c
! SC2005 13-22 'RRF' is not a recognized built-in function name.
> SELECT TOP 1 * FROM c OFFSET 0 LIMIT 1
! SC1001 11-12 'TOP' and 'OFFSET LIMIT' can't be used together.
> SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.v, [1, 0]) ASC
! SC2221 59-62 Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.
