package sqlapi

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/sql"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// throughput parses the throughput headers of a create. It is zero when there are none.
func (c *call) throughput() (core.Throughput, error) {
	var t core.Throughput
	manual, auto := header(c.In, hThroughput), header(c.In, hAutopilot)
	switch {
	case manual != "" && auto != "":
		return t, status.New(status.BadRequest, "Both manual throughput and autoscale settings are given; only one "+
			"is allowed.")
	case manual != "":
		n, err := strconv.Atoi(manual)
		if err != nil {
			return t, badHeader("x-ms-offer-throughput", manual)
		}
		t.Manual = n
	case auto != "":
		var a autopilotJSON
		if json.Unmarshal([]byte(auto), &a) != nil {
			return t, badHeader("x-ms-cosmos-offer-autopilot-settings", auto)
		}
		if t = a.throughput(); t.AutoscaleMax == 0 {
			return t, badHeader("x-ms-cosmos-offer-autopilot-settings", auto)
		}
	default:
		return t, nil
	}
	return t, core.CheckThroughput(t, 0)
}

type autopilotJSON struct {
	MaxThroughput int `json:"maxThroughput"`
	AutoUpgrade   *struct {
		Throughput struct {
			Increment int `json:"incrementPercent"`
		} `json:"throughputPolicy"`
	} `json:"autoUpgradePolicy"`
}

// throughput returns the settings in the core's form.
func (a *autopilotJSON) throughput() core.Throughput {
	t := core.Throughput{AutoscaleMax: a.MaxThroughput}
	if a.AutoUpgrade != nil {
		t.AutoscaleIncrement, t.AutoscalePolicy = a.AutoUpgrade.Throughput.Increment, true
	}
	return t
}

// offer is the resource that shows the throughput of a container or database. It isn't stored: it is derived from the
// container or database, so the two can't differ.
type offer struct {
	ct   *core.Definition
	db   *core.Database
	held core.Held
}

func (o offer) throughput() core.Throughput {
	if o.ct != nil {
		return o.ct.Spec().Throughput
	}
	return o.db.Throughput
}

// rid returns the resource id: 3 bytes, little-endian, with the low bits of the container's or database's id. The top
// bit marks offers of databases.
func (o offer) rid() [3]byte {
	if o.ct != nil {
		r := o.ct.RID()
		return [3]byte{r[7], r[6], r[5] & 0x7F}
	}
	r := o.db.RID()
	return [3]byte{r[3], r[2], r[1] | 0x80}
}

// num is greater than those of the offers before it: databases come first, then containers by their databases.
func (o offer) num() uint64 {
	if o.ct != nil {
		r := o.ct.RID()
		return binary.BigEndian.Uint64(r[:])
	}
	return uint64(o.db.Num)
}

func (o offer) etag() string {
	if o.ct != nil {
		return o.ct.ETag()
	}
	return core.DatabaseETag(o.db)
}

func (o offer) ts() int64 {
	if o.ct != nil {
		return o.ct.TS()
	}
	return o.db.TS
}

