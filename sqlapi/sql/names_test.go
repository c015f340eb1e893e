package sql

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/sqlapi/sql/syntax"

	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// The language's published names. Each is evaluated, or refused as "not supported"; none is unknown.
var published = map[string]string{
	"aggregates": "COUNT SUM AVG MIN MAX MAKELIST MAKESET COUNTIF",
	"arrays": `ARRAY_CONCAT ARRAY_CONTAINS ARRAY_CONTAINS_ANY ARRAY_CONTAINS_ALL ARRAY_LENGTH ARRAY_SLICE ARRAY_SUM ARRAY_AVG ARRAY_MIN
		ARRAY_MAX ARRAY_MEDIAN CHOOSE ObjectToArray SetIntersect SetUnion SetDifference SetEqual`,
	"conditions": "IIF",
	"dates": `GetCurrentDateTime GetCurrentTimestamp GetCurrentTicks GetCurrentDateTimeStatic GetCurrentTimestampStatic GetCurrentTicksStatic NOW
		AGO DateTimeAdd DateTimeBin DateTimeDiff DateTimeFormat DateTimeFromParts DateTimePart DateTimeToTicks DateTimeToTimestamp
		TicksToDateTime TimestampToDateTime DAY MONTH YEAR`,
	"items": "DOCUMENTID",
	"mathematics": `ABS ACOS ASIN ATAN ATN2 CEILING COS COT DEGREES EXP FLOOR LOG LOG10 NumberBin PI POWER RADIANS RAND ROUND SIGN SIN SQRT SQUARE
		TAN TRUNC IntAdd IntSub IntMul IntDiv IntMod IntBitAnd IntBitOr IntBitXor IntBitNot IntBitLeftShift IntBitRightShift IntBitwiseAnd
		IntBitwiseOr IntBitwiseXor IntBitwiseNot IntBitwiseLeftShift IntBitwiseRightShift`,
	"geometries": "ST_DISTANCE ST_WITHIN ST_INTERSECTS ST_ISVALID ST_ISVALIDDETAILED ST_AREA",
	"strings": `CONCAT CONTAINS ENDSWITH STARTSWITH STRINGEQUALS INDEX_OF LastIndexOf LEFT RIGHT LENGTH LOWER UPPER LTRIM RTRIM TRIM REGEXMATCH
		RegexExtract RegexExtractAll REPLACE REPLICATE REVERSE SUBSTRING SubstringBefore SubstringAfter LastSubstringBefore
		LastSubstringAfter StringJoin StringSplit StringToArray StringToBoolean StringToNull StringToNumber StringToObject ToString
		CONTAINS_ALL_CI CONTAINS_ALL_CS CONTAINS_ANY_CI CONTAINS_ANY_CS ContainsAllCi ContainsAllCs ContainsAnyCi ContainsAnyCs`,
	"types":   `IS_ARRAY IS_BOOL IS_DATETIME IS_DEFINED IS_FINITE_NUMBER IS_INTEGER IS_NULL IS_NUMBER IS_OBJECT IS_PRIMITIVE IS_STRING`,
	"vectors": "VectorDistance",
	"text":    "FullTextContains FullTextContainsAll FullTextContainsAny FullTextScore RRF",
	"internal": `_TRY_ARRAY_CONTAINS _REGEX_MATCH _ST_DISTANCE _ST_WITHIN _ST_INTERSECTS _ObjectToArray _M_EVAL_EQ _M_EVAL_GT _M_EVAL_GTE _M_EVAL_IN
		_M_EVAL_LT _M_EVAL_LTE _M_EVAL_NEQ _M_EVAL_NIN _PROXY_PROJECTION _COMPARE_BSON_BINARYDATA _COMPARE_OBJECTS _FullTextScore _FullTextWordCount HASH
		C_BINARY C_FLOAT32 C_FLOAT64 C_GUID C_INT16 C_INT32 C_INT64 C_INT8 C_LIST C_LISTCONTAINS C_MAP C_MAPCONTAINS C_MAPCONTAINSKEY
		C_MAPCONTAINSVALUE C_SET C_SETCONTAINS C_TUPLE C_UDT C_UINT32`,
}

// refusedNames are the names that docs/compat/sql-language.md lists as not evaluated.
const refusedNames = `HASH
	_TRY_ARRAY_CONTAINS _ST_DISTANCE _ST_WITHIN _ST_INTERSECTS _M_EVAL_EQ _M_EVAL_GT _M_EVAL_GTE _M_EVAL_IN _M_EVAL_LT _M_EVAL_LTE _M_EVAL_NEQ _M_EVAL_NIN _PROXY_PROJECTION _COMPARE_BSON_BINARYDATA
	_COMPARE_OBJECTS C_BINARY C_FLOAT32 C_FLOAT64 C_GUID C_INT16 C_INT32 C_INT64 C_INT8 C_LIST C_LISTCONTAINS
	C_MAP C_MAPCONTAINS C_MAPCONTAINSKEY C_MAPCONTAINSVALUE C_SET C_SETCONTAINS C_TUPLE C_UDT C_UINT32`

// ranks are the functions that are only allowed in ORDER BY RANK, each in a query.
var ranks = map[string]string{
	"FullTextScore": `SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.a, "x")`,
	"RRF":           `SELECT VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.a, "x"), FullTextScore(c.b, "y"))`,
}

