package sqlapi

import (
	"bytes"
	"context"
	"iter"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/sql"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// legacyVersion is the first API version in which a container must have a partition key. An older client that sends
// none gets a container with the system key. It never sends a key with its requests.
const legacyVersion = "2018-12-31"

// isLegacy reports whether the client is from before legacyVersion.
func (c *call) isLegacy() bool {
	v := header(c.In, hVersion)
	return v != "" && v < legacyVersion
}

// knowsNoKey reports whether a container has no partition key as far as the client knows: the client is from before
// legacyVersion, and the container has the system key.
func (c *call) knowsNoKey(ct *core.Container) bool {
	return ct.Spec().PartitionKey.SystemKey && c.isLegacy()
}

// container returns the container that the path names, by ids or by resource ids. sub is the sub-status of the error
// when it doesn't exist.
func (c *call) container(sub int) (*core.Container, error) {
	return c.s.container(c.Ctx(), c.Param("db"), c.Param("coll"), sub)
}

// container returns a container by ids or by resource ids.
func (s *Server) container(ctx context.Context, db, coll string, sub int) (*core.Container, error) {
	names := s.core.Within(ctx)
	ct, err := names.Container(db, coll)
	if err == nil {
		return ct, nil
	}
	if !status.Is(err, status.NotFound) {
		return nil, err
	}
	d, derr := s.database(ctx, db, status.SubOwnerNotFound)
	if derr != nil {
		return nil, derr
	}
	if d.ID != db {
		if ct, err := names.Container(d.ID, coll); !status.Is(err, status.NotFound) {
			return ct, err
		}
	}
	if raw, ok := wire.ParseRID(coll, 8); ok {
		ct, err := names.ContainerByRID([8]byte(raw))
		if err == nil && ct.Database() == d.ID || err != nil && !status.Is(err, status.NotFound) {
			return ct, err
		}
	}
	return nil, status.WithSub(status.NotFound, sub, msgNotFound)
}

// parent returns the container of the resource that the path names, if that is the one that the client means.
func (c *call) parent() (*core.Container, error) {
	ct, err := c.container(status.SubOwnerNotFound)
	if err != nil {
		return nil, err
	}
	return ct, c.intends(ct)
}

// intends refuses the request if the client meant another container of that name.
func (c *call) intends(ct *core.Container) error {
	if want := header(c.In, hIntendedRID); want != "" {
		rid := ct.RID()
		c.Spare = wire.AppendRID(c.Spare[:0], rid[:])
		if want != string(c.Spare) {
			return status.WithSub(status.BadRequest, status.SubStaleContainer, "The container was created anew: the "+
				"intended collection rid does not match.")
		}
	}
	return c.checkConsistency()
}

// setOwner adds the headers that name the database of a container. Java builds the container's own link from them.
func (c *call) setOwner(ct *core.Container) {
	c.BeginLine(hContentPath)
	rid := ct.RID()
	c.Lines = wire.AppendRID(c.Lines, rid[:4])
	c.EndLine()
	c.BeginLine(hAltContentPath)
	c.Lines = append(c.Lines, "dbs/"...)
	c.Lines = appendPathName(c.Lines, ct.Database())
	c.EndLine()
}

// setContainer adds the headers that name the container of a reply's resource: its path and its resource id. Clients
// use the resource id as the key of their session tokens.
func (c *call) setContainer(ct *core.Container) {
	c.BeginLine(hContentPath)
	rid := ct.RID()
	c.Lines = wire.AppendRID(c.Lines, rid[:])
	c.EndLine()
	c.BeginLine(hAltContentPath)
	c.Lines = append(c.Lines, "dbs/"...)
	c.Lines = appendPathName(c.Lines, ct.Database())
	c.Lines = append(c.Lines, "/colls/"...)
	c.Lines = appendPathName(c.Lines, ct.Spec().ID)
	c.EndLine()
}

// appendPathName appends a name in a form that a header can hold. Control characters and bytes outside ASCII are
// percent-encoded.
func appendPathName(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if ch := s[i]; ch > 0x20 && ch < 0x7F && ch != '%' || ch == ' ' {
			dst = append(dst, ch)
		} else {
			dst = append(dst, '%', "0123456789ABCDEF"[ch>>4], "0123456789ABCDEF"[ch&15])
		}
	}
	return dst
}

func ridText(raw []byte) string { return string(wire.AppendRID(nil, raw)) }

