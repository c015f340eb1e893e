package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// place is a container of a server.
type place struct {
	text, key, account string // as the flags have them
	api                string // nosql, mongodb or table
	base               string // URL, or host:port for MongoDB
	tls                bool
	db, container      string
	secret             string
}

// parse reads a place. A URL with a password is refused.
func (p *place) parse() (err error) {
	u, err := url.Parse(p.text)
	if err != nil || u.User != nil || u.RawQuery != "" {
		return errors.New("a place is API://HOST[:PORT]/DATABASE/CONTAINER, without a user, a key and parameters")
	}
	if p.secret, err = door.Secret(p.key); err != nil {
		return err
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	last := len(parts) - 1
	p.container = parts[last]
	scheme, transport, _ := strings.Cut(u.Scheme, "+")
	p.api, p.base = scheme, transport+"://"+u.Host
	switch u.Scheme {
	case "nosql+http", "nosql+https":
	case "mongodb", "mongodb+tls":
		p.base, p.tls = u.Host, transport == "tls"
	case "table+http", "table+https":
		if p.base += strings.TrimSuffix("/"+strings.Join(parts[:last], "/"), "/"); p.account == "" && last > 0 {
			p.account = parts[0]
		} else if p.account == "" {
			p.account, _, _ = strings.Cut(u.Hostname(), ".")
		}
		if p.container == "" {
			return errors.New("the place names no table")
		}
		return nil
	default:
		return fmt.Errorf("the scheme %s is not known: want nosql+https, mongodb, table+https or their kin", u.Scheme)
	}
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return errors.New("the place names no database and container")
	}
	p.db = parts[0]
	if p.account == "" {
		p.account, _, _ = strings.Cut(u.Hostname(), ".")
	}
	return nil
}

// change is an item as it is now, or one that is gone.
type change struct {
	item []byte // JSON or BSON
	id   []byte // of one that is gone: a BSON document with its key
}

// source yields the items of a container, and then their changes.
type source interface {
	// define returns what prepare needs to create the container.
	define(ctx context.Context) (any, error)
	// changes calls f with items and the position behind them, from a position on; nil = the beginning. It ends when
	// everything was given; with follow it goes on until ctx ends.
	changes(ctx context.Context, from json.RawMessage, follow bool,
		f func(batch []change, next json.RawMessage) error) error
}

// target takes items. Applying a change twice does no harm.
type target interface {
	prepare(ctx context.Context, definition any) error
	apply(ctx context.Context, batch []change) error
}

// open returns the client of a place.
func (p *place) open(ctx context.Context) (interface {
	source
	target
}, error) {
	switch p.api {
	case "nosql":
		return openNoSQL(p)
	case "mongodb":
		return openMongo(ctx, p)
	}
	return openTable(p)
}

// job is a copy.
type job struct {
	from, to        place
	follow, restart bool
	state           string
	rename          []string // OLD=NEW: fields
}

// kept is the file of a copy's state. It has no secret.
type kept struct {
	Job      string          `json:"job"`
	Position json.RawMessage `json:"position"`
	Items    int64           `json:"items"`
}

func (j *job) run(ctx context.Context, out io.Writer) error {
	for name, p := range map[string]*place{"--from": &j.from, "--to": &j.to} {
		if err := p.parse(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if j.from.api != j.to.api {
		return errors.New("--from and --to are of different APIs: every container of Orrery has all of them")
	}
	names, err := transfer.ParseNames(j.rename)
	if err != nil {
		return err
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, strings.Join(append([]string{j.from.text, j.to.text}, j.rename...), "\n"))
	st := kept{Job: fmt.Sprintf("%016x", h.Sum64())}
	if j.state == "" {
		j.state = ".orrery-copy-" + st.Job + ".json"
	}
	if !j.restart {
		if err := st.load(j.state); err != nil {
			return err
		}
	}
	from, err := j.from.open(ctx)
	if err != nil {
		return err
	}
	to, err := j.to.open(ctx)
	if err != nil {
		return err
	}
	def, err := from.define(ctx)
	if err == nil {
		err = to.prepare(ctx, def)
	}
	if err != nil {
		return shown(ctx, err)
	}
	done := int64(0)
	err = from.changes(ctx, st.Position, j.follow, func(batch []change, next json.RawMessage) error {
		if err := j.renamed(names, batch); err != nil {
			return err
		}
		if err := to.apply(ctx, batch); err != nil {
			return err
		}
		done += int64(len(batch))
		st.Items += int64(len(batch))
		st.Position = next
		return st.save(j.state)
	})
	_, e := fmt.Fprintf(out, "%d items, %d of them now\n", st.Items, done)
	if j.follow && ctx.Err() != nil {
		return e // it was to go on until stopped
	}
	if err = errors.Join(shown(ctx, err), e); err == nil {
		err = os.Remove(j.state)
		if errors.Is(err, os.ErrNotExist) {
			err = nil // there was nothing to copy
		}
	}
	return err
}

// renamed gives the fields of items their new names (--map).
func (j *job) renamed(names *transfer.Names, batch []change) error {
	if len(j.rename) == 0 {
		return nil
	}
	for i := range batch {
		if batch[i].item == nil {
			continue
		}
		r := transfer.Row{Text: batch[i].item}
		if j.from.api == "mongodb" {
			r = transfer.Row{Doc: batch[i].item}
		}
		if err := names.Change(&r); err != nil {
			return err
		}
		batch[i].item = append([]byte(nil), append(r.Text, r.Doc...)...) // the names' room is used again
	}
	return nil
}

// shown returns an error as the user should see it.
func shown(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errEnded
	}
	return err
}

func (k *kept) load(name string) error {
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var old kept
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	if err == nil && old.Job != k.Job {
		err = errors.New("it is the state of another copy: name another file, or give --restart")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*k = old
	return nil
}

func (k *kept) save(name string) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}

// poll is the pause at the end of a feed.
const poll = 500 * time.Millisecond

// pause waits for the next look at a feed. It returns false when ctx has ended.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(poll):
		return true
	case <-ctx.Done():
		return false
	}
}

// newHTTP returns a client that follows no redirect: a request has the account's signature.
func newHTTP() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the server sends the client to another address, which is refused")
	}}
}

// workers is the number of requests at once.
const workers = 16

// each calls f for all changes, several at once, and returns the first error.
func each(ctx context.Context, batch []change, f func(context.Context, *change) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work := make(chan *change)
	done := make(chan struct{})
	for range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			for c := range work {
				if ctx.Err() == nil {
					if err := f(ctx, c); err != nil {
						stop(err)
					}
				}
			}
		}()
	}
	for i := range batch {
		work <- &batch[i]
	}
	close(work)
	for range workers {
		<-done
	}
	return context.Cause(ctx)
}
