// Package merr is the error type of the MongoDB door: a server error code, its name and a message, as drivers read
// them. Codes and texts are those of MongoDB 7.0. Only From converts the core's status.Error to this type.
package merr

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/orrerydb/orrery/core/status"
)

// Error is a command error, or the error of one statement of a write command.
type Error struct {
	Code   int32
	Msg    string
	Labels []string
	// Extra has further BSON elements for the reply, such as keyPattern and keyValue of a duplicate key.
	Extra []byte
}

// Error implements error.
func (e *Error) Error() string { return e.Msg }

// CodeName returns the server's name of the code, "Location<code>" for a code without a name.
func (e *Error) CodeName() string {
	if n, ok := names[e.Code]; ok {
		return n
	}
	return "Location" + strconv.Itoa(int(e.Code))
}

// New makes an Error.
//
//go:noinline // called from many places, see decision 41
func New(code int32, format string, args ...any) *Error {
	if len(args) == 0 {
		return &Error{Code: code, Msg: format}
	}
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// NotSupported is the error for a feature of MongoDB that isn't supported.
//
//go:noinline // called from many places, see decision 41
func NotSupported(what string) *Error {
	return New(NotImplemented, "%s is not supported by this server", what)
}

// The codes that are used here.
const (
	InternalError              = 1
	BadValue                   = 2
	NoSuchKey                  = 4
	FailedToParse              = 9
	UnknownError               = 8
	UserNotFound               = 11
	Unauthorized               = 13
	TypeMismatch               = 14
	InvalidLength              = 16
	ProtocolError              = 17
	AuthenticationFailed       = 18
	IllegalOperation           = 20
	NamespaceNotFound          = 26
	IndexNotFound              = 27
	PathNotViable              = 28
	ConflictingUpdateOperators = 40
	CursorNotFound             = 43
	NamespaceExists            = 48
	MaxTimeMSExpired           = 50
	DollarPrefixedFieldName    = 52
	InvalidIDField             = 53
	NotSingleValueField        = 54
	EmptyFieldName             = 56
	CommandNotFound            = 59
	ShardKeyNotFound           = 61
	ImmutableField             = 66
	CannotCreateIndex          = 67
	InvalidOptions             = 72
	InvalidNamespace           = 73
	IndexAlreadyExists         = 68
	CannotConvertIndexToUnique = 359
	IndexOptionsConflict       = 85
	IndexKeySpecsConflict      = 86
	WriteConcernFailed         = 64
	UnknownReplWriteConcern    = 79
	NetworkTimeout             = 89
	RoleNotFound               = 31
	InvalidRoleModification    = 49
	MechanismUnavailable       = 334
	RoleExists                 = 51002
	UserExists                 = 51003
	ShutdownInProgress         = 91
	OperationFailed            = 96
	UnsatisfiableWriteConcern  = 100
	WriteConflict              = 112
	CommandNotSupported        = 115
	ConflictingOperation       = 117
	DocumentValidationFailure  = 121
	InvalidPipelineOperator    = 168
	InvalidIndexSpecification  = 197
	FailPointSetFailed         = 148
	ScriptFailure              = 139
	AlreadyInitialized         = 23
	IncompatibleSetConfig      = 103
	NoReplicationEnabled       = 76
	NotAReplicaSet             = 123
	TimeProofMismatch          = 204
	ClusterTimeTooFar          = 205
	TransactionTooOld          = 225
	TooManyLogicalSessions     = 261
	NoMatchingDocument         = 47
	CappedPositionLost         = 136
	QueryPlanKilled            = 175
	InvalidResumeToken         = 260
	ChangeStreamFatal          = 280
	ChangeStreamHistoryLost    = 286
	OnlyOnReplicaSets          = 40573
	NotImplemented             = 238
	NoSuchTransaction          = 251
	TransactionCommitted       = 256
	TransactionTooLarge        = 257
	SnapshotUnavailable        = 246
	IncompleteTransaction      = 217
	CommandFailed              = 125
	OperationNotInTransaction  = 263
	ExceededMemoryLimit        = 146
	CursorKilled               = 237
	ClientDisconnect           = 279
	Interrupted                = 11601
	OutOfDiskSpace             = 14031
	NoQueryPlans               = 291
	MemoryLimit                = 292
	DuplicateField             = 40413
	UnsupportedOpQuery         = 352
	BSONObjectTooLarge         = 10334
	DuplicateKey               = 11000
	MergeNoMatch               = 13113
	RequestRateTooLarge        = 16500
	UnknownField               = 40415
	MissingField               = 40414
	ShardNotFound              = 70
	IncompatibleCollation      = 161
	NotSupportedOnView         = 166
	OptionNotSupportedOnView   = 167
	ViewDepthLimitExceeded     = 165
	GraphContainsCycle         = 5
	OpWithoutShard             = 28625
	OpNotANumber               = 28626
	UnrecognizedStage          = 40324
	MissingDB                  = 40571
	NotARetryableWriteCommand  = 50768
	PathCollision              = 31249
	RegexInvalid               = 51091
	InvalidRegexFlag           = 51108
	InvalidUUID                = 207
	APIVersionError            = 322
	APIStrictError             = 323
	APIMismatchError           = 347
	Overflow                   = 15
	ConversionFailure          = 241
	CannotIndexParallelArrays  = 171
	AmbiguousIndexKeyPattern   = 181
	AppNameTooLarge            = 184
	MetadataTooLarge           = 185
	HashedUnique               = 16764
	DatabaseDifferCase         = 13297
)

var names = map[int32]string{
	6: "HostUnreachable", 7: "HostNotFound", 23: "AlreadyInitialized",
	103: "NewReplicaSetConfigurationIncompatible", 24: "LockTimeout", 63: "StaleShardVersion",
	76: "NoReplicationEnabled", 123: "NotAReplicaSet", 133: "FailedToSatisfyReadPreference",
	134: "ReadConcernMajorityNotAvailableYet", 150: "StaleEpoch", 189: "PrimarySteppedDown", 204: "TimeProofMismatch",
	205: "ClusterTimeFailsRateLimiter", 216: "ElectionInProgress", 234: "RetryChangeStream",
	246: "SnapshotUnavailable", 280: "ChangeStreamFatalError", 9001: "SocketException", 10107: "NotWritablePrimary",
	11602: "InterruptedDueToReplStateChange", 13435: "NotPrimaryNoSecondaryOk", 13436: "NotPrimaryOrSecondary",
	50768: "NotARetryableWriteCommand", 31: "RoleNotFound", 49: "InvalidRoleModification", 334: "MechanismUnavailable",
	1: "InternalError", 2: "BadValue", 4: "NoSuchKey",
	8: "UnknownError", 68: "IndexAlreadyExists",
	9: "FailedToParse", 11: "UserNotFound", 13: "Unauthorized", 14: "TypeMismatch",
	15: "Overflow", 16: "InvalidLength", 17: "ProtocolError", 18: "AuthenticationFailed", 20: "IllegalOperation",
	26: "NamespaceNotFound", 27: "IndexNotFound", 28: "PathNotViable", 40: "ConflictingUpdateOperators",
	136: "CappedPositionLost", 175: "QueryPlanKilled", 47: "NoMatchingDocument", 260: "InvalidResumeToken",
	43: "CursorNotFound", 48: "NamespaceExists", 50: "MaxTimeMSExpired", 52: "DollarPrefixedFieldName",
	53: "InvalidIdField", 54: "NotSingleValueField", 55: "InvalidDBRef", 56: "EmptyFieldName", 57: "DottedFieldName",
	59: "CommandNotFound", 61: "ShardKeyNotFound", 66: "ImmutableField", 67: "CannotCreateIndex", 70: "ShardNotFound",
	72: "InvalidOptions", 73: "InvalidNamespace", 85: "IndexOptionsConflict", 86: "IndexKeySpecsConflict",
	359: "CannotConvertIndexToUnique",
	64:  "WriteConcernFailed", 79: "UnknownReplWriteConcern", 96: "OperationFailed", 100: "UnsatisfiableWriteConcern",
	146: "ExceededMemoryLimit", 148: "FailPointSetFailed",
	139: "JSInterpreterFailure", 237: "CursorKilled", 279: "ClientDisconnect",
	11601: "Interrupted", 14031: "OutOfDiskSpace",
	89: "NetworkTimeout", 91: "ShutdownInProgress", 112: "WriteConflict", 115: "CommandNotSupported",
	117: "ConflictingOperationInProgress", 121: "DocumentValidationFailure",
	5: "GraphContainsCycle", 161: "IncompatibleCollationVersion", 165: "ViewDepthLimitExceeded",
	166: "CommandNotSupportedOnView", 167: "OptionNotSupportedOnView", 182: "InvalidViewDefinition",
	168: "InvalidPipelineOperator", 171: "CannotIndexParallelArrays", 181: "AmbiguousIndexKeyPattern",
	184: "ClientMetadataAppNameTooLarge", 185: "ClientMetadataDocumentTooLarge",
	197: "InvalidIndexSpecificationOption", 207: "InvalidUUID", 225: "TransactionTooOld", 238: "NotImplemented",
	241: "ConversionFailure", 251: "NoSuchTransaction", 256: "TransactionCommitted", 257: "TransactionTooLarge",
	217: "IncompleteTransactionHistory", 125: "CommandFailed", 261: "TooManyLogicalSessions",
	262: "ExceededTimeLimit",
	263: "OperationNotSupportedInTransaction", 286: "ChangeStreamHistoryLost",
	291: "NoQueryExecutionPlans", 322: "APIVersionError", 323: "APIStrictError", 347: "APIMismatchError",
	292: "QueryExceededMemoryLimitNoDiskUseAllowed", 352: "UnsupportedOpQueryCommand", 10334: "BSONObjectTooLarge",
	13113: "MergeStageNoMatchingDocument", 13297: "DatabaseDifferCase",
	11000: "DuplicateKey", 11600: "InterruptedAtShutdown", 16500: "RequestRateTooLarge",
}

// From returns err as an *Error. A status.Error is converted by its code. Any other error is an internal error, whose
// text isn't shown.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	s := status.From(err)
	switch s.Code {
	case status.BadRequest:
		return New(BadValue, "%s", s.Msg)
	case status.Unauthorized, status.Forbidden:
		if s.Sub == status.SubPartitionKeyFull {
			return refused(s)
		}
		return New(Unauthorized, "%s", s.Msg)
	case status.NotFound:
		return New(NamespaceNotFound, "%s", s.Msg)
	case status.Conflict:
		return New(DuplicateKey, "%s", s.Msg)
	case status.TooLarge:
		return New(BSONObjectTooLarge, "%s", s.Msg)
	case status.RetryWith, status.PreconditionFailed, status.Gone:
		return New(WriteConflict, "%s", s.Msg)
	case status.Timeout:
		return New(MaxTimeMSExpired, "operation exceeded time limit")
	case status.NotSupported:
		return New(NotImplemented, "%s", s.Msg)
	case status.TooManyRequests:
		return throttled(s)
	case status.Unavailable:
		return New(ShutdownInProgress, "%s", s.Msg)
	case status.UnknownOutcome:
		// This isn't a code for which drivers retry a write, because the write may have been applied.
		return New(WriteConcernFailed, "%s", s.Msg)
	case status.StoreFull:
		return New(OutOfDiskSpace, "%s", s.Msg)
	case status.MemoryLimit:
		return New(MemoryLimit, "%s", s.Msg)
	case status.Locked:
		return New(ConflictingOperation, "%s", s.Msg)
	}
	return New(InternalError, "%s", s.Msg)
}

// refused has the service's text for what its store forbids: the code is that of a missing right, so only the text says
// which limit was reached.
func refused(s *status.Error) *Error {
	return New(Unauthorized, "Error=13, Details='Response status code does not indicate success: Forbidden (403); "+
		"Substatus: %d; ActivityId: 00000000-0000-0000-0000-000000000000; Reason: "+
		"(Message: {\"Errors\":[\"%s\"]})", s.Sub, s.Msg)
}

// throttled has the service's text, from which clients read RetryAfterMs.
func throttled(s *status.Error) *Error {
	return New(RequestRateTooLarge, "Error=16500, RetryAfterMs=%d, Details='Response status code does not indicate "+
		"success: TooManyRequests (429) Substatus: %d ActivityId: 00000000-0000-0000-0000-000000000000 Reason: "+
		"(\r\nErrors : [\r\n \"%s\"\r\n]\r\n) ",
		s.RetryAfter.Milliseconds(), s.Sub, s.Msg)
}