// containerFeed starts the feed of a database's containers.
func (c *call) containerFeed() (*feedReply, *core.Database, error) {
	d, err := c.database(status.SubOwnerNotFound)
	if err != nil {
		return nil, nil, err
	}
	rid := d.RID()
	return c.feed(ridText(rid[:]), "DocumentCollections", func(after uint64) iter.Seq2[sql.ListRow, error] {
		return func(yield func(sql.ListRow, error) bool) {
			if after >= math.MaxUint32 {
				return
			}
			for ct, err := range c.s.core.Definitions(c.Ctx(), d.ID, uint32(after)+1) {
				var row sql.ListRow
				if err == nil {
					row = c.containerRow(ct)
				}
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}), d, nil
}

func (c *call) containerRow(ct core.Definition) sql.ListRow {
	return sql.ListRow{JSON: appendContainer(nil, ct, !c.isLegacy()), Num: uint64(ct.Num())}
}

func listContainers(c *call) error {
	f, _, err := c.containerFeed()
	if err != nil {
		return err
	}
	return f.send(largestPage)
}

func queryContainers(c *call) error {
	f, d, err := c.containerFeed()
	if err != nil {
		return err
	}
	q, err := c.metaQuery()
	if err != nil {
		return err
	}
	if id, ok := q.plan.Requires(access.ID.Segs[0]); ok { // clients look for one by its id
		var found []*core.Container
		ct, err := c.s.core.Within(c.Ctx()).Container(d.ID, id)
		if err == nil {
			found = append(found, ct)
		} else if !status.Is(err, status.NotFound) {
			return err
		}
		f.rows = rowsOf(found, func(ct *core.Container) (uint64, func() ([]byte, error)) {
			return uint64(ct.Num()), func() ([]byte, error) { return c.containerRow(ct.Definition).JSON, nil }
		})
	}
	return f.answer(q)
}

func createContainer(c *call) error {
	d, err := c.database(status.SubOwnerNotFound)
	if err != nil {
		return err
	}
	if err := c.ReadBody(maxBody); err != nil {
		return err
	}
	spec, err := parseDefinition(c.Body, nil, true)
	if err != nil {
		return err
	}
	if spec.PartitionKey.SystemKey && c.isLegacy() {
		spec.PartitionKey.Version = 1
	}
	if spec.Throughput, err = c.throughput(); err != nil {
		return err
	}
	if spec.Throughput.Max() == 0 {
		spec.Throughput = core.ThroughputIn(d)
	}
	if err := c.s.checkRoom(c.Ctx(), d, spec.Throughput.Max() == 0); err != nil {
		return err
	}
	ct, err := c.s.core.CreateContainer(c.Ctx(), d.ID, spec)
	if err != nil {
		return err
	}
	return c.sendContainer(ct, http.StatusCreated)
}

func (c *call) sendContainer(ct *core.Container, code int) error {
	c.showContainer(ct)
	return c.send(code)
}

// showContainer makes the reply that shows a container.
func (c *call) showContainer(ct *core.Container) {
	c.setETag(ct.ETag())
	c.setOwner(ct)
	c.setContainerSession(ct)
	c.Out = appendContainer(c.Out[:0], ct.Definition, !c.isLegacy())
}

// setContainerSession adds the session token of a reply about the whole container: the token of the partition with the
// greatest LSN. One token is enough, because all partitions of a container share one sequence of LSNs. A list isn't
// possible, because some clients don't accept it.
func (c *call) setContainerSession(ct *core.Container) {
	best := ct.Newest()
	c.BeginLine(rSessionToken)
	c.Lines = wire.AppendSessionToken(c.Lines, best.ID, best.LSN, c.simpleTokens())
	c.EndLine()
	c.SetInt(hLSN, best.LSN)
}

func readContainer(c *call) error {
	ct, err := c.container(0)
	if err != nil {
		return err
	}
	if v := header(c.In, hIfNoneMatch); v != "" && etagListed(v, ct.ETag()) {
		c.setETag(ct.ETag())
		return errNotModified
	}
	if isTrue(c.In, hQuotaInfo) {
		if err := c.setQuota(ct); err != nil {
			return err
		}
	}
	c.SetInt(hIndexProgress, int64(ct.IndexProgressWithin(c.Ctx())))
	if isLazy(ct) {
		c.Set(hLazyProgress, "100") // a lazy index is kept as consistent as any other
	}
	c.setVersions()
	if !isTrue(c.In, hStatistics) {
		return c.sendContainer(ct, http.StatusOK)
	}
	parts, err := ct.Partitions(c.Ctx())
	if err != nil {
		return err
	}
	c.showContainer(ct)
	c.Out = appendStatistics(c.Out[:len(c.Out)-1], parts)
	return c.send(http.StatusOK)
}

// appendStatistics appends the last member of a container, with what its partitions hold, and the end of the object.
// There are no statistics of single keys.
func appendStatistics(dst []byte, parts []core.Partition) []byte {
	dst = append(dst, `,"statistics":[`...)
	for i, p := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, `{"id":"`...), p.ID...), `","sizeInKB":`...)
		dst = strconv.AppendInt(dst, (p.Bytes+1023)/1024, 10)
		dst = append(dst, `,"documentCount":`...)
		dst = strconv.AppendInt(dst, p.Items, 10)
		dst = append(dst, `,"partitionKeys":[]}`...)
	}
	return append(dst, `]}`...)
}

