package mongoapi

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/xdg-go/scram"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// The iteration counts of MongoDB. Drivers refuse fewer than 4096.
const (
	itersSHA1   = 10000
	itersSHA256 = 15000
)

// credentials are the SCRAM credentials of the only user, computed at the first login.
type credentials struct {
	once         sync.Once
	sha1, sha256 scram.StoredCredentials
	err          error
}

func (s *Server) credentials() (*credentials, error) {
	c := &s.creds
	c.once.Do(func() {
		user, pass := s.o.Account, s.o.Key
		// The salt needn't be secret. It is derived from the account, so it is the same after a restart and clients'
		// caches stay valid.
		salt := sha256.Sum256([]byte("orrery mongo " + user))
		digest := md5.Sum([]byte(user + ":mongo:" + pass))
		var cl *scram.Client
		if cl, c.err = scram.SHA1.NewClientUnprepped(user, hex.EncodeToString(digest[:]), ""); c.err != nil {
			return
		}
		if c.sha1, c.err = cl.GetStoredCredentialsWithError(
			scram.KeyFactors{Salt: string(salt[:16]), Iters: itersSHA1}); c.err != nil {
			return
		}
		if cl, c.err = scram.SHA256.NewClient(user, pass, ""); c.err != nil {
			return
		}
		c.sha256, c.err = cl.GetStoredCredentialsWithError(
			scram.KeyFactors{Salt: string(salt[:28]), Iters: itersSHA256})
	})
	return c, c.err
}

// conversation is the state of a SASL login.
//
// Example, SCRAM-SHA-256:
//
//	client  saslStart     n,,n=account,r=<client nonce>
//	server                r=<client nonce><server nonce>,s=<salt>,i=<iterations>
//	client  saslContinue  c=biws,r=<both nonces>,p=<proof>
//	server                v=<server signature>, done; with skipEmptyExchange or after an empty saslContinue
type conversation struct {
	scram     *scram.ServerConversation
	user      string
	skipEmpty bool
	verified  bool
}

func authFailed() error { return merr.New(merr.AuthenticationFailed, "Authentication failed.") }

func saslStart(r *request, dst []byte) ([]byte, error) { return r.saslStart(dst, r.body) }

// saslStart begins a login with the arguments in args. hello may contain them too (speculative authentication).
func (r *request) saslStart(dst []byte, args value.Value) ([]byte, error) {
	r.c.sasl = nil
	creds, err := r.c.home.credentials()
	if err != nil {
		return dst, err
	}
	var gen scram.HashGeneratorFcn
	stored := creds.sha256
	switch m := args.Get("mechanism").Str(); m {
	case "SCRAM-SHA-256":
		gen = scram.SHA256
	case "SCRAM-SHA-1":
		gen, stored = scram.SHA1, creds.sha1
	default:
		return dst, merr.New(334, "Received authentication for mechanism %s which is not enabled", m)
	}
	conv := &conversation{skipEmpty: args.Get("options").Get("skipEmptyExchange").Bool()}
	srv, err := gen.NewServer(func(user string) (scram.StoredCredentials, error) {
		if user != r.s.o.Account {
			return scram.StoredCredentials{}, authFailed()
		}
		conv.user = user
		return stored, nil
	})
	if err != nil {
		return dst, err
	}
	conv.scram = srv.NewConversation()
	out, err := conv.scram.Step(string(args.Get("payload").Bytes()))
	if err != nil {
		return dst, authFailed()
	}
	r.c.sasl = conv
	return appendSASL(dst, out, false), nil
}

func appendSASL(dst []byte, payload string, done bool) []byte {
	dst = bson.AppendInt32(dst, "conversationId", 1)
	dst = bson.AppendBool(dst, "done", done)
	return bson.AppendBinary(dst, "payload", []byte(payload))
}

func saslContinue(r *request, dst []byte) ([]byte, error) {
	conv := r.c.sasl
	if conv == nil || r.body.Get("conversationId").Int() != 1 {
		return dst, merr.New(merr.ProtocolError, "No SASL session state found")
	}
	payload := string(r.body.Get("payload").Bytes())
	if conv.verified { // the empty exchange at the end
		r.c.sasl = nil
		if payload != "" {
			return dst, authFailed()
		}
		r.c.authed, r.c.user = true, conv.user
		return appendSASL(dst, "", true), nil
	}
	out, err := conv.scram.Step(payload)
	if err != nil || !conv.scram.Valid() {
		r.c.sasl = nil
		return dst, authFailed()
	}
	if !conv.skipEmpty {
		conv.verified = true
		return appendSASL(dst, out, false), nil
	}
	r.c.sasl, r.c.authed, r.c.user = nil, true, conv.user
	return appendSASL(dst, out, true), nil
}

func logout(r *request, dst []byte) ([]byte, error) {
	r.c.authed, r.c.user, r.c.sasl = !r.s.o.Auth, "", nil
	return dst, nil
}
