// Package gvtest provides samples of all types of gvalue for the tests of the serializers.
package gvtest

import (
	"math"
	"math/big"
	"time"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// Scalars returns values of every type without parts, with boundary values.
func Scalars() []any {
	zone := time.FixedZone("", -5400)
	return []any{
		nil, true, false,
		int8(-128), int16(-32768), int32(math.MinInt32), int32(math.MaxInt32), int64(math.MinInt64), int64(1) << 53,
		float32(0.1), float64(0.1), math.Inf(1), math.Inf(-1), 1e300, float64(1),
		big.NewInt(0), big.NewInt(127), big.NewInt(128), big.NewInt(-128), big.NewInt(-129),
		new(big.Int).Lsh(big.NewInt(-1), 100),
		&gvalue.BigDecimal{Unscaled: big.NewInt(-12345), Scale: 3},
		"", "plain", "quote \" back \\ slash / tab \t nul \x00 ü € 𝄞 \u2028",
		gvalue.Char('ü'), gvalue.Class("org.example.Thing"),
		gvalue.UUID{0x41, 0xd2, 0xe2, 0x8a, 0x20, 0xa4, 0x4a, 0xb0, 0xb3, 0x79, 0xd8, 0x10, 0xde, 0xde, 0x37, 0x86},
		gvalue.Date(1690934400123), gvalue.Timestamp(-1),
		gvalue.OffsetDateTime{Time: time.Date(2023, 8, 2, 1, 2, 3, 400, zone)},
		gvalue.OffsetDateTime{Time: time.Date(2023, 8, 2, 0, 0, 0, 0, time.UTC)},
		gvalue.ZonedDateTime{Time: time.Date(1969, 12, 31, 23, 59, 59, 0, zone)},
		gvalue.Instant{Seconds: 1690934400, Nanos: 5}, gvalue.Duration{Seconds: 3723, Nanos: 500000000},
		gvalue.Duration{},
		gvalue.LocalDate{Year: 2024, Month: 2, Day: 29}, gvalue.LocalTime(3661e9), gvalue.LocalTime(1),
		gvalue.LocalDateTime{Date: gvalue.LocalDate{Year: 1, Month: 1, Day: 1}, Time: 86399e9},
		gvalue.MonthDay{Month: 12, Day: 24}, gvalue.OffsetTime{Time: 60e9, Offset: 3600}, gvalue.ZoneOffset(-12600),
		gvalue.Period{Years: 1, Months: -2, Days: 3}, gvalue.Period{}, gvalue.Year(2020),
		gvalue.YearMonth{Year: 2020, Month: 5},
		gvalue.InetAddress{127, 0, 0, 1}, gvalue.InetAddress{15: 1},
		[]byte{0, 1, 255}, []byte{},
		gvalue.TID, gvalue.OUT, gvalue.Asc, gvalue.Local, gvalue.Mixed, gvalue.Keys, gvalue.ListCard, gvalue.NormSack,
		gvalue.OpSumLong,
		gvalue.PickAny, gvalue.MergeCreate, gvalue.DT("second"), gvalue.GType("INT"),
	}
}

// Elements returns graph elements with and without properties.
func Elements() []any {
	marko := &gvalue.Vertex{ID: int32(1), Label: "person", Properties: []gvalue.VertexProperty{
		{ID: int64(0), Label: "name", Value: "marko"},
		{ID: int64(1), Label: "location", Value: "santa fe", Properties: []gvalue.Property{
			{Key: "startTime", Value: int32(2005)}}},
		{ID: int64(2), Label: "location", Value: "brussels"},
	}}
	knows := &gvalue.Edge{ID: int32(7), Label: "knows", InV: int32(2), InVLabel: "person", OutV: int32(1),
		OutVLabel:  "person",
		Properties: []gvalue.Property{{Key: "weight", Value: 0.5}}}
	return []any{
		marko, knows,
		&gvalue.Vertex{ID: "a", Label: "vertex"},
		&gvalue.Edge{ID: "e", Label: "to", InV: "b", InVLabel: "x", OutV: "a", OutVLabel: "vertex"},
		&gvalue.VertexProperty{ID: int64(3), Label: "age", Value: int32(29), Properties: []gvalue.Property{
			{Key: "since", Value: nil}}},
		&gvalue.Property{Key: "weight", Value: 0.5},
		&gvalue.Path{Labels: [][]string{{"a", "b"}, nil}, Objects: []any{marko, "lop"}},
		gvalue.Traverser{Bulk: 3, Value: "x"},
	}
}

// Collections returns lists, sets, maps and bags, also nested.
func Collections() []any {
	b := &gvalue.BulkSet{}
	b.Add("x", 2)
	b.Add(int32(1), 1)
	return []any{
		[]any{}, []any{int32(1), "a", nil, []any{true}},
		gvalue.SetOf(), gvalue.SetOf("a", int32(2)),
		gvalue.MapOf(), gvalue.MapOf("name", []any{"marko"}, "n", gvalue.MapOf("k", int64(1))),
		gvalue.MapOf(gvalue.TID, int32(1), int32(5), "five", gvalue.MapOf("a", int32(1)), gvalue.SetOf("z")),
		b,
	}
}

// Language returns predicates and bytecode.
func Language() []any {
	gt := &gvalue.P{Op: "gt", Args: []any{int32(3)}}
	return []any{
		gt,
		&gvalue.P{Op: "within", Args: []any{"a", "b"}},
		&gvalue.P{Op: "within", Args: []any{}},
		&gvalue.P{Op: "between", Args: []any{int32(1), int32(5)}},
		&gvalue.P{Op: "and", Args: []any{gt, &gvalue.P{Op: "lt", Args: []any{2.5}}}},
		&gvalue.P{Op: "not", Args: []any{gt}},
		&gvalue.P{Op: "startingWith", Args: []any{"x"}, Text: true},
		(&gvalue.Bytecode{Source: []gvalue.Instruction{{Op: "withStrategies", Args: []any{
			&gvalue.Strategy{
				Class:  "org.apache.tinkerpop.gremlin.process.traversal.strategy.decoration.PartitionStrategy",
				Config: gvalue.MapOf("partitionKey", "pk", "readPartitions", gvalue.SetOf("v"))}}}}}).
			Add("V", int32(1)).Add("repeat", (&gvalue.Bytecode{}).Add("out", "knows")).Add(
			"times", int32(2)).Add("values"),
		gvalue.CardinalityValue{Cardinality: gvalue.Single, Value: "x"},
		&gvalue.Binding{Key: "x", Value: int64(1)},
		&gvalue.Lambda{Language: "gremlin-groovy", Script: "it.get()", Args: -1},
	}
}