// isLazy reports whether a container's indexing mode is the old "lazy".
func isLazy(ct *core.Container) bool {
	return bytes.HasPrefix(ct.Spec().IndexingPolicy, []byte(`{"indexingMode":"lazy"`)) // see normalIndexing
}

// Quotas of a container that clients show beside the usage.
const (
	quotaKB = 50 << 20 // one physical partition: 50 GB
)

// setQuota adds the quota and usage headers; sizes are in KB.
func (c *call) setQuota(ct *core.Container) error {
	quota, usage, err := c.s.quotaOf(c.Ctx(), ct)
	if err != nil {
		return err
	}
	c.Set(hResourceQuota, quota)
	c.Set(hResourceUsage, usage)
	return ct.Settle()
}

// quotaOf returns what a container may hold, and what it holds.
func (s *Server) quotaOf(ctx context.Context, ct *core.Container) (quota, usage string, err error) {
	parts, err := ct.Partitions(ctx)
	if err != nil {
		return "", "", err
	}
	var items, size int64
	for _, p := range parts {
		items, size = items+p.Items, size+p.Bytes
	}
	quota = "functions=" + strconv.Itoa(maxFunctions) + ";storedProcedures=" + strconv.Itoa(maxProcedures) +
		";triggers=" + strconv.Itoa(maxTriggers) + ";documentSize=" +
		strconv.Itoa(quotaKB/1024*len(parts)) +
		";documentsSize=" + strconv.Itoa(quotaKB*len(parts)) + ";documentsCount=-1;collectionSize=" +
		strconv.Itoa(quotaKB*len(parts)) + ";"
	for i, t := range []*resourceType{functions, procedures, triggers} {
		n, err := t.counted(ctx, s, ct)
		if err != nil {
			return "", "", err
		}
		usage += [...]string{"functions=", ";storedProcedures=", ";triggers="}[i] + n
	}
	kb := strconv.FormatInt((size+1023)/1024, 10)
	usage += ";documentSize=" +
		strconv.FormatInt(size>>20, 10) +
		";documentsSize=" + kb + ";documentsCount=" + strconv.FormatInt(items, 10) + ";collectionSize=" + kb + ";"
	return quota, usage, nil
}

// replaceContainer changes the indexing policy, the time to live and the stored members of a container. Nothing else
// can change.
func replaceContainer(c *call) error {
	ct, err := c.container(0)
	if err != nil {
		return err
	}
	if err := c.ReadBody(maxBody); err != nil {
		return err
	}
	ct, err = c.s.core.Redefine(c.Ctx(), ct.Database(), ct.ID(), func(d core.Definition) (core.ContainerSpec, error) {
		spec, err := parseDefinition(c.Body, d.Spec(), c.strict())
		if err == nil {
			err = c.ifMatch(d.ETag())
		}
		return spec, err
	})
	if err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(c.Ctx(), rebuildWait)
	defer cancel()
	if err := ct.WaitIndex(soon); err != nil && !status.Is(err, status.Timeout) {
		return err
	}
	c.SetInt(hIndexProgress, int64(ct.IndexProgressWithin(c.Ctx())))
	return c.sendContainer(ct, http.StatusOK)
}

// rebuildWait is how long a replace waits until the index follows a changed policy. For a small container the index is
// ready before the reply, so a test needn't poll before its next query.
const rebuildWait = 100 * time.Millisecond

func deleteContainer(c *call) error {
	ct, err := c.container(0)
	if err != nil {
		return err
	}
	if err := c.ifMatch(ct.ETag()); err != nil {
		return err
	}
	if err := c.s.core.DropContainer(c.Ctx(), ct.Database(), ct.Spec().ID); err != nil {
		return err
	}
	return c.send(http.StatusNoContent)
}
