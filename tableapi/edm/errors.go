package edm

// Error says why an entity or a literal is refused, with the service's code (Table service error codes). Msg is safe to
// show: it contains nothing of the request except names and keys.
type Error struct {
	Code string
	Prop string // the property concerned, "" = none
	Msg  string
}

// Error implements error.
func (e *Error) Error() string { return e.Code + ": " + e.Msg }

// The codes of this package, all with status 400.
const (
	DuplicateProperties   = "DuplicatePropertiesSpecified"
	InvalidInput          = "InvalidInput"
	KeyValueTooLarge      = "KeyValueTooLarge"
	OutOfRangeInput       = "OutOfRangeInput"
	PropertyNameInvalid   = "PropertyNameInvalid"
	PropertyNameTooLong   = "PropertyNameTooLong"
	PropertyValueTooLarge = "PropertyValueTooLarge"
	TooManyProperties     = "TooManyProperties"
)

func fail(code, prop, msg string) *Error { return &Error{Code: code, Prop: prop, Msg: msg} }

var errInput = fail(InvalidInput, "", "One of the request inputs is not valid.")
