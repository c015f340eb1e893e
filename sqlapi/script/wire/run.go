package wire

import "fmt"

// Kind says what a program is, which decides what its context offers.
type Kind byte

// The kinds of programs.
const (
	Procedure Kind = iota
	PreTrigger
	PostTrigger
	Function
)

// Links are the two addresses of the container that a program runs on.
type Links struct {
	Self string // by resource ids: dbs/<rid>/colls/<rid>/
	Alt  string // by names: dbs/<name>/colls/<name>; programs append "/docs/" and an id
}

// Header is a header of a message.
type Header struct{ Name, Value string }

// Message is the request or the response that a program sees.
type Message struct {
	Operation string   // of a request: Create, Replace, Upsert, Delete, Execute
	Body      []byte   // JSON; empty: none
	Headers   []Header // for getValue; x-ms-resource-quota and -usage are also properties of a post-trigger's response
}

// Run is one run of a program.
type Run struct {
	Kind     Kind
	Name     string // id of the script, in stack traces
	Source   string
	Args     []byte // JSON array of the arguments of a procedure; empty: none
	Links    Links
	Request  *Message
	Response *Message // of a post-trigger
	Log      bool     // console.log is kept
}

// Result is what a run leaves.
type Result struct {
	Body     []byte // JSON of the response's body of a procedure; nil when it was never set
	Request  []byte // JSON of the body that a pre-trigger leaves
	Response []byte // JSON of the body that a post-trigger leaves
	Log      string
}

// Op is a call of the collection object.
type Op struct {
	Name    string // the method: createDocument, readDocument, queryDocuments, ..
	Link    string // as the program gave it, without a slash at its end; its form and its container are checked
	Body    []byte // JSON of the document, with an id unless options forbid to make one
	Query   []byte // JSON {"query", "parameters"} of queryDocuments
	Options []byte // JSON object; empty: none
}

// Reply is the answer to an Op.
type Reply struct {
	Body    []byte // JSON of the document, or an array of documents; empty: none
	Options []byte // JSON object of the callback's last argument: continuation, currentCollectionSizeInMB, ..
	ETag    string
}

// Error is what a program threw, or the limit that it exceeded.
type Error struct {
	Status, Sub int
	Body        string // the message
	Log         string // what the program has logged until then
	Exceeded    bool   // a limit of time or memory has ended the program
}

// Error returns the status and the message.
func (e *Error) Error() string { return fmt.Sprintf("%d/%d: %s", e.Status, e.Sub, e.Body) }
