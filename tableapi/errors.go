package tableapi

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/isotime"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/rest"
	"github.com/orrerydb/orrery/tableapi/batch"
	"github.com/orrerydb/orrery/tableapi/edm"
	"github.com/orrerydb/orrery/tableapi/odata"
)

// codes is the registry of the service's error codes, with status and message (Microsoft's pages "Table service error
// codes" and "Status and error codes").
var codes = map[string]struct {
	status int
	msg    string
}{
	"AtomFormatNotSupported": {415, "Atom format is not supported."},
	"AuthenticationFailed": {
		403, "Server failed to authenticate the request. Make sure the value of Authorization header is formed " +
			"correctly including the signature."},
	"AuthorizationPermissionMismatch": {
		403, "This request is not authorized to perform this operation using this permission."},
	"AuthorizationProtocolMismatch": {
		403, "This request is not authorized to perform this operation using this protocol."},
	"AuthorizationResourceTypeMismatch": {
		403, "This request is not authorized to perform this operation using this resource type."},
	"AuthorizationServiceMismatch": {
		403, "This request is not authorized to perform this operation using this service."},
	"AuthorizationSourceIPMismatch": {
		403, "This request is not authorized to perform this operation using this source IP."},
	"CommandsInBatchActOnDifferentPartitions": {400, "All commands in a batch must operate on same entity group."},
	"CorsPreflightFailure":                    {403, "CORS not enabled or no matching rule found for this request."},
	"DuplicatePropertiesSpecified":            {400, "A property is specified more than one time."},
	"EntityAlreadyExists":                     {409, "The specified entity already exists."},
	"EntityTooLarge":                          {400, "The entity is larger than the maximum allowed size (2MB)."},
	"InternalError": {
		500, "The server encountered an internal error. Please retry the request."},
	"InvalidAuthenticationInfo": {400, "The authentication information was not provided in the correct format. " +
		"Verify the value of Authorization header."},
	"InvalidDuplicateRow": {400, "A command with the same RowKey is already present in the batch. An " +
		"entity can appear only once in a batch."},
	"InvalidHeaderValue":     {400, "The value for one of the HTTP headers is not in the correct format."},
	"InvalidInput":           {400, "One of the request inputs is not valid."},
	"InvalidResourceName":    {400, "The specifed resource name contains invalid characters."},
	"InvalidUri":             {400, "The requested URI does not represent any resource on the server."},
	"InvalidXmlDocument":     {400, "XML specified is not syntactically valid."},
	"JsonFormatNotSupported": {415, "JSON format is not supported."},
	"KeyValueTooLarge":       {400, "The key value exceeds the maximum allowed size (1KB)."},
	"MethodNotAllowed":       {405, "The HTTP method is not allowed on the resource specified."},
	"NoAuthenticationInformation": {401, "Server failed to authenticate the request. Please refer to the " +
		"information in the www-authenticate header."},
	"NotImplemented":                 {501, "The requested operation is not implemented on the specified resource."},
	"OperationTimedOut":              {500, "Operation could not be completed within the specified time."},
	"OutOfRangeInput":                {400, "One of the request inputs is out of range."},
	"PartitionKeyReachedMaximumSize": {403, "The partition key reached its maximum size."},
	"PropertiesNeedValue":            {400, "The values are not specified for all properties in the entity."},
	"PropertyNameInvalid":            {400, "The property name is invalid."},
	"PropertyNameTooLong":            {400, "The property name exceeds the maximum allowed length (255)."},
	"PropertyValueTooLarge":          {400, "The property value exceeds the maximum allowed size (64KB)."},
	"RequestBodyTooLarge":            {413, "The request body is too large and exceeds the maximum permissible limit."},
	"ResourceNotFound":               {404, "The specified resource does not exist."},
	"ServerBusy":                     {503, "The server is busy."},
	"TableAlreadyExists":             {409, "The table specified already exists."},
	"TableNotFound":                  {404, "The table specified does not exist."},
	"TooManyProperties":              {400, "The entity contains more properties than allowed."},
	"TooManyRequests":                {429, "The request rate is too large. Please retry after sometime."},
	"UpdateConditionNotSatisfied":    {412, "The update condition specified in the request was not satisfied."},
	"XMethodIncorrectCount":          {400, "More than one X-HTTP-Method is specified."},
	"XMethodIncorrectValue":          {400, "The specified X-HTTP-Method is invalid."},
	"XMethodNotUsingPost":            {400, "The request uses X-HTTP-Method with an HTTP verb other than POST."},
}

// apiError is an error reply. Code must be in codes.
type apiError struct {
	Code  string
	Msg   string // "" = the message of the code
	Index int    // the failing operation of a batch, -1 = none
	Retry time.Duration
	// XML marks errors of authentication and of the service's XML resources. They have an XML body unless the client
	// asks for JSON.
	XML bool
}

// Error implements error.
func (e *apiError) Error() string { return e.Code + ": " + e.message() }

func (e *apiError) status() int { return codes[e.Code].status }

func (e *apiError) message() string {
	if e.Msg != "" {
		return e.Msg
	}
	return codes[e.Code].msg
}

func newError(code string) *apiError      { return &apiError{Code: code, Index: -1} }
func errorMsg(code, msg string) *apiError { return &apiError{Code: code, Msg: msg, Index: -1} }
func authError(code string) *apiError     { return &apiError{Code: code, Index: -1, XML: true} }
func authErrorMsg(code, msg string) *apiError {
	return &apiError{Code: code, Msg: msg, Index: -1, XML: true}
}
func at(err error, index int) *apiError     { e := *translate(err); e.Index = index; return &e }
func conflict(err error, code string) error { return recode(err, status.Conflict, code) }
func notFound(err error, code string) error { return recode(err, status.NotFound, code) }