// append appends the offer as the service shows it. The storage that it shows is the present one: that of earlier times
// isn't recorded, and the least throughput doesn't depend on it.
func (o offer) append(dst []byte) []byte {
	t := o.throughput()
	now := t.Manual
	if t.AutoscaleMax > 0 {
		now = t.AutoscaleMax / core.AutoscaleRange
	}
	dst = append(dst, `{"resource":"`...)
	if o.ct != nil {
		dst = appendContainerSelf(dst, o.ct.RID())
	} else {
		r := o.db.RID()
		dst = append(dst, "dbs/"...)
		dst = append(wire.AppendRID(dst, r[:]), '/')
	}
	dst = append(dst, `","offerType":"Invalid","offerVersion":"V2","offerResourceId":"`...)
	if o.ct != nil {
		r := o.ct.RID()
		dst = wire.AppendRID(dst, r[:])
	} else {
		r := o.db.RID()
		dst = wire.AppendRID(dst, r[:])
	}
	dst = append(dst, `","content":{"offerThroughput":`...)
	dst = strconv.AppendInt(dst, int64(now), 10)
	dst = append(dst, `,"offerIsRUPerMinuteThroughputEnabled":false,`+
		`"offerMinimumThroughputParameters":{"maxThroughputEverProvisioned":`...)
	dst = strconv.AppendInt(dst, int64(t.Ever()), 10)
	dst = append(dst, `,"maxConsumedStorageEverInKB":`...)
	dst = strconv.AppendInt(dst, (o.held.Bytes+1023)/1024, 10)
	dst = append(dst, `},"offerLastReplaceTimestamp":`...)
	dst = strconv.AppendInt(dst, o.ts(), 10)
	if t.AutoscaleMax > 0 {
		dst = append(dst, `,"offerAutopilotSettings":{"maxThroughput":`...)
		dst = strconv.AppendInt(dst, int64(t.AutoscaleMax), 10)
		if t.AutoscalePolicy || t.AutoscaleIncrement > 0 {
			dst = append(dst, `,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":`...)
			dst = strconv.AppendInt(dst, int64(t.AutoscaleIncrement), 10)
			dst = append(dst, `}}`...)
		}
		dst = append(dst, '}')
	}
	rid := o.rid()
	dst = append(dst, `},"id":"`...)
	dst = wire.AppendRID(dst, rid[:])
	dst = append(dst, `","_rid":"`...)
	dst = wire.AppendRID(dst, rid[:])
	dst = append(dst, `","_self":"offers/`...)
	dst = wire.AppendRID(dst, rid[:])
	dst = append(dst, `/","_etag":`...)
	dst = appendQuotedETag(dst, o.etag())
	dst = append(dst, `,"_ts":`...)
	dst = strconv.AppendInt(dst, o.ts(), 10)
	return append(dst, '}')
}

// numberBits are the bits of a container's number that the resource id of its offer has.
const numberBits = 23

// offerByRID returns an offer without what it holds. It reads no other containers' definitions.
func (s *Server) offerByRID(ctx context.Context, rid [3]byte) (offer, error) {
	dbs, err := s.core.Databases(ctx)
	if err != nil {
		return offer{}, err
	}
	for _, d := range dbs {
		if o := (offer{db: d}); d.Throughput.Max() > 0 && o.rid() == rid {
			return o, nil
		}
	}
	number := uint32(rid[0]) | uint32(rid[1])<<8 | uint32(rid[2])<<16
	if number>>numberBits != 0 { // that of a database
		return offer{}, errNotFound
	}
	for ct, err := range s.core.Numbered(ctx, number, numberBits) {
		if err != nil && !status.Is(err, status.NotFound) { // not found: dropped in the meantime
			return offer{}, err
		}
		if err == nil && ct.Spec().Throughput.Max() > 0 {
			return offer{ct: &ct}, nil
		}
	}
	return offer{}, errNotFound
}

// hold adds what the throughput serves.
func (s *Server) hold(ctx context.Context, o *offer) (err error) {
	if o.ct == nil {
		o.held, err = s.core.HeldBy(ctx, o.db)
		return err
	}
	ct, err := s.core.Within(ctx).Container(o.ct.Database(), o.ct.ID())
	if err == nil {
		o.held.Bytes, err = ct.Size(ctx)
	}
	return err
}

