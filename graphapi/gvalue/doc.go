// Package gvalue holds the values that travel through the graph API: what a script or a bytecode request carries in,
// what a traversal works on, and what the serializers (graphbinary, graphson) write out.
//
// A value is an `any` of one of these Go types; everything else is a fault of ours:
//
//	null                nil
//	Boolean             bool
//	Byte Short Int Long int8 int16 int32 int64
//	Float Double        float32 float64
//	BigInteger          *big.Int
//	BigDecimal          *BigDecimal
//	String Char         string Char
//	UUID                UUID
//	Date Timestamp      Date Timestamp (milliseconds since 1970)
//	OffsetDateTime ..   OffsetDateTime, Instant, Duration and the other types of time.go
//	ByteBuffer          []byte
//	List Set Map        []any *Set *Map
//	BulkSet Tree        *BulkSet *Tree
//	graph elements      *Vertex *Edge *VertexProperty *Property *Path *Graph
//	enums               T, Direction, Order, .. (enums.go; all are Enum)
//	predicates          *P
//	bytecode            *Bytecode *Lambda *Binding *Strategy CardinalityValue
//	results             Traverser *Metrics *TraversalMetrics
//
// A plain Go int never appears. The package imports nothing of ours.
package gvalue
