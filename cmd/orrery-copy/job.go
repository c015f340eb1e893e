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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/progress"
)

// place is a container of a server.
type place struct {
	text, key, account string // as the flags have them
	api                string // nosql, mongodb, table or gremlin
	base               string // URL, or host:port for MongoDB
	tls                bool
	db, container      string
	secret             string
	property           string // of a graph: its partition key; "" = it has none that Gremlin shows
	lists              string // of a graph that is read: the files of its ids begin so
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
	case "gremlin+ws", "gremlin+wss":
		p.base += "/gremlin"
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
		return fmt.Errorf("the scheme %s is not known: want nosql+https, mongodb, table+https, gremlin+wss or their "+
			"kin", u.Scheme)
	}
	source := scheme == "gremlin" && last == 0 // of a server of Gremlin that has no databases
	if len(parts) != 2 && !source || parts[0] == "" || p.container == "" {
		return errors.New("the place names no database and container")
	}
	if !source {
		p.db = parts[0]
	}
	if p.account == "" {
		p.account, _, _ = strings.Cut(u.Hostname(), ".")
	}
	return nil
}

// change is an item as it is now, or one that is gone.
type change struct {
	item    []byte   // JSON or BSON
	element *element // of a graph by Gremlin
	id      []byte   // of one that is gone: a BSON document with its key
}

// source yields the items of a container, and then their changes.
type source interface {
	// define returns what prepare needs to create the container.
	define(ctx context.Context) (any, error)
	// size is the number of items as far as the server tells it without a scan; 0 = unknown.
	size(ctx context.Context) int64
	// changes calls f with items and the position behind them, from a position on; nil = the beginning. It ends when
	// everything was given; with follow it goes on until ctx ends.
	changes(ctx context.Context, from json.RawMessage, follow bool,
		f func(batch []change, next json.RawMessage) error) error
}

// target takes items. Applying a change twice does no harm.
type target interface {
	// prepare creates the container if it is absent. With dry nothing is created.
	prepare(ctx context.Context, definition any, dry bool) error
	// check returns why an item can't be written, as far as it is known without sending it.
	check(c *change) error
	// apply writes a batch, and returns the items that the server refuses.
	apply(ctx context.Context, batch []change) ([]refused, error)
}

// client is a container by its official client.
type client interface {
	source
	target
	close()
}

// open returns the client of a place.
func (p *place) open(ctx context.Context) (client, error) {
	switch p.api {
	case "nosql":
		return openNoSQL(p)
	case "mongodb":
		return openMongo(ctx, p)
	case "gremlin":
		return openGremlin(ctx, p)
	}
	return openTable(p)
}

// job is a copy.
type job struct {
	from, to        place
	key             string // the property of a graph that is its partition key
	follow, restart bool
	dry             bool
	state           string
	rename          []string // OLD=NEW: fields
	maxErrors       int64
	bad             transfer.BadRows
}

// kept is the file of a copy's state. It has no secret.
type kept struct {
	Job      string          `json:"job"`
	Position json.RawMessage `json:"position"`
	Items    int64           `json:"items"`
	Bad      int64           `json:"bad"`     // of them
	BadSize  int64           `json:"badSize"` // bytes of the file of bad rows
}