// holdAll is offers with what each holds. It opens no container.
func (s *Server) holdAll(ctx context.Context) (out []offer, err error) {
	var containers []offer
	dbs, err := s.core.Databases(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range dbs {
		shared := core.Held{}
		for st, err := range s.core.Stats(ctx, d.ID) {
			if err != nil {
				return nil, err
			}
			if st.Spec().Throughput.Max() > 0 {
				containers = append(containers, offer{ct: &st.Definition, held: core.Held{Bytes: st.Bytes}})
				continue
			}
			shared.Bytes, shared.Shared = shared.Bytes+st.Bytes, shared.Shared+1
		}
		if d.Throughput.Max() > 0 {
			out = append(out, offer{db: d, held: shared})
		}
	}
	return append(out, containers...), nil
}

func (c *call) offerFeed(all []offer) *feedReply {
	return c.feed("", "Offers", rowsOf(all, func(o offer) (uint64, func() ([]byte, error)) {
		return o.num(), func() ([]byte, error) { return o.append(nil), nil }
	}))
}

func listOffers(c *call) error {
	all, err := c.s.holdAll(c.Ctx())
	if err != nil {
		return err
	}
	return c.offerFeed(all).send(unlimited)
}

// createOffer refuses the request. An offer is created together with its container or database.
func createOffer(*call) error {
	return status.New(status.BadRequest, "Offers are made with their container or database.")
}

// queryOffers answers a query over offers. Clients look for that of one container or database, by its _rid or its self
// link. Such a query reads that one.
func queryOffers(c *call) error {
	q, err := c.metaQuery()
	if err != nil {
		return err
	}
	var all []offer
	if rid, ok := ownerOf(q.plan); ok {
		all, err = c.s.offersOf(c.Ctx(), rid)
	} else {
		all, err = c.s.holdAll(c.Ctx())
	}
	if err != nil {
		return err
	}
	return c.offerFeed(all).answer(q)
}

// ownerOf returns the _rid of the container or database whose offer a query wants, if its filter requires one.
func ownerOf(p *sql.Plan) (rid string, ok bool) {
	if rid, ok = p.Requires("offerResourceId"); ok {
		return rid, true
	}
	link, ok := p.Requires("resource") // dbs/<rid>/ or dbs/<rid>/colls/<rid>/
	link = strings.Trim(link, "/")
	return link[strings.LastIndexByte(link, '/')+1:], ok
}

// offersOf returns the offer of the container or database with a _rid, none when there is no such thing or it has no
// throughput of its own.
func (s *Server) offersOf(ctx context.Context, rid string) ([]offer, error) {
	var o offer
	if raw, ok := wire.ParseRID(rid, 8); ok {
		ct, err := s.core.Within(ctx).ContainerByRID([8]byte(raw))
		if err == nil {
			o.ct = &ct.Definition
		} else if !status.Is(err, status.NotFound) {
			return nil, err
		}
	} else if raw, ok := wire.ParseRID(rid, 4); ok {
		var err error
		if o.db, err = s.core.Within(ctx).DatabaseByRID([4]byte(raw)); err != nil && !status.Is(err, status.NotFound) {
			return nil, err
		}
	}
	if o.ct == nil && o.db == nil || o.throughput().Max() == 0 {
		return nil, nil
	}
	err := s.hold(ctx, &o)
	if status.Is(err, status.NotFound) { // dropped in the meantime
		return nil, nil
	}
	return []offer{o}, err
}

// offer returns the offer that the path names.
func (c *call) offer() (offer, error) {
	raw, ok := wire.ParseRID(c.Param("id"), 3)
	if !ok {
		return offer{}, errNotFound
	}
	o, err := c.s.offerByRID(c.Ctx(), [3]byte(raw))
	if err == nil {
		err = c.s.hold(c.Ctx(), &o)
	}
	return o, err
}

func (c *call) sendOffer(o offer) error {
	c.setETag(o.etag())
	c.SetInt(hMinThroughput, int64(core.LeastThroughput(o.throughput(), o.held)))
	pending, err := c.replacePending(o)
	if err != nil {
		return err
	}
	c.Set(hReplacePending, strconv.FormatBool(pending))
	c.Out = o.append(c.Out[:0])
	return c.send(http.StatusOK)
}

// replacePending reports whether partitions are still being split to follow the throughput.
func (c *call) replacePending(o offer) (bool, error) {
	if o.ct == nil {
		return false, nil
	}
	return c.s.core.Resizing(c.Ctx(), o.ct.Database(), o.ct.ID())
}

func readOffer(c *call) error {
	o, err := c.offer()
	if err != nil {
		return err
	}
	return c.sendOffer(o)
}

// offerJSON is the part of an offer that a client may change. Both forms are accepted: the whole offer, and its content
// alone.
type offerJSON struct {
	ID              *string          `json:"id"`
	RID             *string          `json:"_rid"`
	OfferResourceID *string          `json:"offerResourceId"`
	Content         *offerContent    `json:"content"`
	Autopilot       *json.RawMessage `json:"offerAutopilotSettings"`
}

type offerContent struct {
	Throughput *int           `json:"offerThroughput"`
	Autopilot  *autopilotJSON `json:"offerAutopilotSettings"`
}

// replaceOffer changes throughput. The reply has a body even under Prefer: return=minimal, because clients rely on it.
func replaceOffer(c *call) error {
	o, err := c.offer()
	if err != nil {
		return err
	}
	if err := c.ReadBody(maxBody); err != nil {
		return err
	}
	var b offerJSON
	if json.Unmarshal(c.Body, &b) != nil {
		return errInvalid
	}
	rid := o.rid()
	if b.RID != nil && *b.RID != ridText(rid[:]) {
		return status.New(status.BadRequest, "The _rid %s in the body is not that of the offer.",
			strconv.QuoteToASCII(clip(*b.RID)))
	}
	if b.Content == nil && b.Autopilot != nil {
		b.Content = &offerContent{Autopilot: &autopilotJSON{}}
		if json.Unmarshal(*b.Autopilot, b.Content.Autopilot) != nil {
			return errInvalid
		}
	}
	if b.Content == nil {
		return missing("content")
	}
	if o, err = c.changeOffer(o, b.Content); err != nil {
		return err
	}
	return c.sendOffer(o)
}

// changeOffer gives the container or database of an offer the throughput that a PUT requests. It decides on their
// present definition.
func (c *call) changeOffer(o offer, in *offerContent) (_ offer, err error) {
	next := func() (t core.Throughput, err error) {
		if err = c.ifMatch(o.etag()); err == nil {
			t, err = c.nextThroughput(o, in)
		}
		return t, err
	}
	if o.ct == nil {
		o.db, err = c.s.core.RedefineDatabase(c.Ctx(), o.db.ID, func(d *core.Database) (core.Throughput, error) {
			o.db = d
			return next()
		})
		return o, err
	}
	ct, err := c.s.core.Redefine(c.Ctx(), o.ct.Database(), o.ct.ID(), func(d core.Definition) (core.ContainerSpec,
		error) {
		o.ct = &d
		spec := *d.Spec()
		t, err := next()
		if err == nil && c.strict() {
			err = c.s.core.CheckIdle(c.Ctx(), d, t)
		}
		spec.Throughput = t
		return spec, err
	})
	if err == nil {
		o.ct = &ct.Definition
	}
	return o, err
}

// nextThroughput returns the throughput that a PUT requests. A change between manual and autoscale needs its header,
// and then the server chooses the value.
func (c *call) nextThroughput(o offer, in *offerContent) (core.Throughput, error) {
	var t core.Throughput
	old := o.throughput()
	least := core.LeastThroughput(old, o.held)
	wasAuto := old.AutoscaleMax > 0
	switch {
	case isTrue(c.In, hToAutopilot) && isTrue(c.In, hToManual):
		return t, status.New(status.BadRequest, "A change to autoscale and one to manual throughput are both "+
			"requested.")
	case isTrue(c.In, hToAutopilot) && !wasAuto, isTrue(c.In, hToManual) && wasAuto:
		return core.Migrated(old, o.held), nil
	case in.Autopilot != nil && !wasAuto:
		return t, status.New(status.BadRequest, "x-ms-cosmos-migrate-offer-to-autopilot must be supplied and "+
			"offercontent must not contain autopilotSettings for migration from manual throughput to autoscale.")
	case in.Autopilot != nil:
		if t = in.Autopilot.throughput(); t.AutoscaleMax <= 0 {
			return t, errInvalid
		}
	case wasAuto:
		return t, status.New(status.BadRequest, "x-ms-cosmos-migrate-offer-to-manual-throughput must be supplied "+
			"for migration from autoscale to manual throughput.")
	case in.Throughput != nil:
		t.Manual = *in.Throughput
	default:
		return t, missing("offerThroughput")
	}
	return t, core.CheckThroughput(t, least)
}
