// Package rest is what the doors that speak HTTP share: the call that a request becomes, the middlewares that every
// request passes, and how bodies are read and replies written. What is an API's own (routes, who may do what, the
// form of errors) stays in its door.
//
// A door embeds Call in a type of its own, pools that type, and puts its middlewares in this order:
//
//	r := rest.NewRouter()
//	r.Use(s.begin,                // the door's: takes a call of its pool, Call.Begin, g.Writer = c, defers Call.End
//		rest.RequestID("X-Ms-..."), // the client's id of the request, or a new one
//		s.door.Observed,            // tells observe.Observer
//		s.door.Recovered,           // a panic becomes an error
//		s.door.Failed,              // an error becomes a reply: the door's Fail
//		s.authenticate,             // the door's: who asks
//		s.door.Limited)             // for how long; the body; how many at once
//	r.GET("/things/:id", rest.Handle(readThing)) // readThing is a func(*call) error
//
// The order matters. Whoever can't say who he is costs an HMAC and learns nothing, not even whether a path exists:
// routes that aren't there pass the middlewares too. What is refused by a later middleware is observed by an earlier
// one.
package rest