// recode gives err another code of the service if it is a core error with code c.
func recode(err error, c status.Code, code string) error {
	if status.Is(err, c) {
		return newError(code)
	}
	return err
}

// statusCodes maps the core's codes. NotFound and Conflict mean something else for tables, which recode them.
var statusCodes = map[status.Code]string{
	status.BadRequest:         "InvalidInput",
	status.Unauthorized:       "AuthenticationFailed",
	status.Forbidden:          "AuthorizationPermissionMismatch",
	status.NotFound:           "ResourceNotFound",
	status.Conflict:           "EntityAlreadyExists",
	status.Gone:               "ServerBusy",
	status.PreconditionFailed: "UpdateConditionNotSatisfied",
	status.TooLarge:           "EntityTooLarge",
	status.TooManyRequests:    "TooManyRequests",
	status.RetryWith:          "ServerBusy",
	status.Timeout:            "OperationTimedOut",
	status.NotSupported:       "NotImplemented",
	status.Unavailable:        "ServerBusy",
	status.UnknownOutcome:     "OperationTimedOut",
	status.StoreFull:          "ServerBusy",
	status.MemoryLimit:        "InvalidInput",
	status.Locked:             "ServerBusy",
}

// translate is the only place that converts errors to the Table API's.
func translate(err error) *apiError {
	var (
		api *apiError
		ed  *edm.Error
		od  *odata.Error
		ba  *batch.Error
		st  *status.Error
	)
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &ed):
		return errorMsg(ed.Code, ed.Msg)
	case errors.As(err, &od):
		if od.NotImplemented {
			return errorMsg("NotImplemented", od.Msg)
		}
		return errorMsg("InvalidInput", "One of the request inputs is not valid. "+od.Msg)
	case errors.As(err, &ba):
		return errorMsg("InvalidInput", "One of the request inputs is not valid. "+ba.Msg)
	case errors.As(err, &st):
		return fromStatus(st)
	}
	return fromStatus(rest.Status(err))
}

func fromStatus(st *status.Error) *apiError {
	e := &apiError{Code: statusCodes[st.Code], Index: st.Index, Retry: st.RetryAfter}
	switch {
	case st.Code == status.NotFound && st.Sub == status.SubOwnerNotFound:
		e.Code = "TableNotFound"
	case st.Code == status.Forbidden && st.Sub == status.SubPartitionKeyFull:
		e.Code = "PartitionKeyReachedMaximumSize"
	case e.Code == "":
		e.Code = "InternalError"
	case st.Code == status.BadRequest, st.Code == status.StoreFull, st.Code == status.MemoryLimit:
		e.Msg = st.Msg
	}
	return e
}

// Fail implements rest.Of: it replies with an error. Nothing of the reply has been sent before.
func (c *call) Fail(err error) {
	e := translate(err)
	if e.status() == http.StatusInternalServerError && !c.Left() && !rest.Panicked(err) {
		c.s.o.Log.Error("The Table API failed a request.", "request_id", string(c.ID[:]), "error", err)
	}
	c.Take("Etag")
	c.Set("X-Ms-Error-Code", e.Code)
	if e.Retry > 0 {
		ms := e.Retry.Milliseconds()
		c.SetInt("X-Ms-Retry-After-Ms", ms)
		c.SetInt("Retry-After", (ms+999)/1000)
	}
	if e.XML && !c.asksJSON() {
		c.Out = c.appendXMLError(c.Out[:0], e)
		c.send(e.status(), xmlType)
		return
	}
	c.Out = c.appendError(c.Out[:0], e)
	c.send(e.status(), contentTypes[c.level])
}

// asksJSON reports whether the client names JSON among what it accepts. Some clients read no code from another body.
func (c *call) asksJSON() bool {
	for _, a := range c.In["Accept"] {
		if strings.Contains(strings.ToLower(a), "json") {
			return true
		}
	}
	return false
}

// appendError appends the error in JSON form, which is the same at every metadata level.
func (c *call) appendError(dst []byte, e *apiError) []byte {
	msg := make([]byte, 0, 256)
	if e.Index >= 0 {
		msg = append(strconv.AppendInt(msg, int64(e.Index), 10), ':')
	}
	msg = append(append(append(msg, e.message()...), "\nRequestId:"...), c.ID[:]...)
	msg = append(msg, "\nTime:"...)
	msg = isotime.AppendTicks(msg, c.s.o.Clock.Now())
	dst = append(append(dst, `{"odata.error":{"code":"`...), e.Code...)
	dst = append(dst, `","message":{"lang":"en-US","value":`...)
	return append(json.AppendText(dst, msg), "}}}"...)
}

func (c *call) appendXMLError(dst []byte, e *apiError) []byte {
	dst = append(append(dst, `<?xml version="1.0" encoding="utf-8"?><Error><Code>`...), e.Code...)
	dst = append(dst, "</Code><Message>"...)
	for _, b := range []byte(e.message()) {
		switch b {
		case '<':
			dst = append(dst, "&lt;"...)
		case '&':
			dst = append(dst, "&amp;"...)
		default:
			dst = append(dst, b)
		}
	}
	dst = append(append(dst, "\nRequestId:"...), c.ID[:]...)
	return append(dst, "</Message></Error>"...)
}
