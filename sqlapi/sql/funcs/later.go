package funcs

// init registers the functions of the language that this server doesn't support.
func init() {
	unsupported("internal function", "_ST_DISTANCE", "_ST_WITHIN", "_ST_INTERSECTS")
	unsupported("internal function", "_TRY_ARRAY_CONTAINS", "_COMPARE_BSON_BINARYDATA", "_COMPARE_OBJECTS",
		"_M_EVAL_EQ", "_M_EVAL_GT", "_M_EVAL_GTE",
		"_M_EVAL_IN", "_M_EVAL_LT", "_M_EVAL_LTE", "_M_EVAL_NEQ", "_M_EVAL_NIN", "_PROXY_PROJECTION", "HASH")
	unsupported("a type of another API", "C_BINARY", "C_FLOAT32", "C_FLOAT64", "C_GUID", "C_INT16", "C_INT32",
		"C_INT64", "C_INT8", "C_LIST",
		"C_LISTCONTAINS", "C_MAP", "C_MAPCONTAINS", "C_MAPCONTAINSKEY", "C_MAPCONTAINSVALUE", "C_SET", "C_SETCONTAINS",
		"C_TUPLE", "C_UDT", "C_UINT32")
}
