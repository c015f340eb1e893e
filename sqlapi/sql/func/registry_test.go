package funcs

import (
	"strings"
	"testing"
)

// specified are the function names of the language's published lists; each is evaluated or refused as not supported, and none
// is unknown.
const specified = `ARRAY_CONCAT ARRAY_CONTAINS ARRAY_CONTAINS_ANY ARRAY_CONTAINS_ALL ARRAY_LENGTH ARRAY_SLICE ARRAY_SUM ARRAY_AVG ARRAY_MIN
ARRAY_MAX ARRAY_MEDIAN CHOOSE ObjectToArray SetIntersect SetUnion SetDifference SetEqual IIF GetCurrentDateTime GetCurrentTimestamp
GetCurrentTicks GetCurrentDateTimeStatic GetCurrentTimestampStatic GetCurrentTicksStatic NOW AGO DateTimeAdd DateTimeBin DateTimeDiff
DateTimeFormat DateTimeFromParts DateTimePart DateTimeToTicks DateTimeToTimestamp TicksToDateTime TimestampToDateTime DAY MONTH YEAR
DOCUMENTID ABS ACOS ASIN ATAN ATN2 CEILING COS COT DEGREES EXP FLOOR LOG LOG10 NumberBin PI POWER RADIANS RAND ROUND SIGN SIN SQRT SQUARE
TAN TRUNC IntAdd IntSub IntMul IntDiv IntMod IntBitAnd IntBitOr IntBitXor IntBitNot IntBitLeftShift IntBitRightShift ST_DISTANCE ST_WITHIN
ST_INTERSECTS ST_ISVALID ST_ISVALIDDETAILED ST_AREA CONCAT CONTAINS ENDSWITH STARTSWITH STRINGEQUALS INDEX_OF LastIndexOf LEFT RIGHT LENGTH
LOWER UPPER LTRIM RTRIM TRIM REGEXMATCH RegexExtract RegexExtractAll REPLACE REPLICATE REVERSE SUBSTRING SubstringBefore SubstringAfter
LastSubstringBefore LastSubstringAfter StringJoin StringSplit StringToArray StringToBoolean StringToNull StringToNumber StringToObject ToString
CONTAINS_ALL_CI CONTAINS_ALL_CS CONTAINS_ANY_CI CONTAINS_ANY_CS IS_ARRAY IS_BOOL IS_DATETIME IS_DEFINED IS_FINITE_NUMBER IS_INTEGER IS_NULL
IS_NUMBER IS_OBJECT IS_PRIMITIVE IS_STRING VectorDistance FullTextContains FullTextContainsAll FullTextContainsAny FullTextScore RRF`

func TestEveryPublishedFunctionIsKnown(t *testing.T) {
	for _, name := range strings.Fields(specified) {
		f := Lookup(strings.ToLower(name))
		if f == nil {
			t.Errorf("%s is unknown", name)
		} else if (f.Eval == nil) == (f.Unsupported == "") {
			t.Errorf("%s is both evaluated and refused, or neither", name)
		}
	}
	if Lookup("NO_SUCH") != nil {
		t.Error("an unknown name was found")
	}
}
