package mongoapi

import (
	"net"

	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// shutdown ends the process, as SIGTERM does. There is no reply, but the end of the connection. It is for users with
// the right to it, and without logins for clients on this machine.
func shutdown(r *request, dst []byte) ([]byte, error) {
	if err := r.adminOnly(); err != nil {
		return dst, err
	}
	if !r.s.o.Auth && !local(r.c.nc.RemoteAddr()) {
		return dst, merr.New(merr.Unauthorized, "shutdown must run from localhost when running db without auth")
	}
	if r.s.o.Stop == nil {
		return dst, merr.New(merr.IllegalOperation, "this server can't be ended by a command")
	}
	r.c.hangUp = true
	r.s.o.Stop()
	return dst, nil
}

var shutdownArguments = args.Set{"force": args.SafeBool, "timeoutSecs": args.Number}

// local reports whether an address is one of this machine.
func local(a net.Addr) bool {
	host, _, err := net.SplitHostPort(a.String())
	return err == nil && net.ParseIP(host).IsLoopback()
}

// gone answers a command that MongoDB doesn't have any more, and whose name old clients send.
func gone(code int32, text string) func(*request, []byte) ([]byte, error) {
	return func(_ *request, dst []byte) ([]byte, error) { return dst, merr.New(code, "%s", text) }
}

// authenticate is the login with a certificate, which isn't supported.
func authenticate(r *request, dst []byte) ([]byte, error) {
	return dst, merr.New(merr.MechanismUnavailable, "Received authentication for mechanism %s which is not enabled",
		r.body.Get("mechanism").Str())
}