func (j *job) run(ctx context.Context, out, errOut io.Writer) error {
	for name, p := range map[string]*place{"--from": &j.from, "--to": &j.to} {
		if err := p.parse(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	switch {
	case j.from.api != j.to.api:
		return errors.New("--from and --to are of different APIs: every container of Orrery has all of them")
	case j.dry && j.follow:
		return errors.New("--dry-run ends, and --follow doesn't: give one of them")
	}
	names, err := transfer.ParseNames(j.rename)
	if err != nil {
		return err
	}
	st, err := j.begin()
	if err != nil {
		return err
	}
	j.from.lists = j.state
	if j.dry { // an earlier copy's lists stay as they are
		dir, err := os.MkdirTemp("", "orrery-copy-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		j.from.lists = filepath.Join(dir, "ids")
	}
	j.from.property, j.to.property = j.key, names.Field(j.key)
	from, err := j.from.open(ctx)
	if err != nil {
		return shown(ctx, err)
	}
	defer from.close()
	to, err := j.to.open(ctx)
	if err != nil {
		return shown(ctx, err)
	}
	defer to.close()
	def, err := from.define(ctx)
	if err == nil {
		err = to.prepare(ctx, def, j.dry)
	}
	if err != nil {
		return shown(ctx, err)
	}
	begun, started := st.Items, st.Bad
	err = errors.Join(shown(ctx, j.copy(ctx, from, to, names, &st, errOut)), j.bad.Close())
	return j.report(ctx, out, &st, st.Items-begun, started, err)
}

// copy writes what from has to to, and shows the progress.
func (j *job) copy(ctx context.Context, from source, to target, names *transfer.Names, st *kept,
	errOut io.Writer) error {
	bar := progress.New(errOut)
	defer bar.Clear()
	bar.Task("copying", false)
	begun, total := st.Items, int64(-1) // unknown
	if bar.Shown() {
		if n := from.size(ctx) - begun; n > 0 {
			total = n
		}
	}
	return from.changes(ctx, st.Position, j.follow, func(batch []change, next json.RawMessage) error {
		if err := j.write(ctx, to, st, batch, j.renamed(names, batch)); err != nil {
			return err
		}
		st.Items += int64(len(batch))
		st.Position = next
		if done := st.Items - begun; total < 0 {
			bar.Set(done, total)
		} else {
			bar.Set(done, max(total, done))
		}
		if j.dry {
			return nil
		}
		return st.save(j.state)
	})
}

// begin returns the state of an earlier copy, or that of a new one.
func (j *job) begin() (st kept, err error) {
	h := fnv.New64a()
	_, _ = io.WriteString(h, strings.Join(append([]string{j.from.text, j.to.text, j.key}, j.rename...), "\n"))
	st.Job = fmt.Sprintf("%016x", h.Sum64())
	base := "orrery-copy-" + st.Job
	if j.state == "" {
		j.state = "." + base + ".json"
	}
	if j.bad.Path == "" {
		j.bad.Path = base + ".bad.jsonl"
	}
	if !j.restart && !j.dry {
		err = st.load(j.state)
	}
	j.bad.Size = st.BadSize
	return st, err
}

// write gives a batch to the target, or only checks it. bad has the items that are bad already.
func (j *job) write(ctx context.Context, to target, st *kept, batch []change, bad []refused) error {
	good, places := batch[:0:0], []int(nil)
	for i := range batch {
		if len(bad) > 0 && slices.ContainsFunc(bad, func(r refused) bool { return r.at == i }) {
			continue
		}
		if err := to.check(&batch[i]); err != nil {
			bad = append(bad, refused{i, err.Error()})
			continue
		}
		good, places = append(good, batch[i]), append(places, i)
	}
	if !j.dry && len(good) > 0 {
		more, err := to.apply(ctx, good)
		if err != nil {
			return err
		}
		for _, r := range more {
			bad = append(bad, refused{places[r.at], r.reason})
		}
	}
	slices.SortFunc(bad, func(a, b refused) int { return a.at - b.at })
	return j.keepBad(st, batch, bad)
}

// report prints what was done, and ends the state of a copy that is complete.
func (j *job) report(ctx context.Context, out io.Writer, st *kept, done, hadBad int64, err error) error {
	text := fmt.Sprintf("%d items, %d of them now", st.Items, done)
	if j.dry {
		text = fmt.Sprintf("%d items, nothing written (--dry-run)", st.Items)
	}
	if st.Bad > 0 {
		text += fmt.Sprintf(", %d bad", st.Bad)
	}
	_, e := fmt.Fprintln(out, text)
	stopped := j.follow && ctx.Err() != nil // it was to go on until stopped
	if stopped {
		err = nil
	}
	if err = errors.Join(err, e); err == nil && !stopped && !j.dry {
		if err = os.Remove(j.state); errors.Is(err, os.ErrNotExist) {
			err = nil // there was nothing to copy
		}
		err = errors.Join(err, removeLists(j.from.lists))
	}
	if err == nil && (st.Bad > hadBad || st.Bad > 0 && !stopped) {
		err = fmt.Errorf("%d items are bad: see %s", st.Bad, j.bad.Path)
	}
	return err
}

// renamed gives the fields of items their new names (--map). It returns the items that can't have them.
func (j *job) renamed(names *transfer.Names, batch []change) []refused {
	var bad []refused
	for i := range batch {
		c := &batch[i]
		if c.element != nil {
			c.element.rename(names)
		}
		if c.item == nil || len(j.rename) == 0 {
			continue
		}
		r := transfer.Row{Text: c.item}
		if j.from.api == "mongodb" {
			r = transfer.Row{Doc: c.item}
		}
		if err := names.Change(&r); err != nil {
			bad = append(bad, refused{i, err.Error()})
			continue
		}
		c.item = append([]byte(nil), append(r.Text, r.Doc...)...) // the names' room is used again
	}
	return bad
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
func pause(ctx context.Context) bool { return wait(ctx, poll) }

// wait returns false when ctx has ended before the time has passed.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
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

// each calls f for all changes, several at once. It returns the items whose error is a badItem, or the first error of
// another kind.
func each(ctx context.Context, batch []change, f func(context.Context, *change) error) ([]refused, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var mu sync.Mutex
	var bad []refused
	var done sync.WaitGroup
	for range min(workers, len(batch)) {
		done.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= len(batch) {
					return
				}
				err := f(ctx, &batch[i])
				var b *badItem
				switch {
				case errors.As(err, &b):
					mu.Lock()
					bad = append(bad, refused{i, b.reason})
					mu.Unlock()
				case err != nil:
					stop(err)
				}
			}
		})
	}
	done.Wait()
	return bad, context.Cause(ctx)
}
