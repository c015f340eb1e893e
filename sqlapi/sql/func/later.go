package funcs

// Names that the language knows and this server refuses for now.
func init() {
	unsupported("internal function", "_ST_DISTANCE", "_ST_WITHIN", "_ST_INTERSECTS")
	unsupported("full-text functions are not evaluated yet", "FullTextContains", "FullTextContainsAll", "FullTextContainsAny", "FullTextScore",
		"RRF", "_FullTextScore", "_FullTextWordCount")
	unsupported("internal function", "_TRY_ARRAY_CONTAINS", "_M_EVAL_EQ", "_COMPARE_OBJECTS", "HASH")
}