func TestPublishedNames(t *testing.T) {
	doc, err := os.ReadFile("../../docs/compat/sql-language.md")
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{}
	for _, n := range strings.Fields(refusedNames) {
		refused[n] = true
	}
	seen := map[string]bool{}
	for group, names := range published {
		for _, name := range strings.Fields(names) {
			seen[name] = true
			args := 1
			if f := funcs.Lookup(name); f != nil {
				args = f.Min
			}
			text := "SELECT VALUE " + name + "(" + strings.TrimSuffix(strings.Repeat("c.a, ", args), ", ") + ") FROM c"
			if ranks[name] != "" {
				text = ranks[name]
			}
			_, err := evalDocs(text, nil, fuzzDocs, 0)
			var e *syntax.Error
			switch {
			case !refused[name] && err != nil:
				t.Errorf("%s: %s: %v", group, text, err)
			case refused[name] && (!errors.As(err, &e) || e.Code != syntax.CodeNotSupported ||
				!strings.Contains(e.Msg, "is not supported")):
				t.Errorf("%s: %s: %v, wanted not supported", group, text, err)
			}
			if refused[name] && !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "C_") &&
				!strings.Contains(string(doc), "`"+name+"`") {
				t.Errorf("%s is not named in the compatibility table", name)
			}
		}
	}
	for name := range refused {
		if !seen[name] {
			t.Errorf("%s is refused and not published", name)
		}
	}
}

// TestKeywords: a reserved word isn't a name. In brackets and quotes any text is.
func TestKeywords(t *testing.T) {
	for _, w := range strings.Fields(`AND ARRAY AS ASC BETWEEN BY DESC DISTINCT ESCAPE EXISTS false FROM GROUP IN
		JOIN LEFT LIKE LIMIT NOT null OFFSET OR ORDER RIGHT SELECT TOP true udf undefined VALUE WHERE`) {
		for _, text := range []string{"SELECT c." + w + " FROM c", "SELECT * FROM " + w, "SELECT c.a AS " + w +
			" FROM c"} {
			var e *syntax.Error
			_, err := syntax.Parse(text, syntax.DefaultLimits())
			if !errors.As(err, &e) || e.Code != syntax.CodeSyntax {
				t.Errorf("%s: %v, wanted a syntax error", text, err)
			}
		}
		for _, text := range []string{`SELECT c["` + w + `"] FROM c`, `SELECT c.a AS "` + w + `" FROM c`,
			`SELECT VALUE {"` + w + `": 1}`} {
			if _, err := Compile(text, nil, nil); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		if strings.ToUpper(w) != w {
			continue
		}
		if _, err := syntax.Parse("SELECT c."+strings.ToLower(w)+" FROM c", syntax.DefaultLimits()); err == nil {
			t.Errorf("%s in lower case is a name", w)
		}
	}
	for _, w := range []string{"ALL", "FIRST", "LAST", "all", "first", "last", "COUNT", "True", "NULL", "Undefined",
		"UDF", "value_", "tops"} {
		if _, err := Compile("SELECT c."+w+" FROM c WHERE c."+w+" = 1", nil, nil); err != nil {
			t.Errorf("%s is no name: %v", w, err)
		}
	}
}

// TestPrecedence: each operator binds tighter than those of the rows before it. Pairs are evaluated without parentheses
// and with those that the order of the rows implies.
func TestPrecedence(t *testing.T) {
	for bare, want := range map[string]string{
		`true ? 1 : 2 ?? 3`: `true ? 1 : (2 ?? 3)`, `false ? 1 : false ? 2 : 3`: `false ? 1 : (false ? 2 : 3)`, `undefined ?? true OR false`: `undefined ?? (true OR false)`,
		`true OR false AND false`: `true OR (false AND false)`, `true AND 1 IN (1)`: `true AND (1 IN (1))`, `1 BETWEEN 0 AND 2 AND false`: `(1 BETWEEN 0 AND 2) AND false`,
		`"ab" LIKE "a" || "b"`: `"ab" LIKE ("a" || "b")`, `1 IN (2) OR true`: `(1 IN (2)) OR true`, `1 | 2 ^ 3`: `1 | (2 ^ 3)`, `6 ^ 3 & 1`: `6 ^ (3 & 1)`,
		`1 & 3 = 3`: `1 & (3 = 3)`, `1 = 2 < 3`: `1 = (2 < 3)`, `true = 1 < 3`: `true = (1 < 3)`, `1 < 1 << 2`: `1 < (1 << 2)`, `1 << 1 + 1`: `1 << (1 + 1)`, `8 >> 1 + 1`: `8 >> (1 + 1)`,
		`-8 >>> 28 - 1`: `(-8) >>> (28 - 1)`, `1 + 2 * 3`: `1 + (2 * 3)`, `7 - 2 - 1`: `(7 - 2) - 1`, `8 / 4 / 2`: `(8 / 4) / 2`, `7 % 4 * 2`: `(7 % 4) * 2`, `-2 + 3`: `(-2) + 3`,
		`~1 + 3`: `(~1) + 3`, `NOT false AND false`: `(NOT false) AND false`, `- - 1`: `-(-1)`, `1 != 2 = true`: `(1 != 2) = true`, `1 <> 2`: `1 != 2`, `+3 * 2`: `(+3) * 2`,
	} {
		a, err1 := evalDocs("SELECT VALUE ["+bare+"]", nil, nil, 0)
		b, err2 := evalDocs("SELECT VALUE ["+want+"]", nil, nil, 0)
		if err1 != nil || err2 != nil || strings.Join(a, "") != strings.Join(b, "") {
			t.Errorf("%s is %v %v, %s is %v %v", bare, a, err1, want, b, err2)
		}
	}
}
