package users

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"

	"github.com/xdg-go/scram"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// The mechanisms of logins.
const (
	MechSHA1   = "SCRAM-SHA-1"
	MechSHA256 = "SCRAM-SHA-256"
	MechPlain  = "PLAIN"
)

// The iteration counts of MongoDB. Drivers refuse fewer than 4096.
const (
	IterationsSHA1   = 10000
	IterationsSHA256 = 15000
)

// SaltSize is the length of a salt in bytes. SCRAM-SHA-1 uses the first saltSHA1 of them.
const (
	SaltSize = 28
	saltSHA1 = 16
)

// Derive returns the credentials of a password. With digested it is what a client has made of the password already. The
// salt has SaltSize bytes.
func Derive(mechanism, user, password string, digested bool, salt []byte) (c scram.StoredCredentials, err error) {
	var cl *scram.Client
	iters := IterationsSHA256
	if mechanism == MechSHA1 {
		iters, salt = IterationsSHA1, salt[:saltSHA1]
		if !digested {
			digest := md5.Sum([]byte(user + ":mongo:" + password))
			password = hex.EncodeToString(digest[:])
		}
		cl, err = scram.SHA1.NewClientUnprepped("user", password, "")
	} else {
		cl, err = scram.SHA256.NewClient("user", password, "") // the credentials don't depend on the name
	}
	if err != nil {
		return c, err
	}
	return cl.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: iters})
}

// AppendCredentials appends the credentials of a password for a mechanism, as a user's document has them.
func AppendCredentials(dst []byte, mechanism, user, password string, digested bool,
	random func([]byte)) ([]byte, error) {
	var salt [SaltSize]byte
	random(salt[:])
	c, err := Derive(mechanism, user, password, digested, salt[:])
	if err != nil {
		return dst, err
	}
	text := base64.StdEncoding.EncodeToString
	at, dst := bson.BeginObject(dst, mechanism)
	dst = bson.AppendInt32(dst, "iterationCount", int32(c.Iters))
	dst = bson.AppendString(dst, "salt", text([]byte(c.Salt)))
	dst = bson.AppendString(dst, "storedKey", text(c.StoredKey))
	dst = bson.AppendString(dst, "serverKey", text(c.ServerKey))
	return bson.End(dst, at), nil
}

// ReadCredentials returns a user's credentials for a mechanism; ok is false if it has none.
func ReadCredentials(d value.Value, mechanism string) (c scram.StoredCredentials, ok bool) {
	v := d.Get("credentials").Get(mechanism)
	salt, err1 := base64.StdEncoding.DecodeString(v.Get("salt").Str())
	stored, err2 := base64.StdEncoding.DecodeString(v.Get("storedKey").Str())
	server, err3 := base64.StdEncoding.DecodeString(v.Get("serverKey").Str())
	if v.Kind() != value.Object || err1 != nil || err2 != nil || err3 != nil {
		return c, false
	}
	c.Salt, c.Iters = string(salt), int(v.Get("iterationCount").Int())
	c.StoredKey, c.ServerKey = stored, server
	return c, len(stored) > 0
}
