// Package gvalue defines the values of the graph API: those in scripts and bytecode requests, those that a traversal
// processes, and those that the serializers (graphbinary, graphson) write.
//
// A value is an `any` of one of these Go types. Any other type is a fault in Orrery.
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
// A plain Go int never occurs.
package gvalue
