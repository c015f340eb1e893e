// Package rest is what the doors that speak HTTP share: the call for each request, the middlewares that every request
// passes, the reading of bodies and the writing of replies. Each door has its own routes, permissions and form of
// errors.
//
// A door embeds Call in a type of its own, pools that type, and puts its middlewares in this order:
//
//	r := rest.NewRouter()
//	r.Use(s.begin,                // the door's: takes a call of its pool, Call.Begin, g.Writer = c, defers Call.End
//		rest.RequestID("X-Ms-..."), // the client's id of the request, or a new one
//		s.door.Observed,            // tells observe.Observer
//		s.door.Recovered,           // a panic becomes an error
//		s.door.Failed,              // an error becomes a reply: the door's Fail
//		s.authenticate,             // the door's: checks the credentials
//		s.door.Limited)             // the time limit, the body, the gate
//	r.GET("/things/:id", rest.Handle(readThing)) // readThing is a func(*call) error
//
// The order matters. A client without valid credentials costs only one HMAC and learns nothing, not even whether a path
// exists: requests without a route pass the middlewares too. A request that a later middleware refuses is still
// observed by an earlier one.
//
// Example: GET /things/7 with an expired signature. begin takes a call, RequestID gives it an id, authenticate aborts
// it with status.Unauthorized, so neither Limited nor readThing run. Failed then writes the reply, and Observed counts
// a 401.
package rest
