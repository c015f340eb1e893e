package sqlapi

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// legacyVersion is the first API version under which a container must have a partition key: an older client that sends
// none gets a container with the system key as well, and never sends a key.
const legacyVersion = "2018-12-31"

// defaultThroughput is what a container gets that neither has throughput of its own nor shares its database's.
const defaultThroughput = 400

// container finds the container that the path names, by ids or by resource ids. sub is the sub-status when it is
// missing.
func (c *call) container(sub int) (*core.Container, error) {
	return c.s.container(c.Param("db"), c.Param("coll"), sub)
}

// container finds a container by ids or by resource ids.
func (s *Server) container(db, coll string, sub int) (*core.Container, error) {
	ct, err := s.core.Container(db, coll)
	if err == nil {
		return ct, nil
	}
	if !status.Is(err, status.NotFound) {
		return nil, err
	}
	d, derr := s.database(db, status.SubOwnerNotFound)
	if derr != nil {
		return nil, derr
	}
	if d.ID != db {
		if ct, err := s.core.Container(d.ID, coll); err == nil {
			return ct, nil
		}
	}
	if raw, ok := wire.ParseRID(coll, 8); ok {
		if ct, e := s.core.ContainerByRID([8]byte(raw)); e == nil && ct.Database() == d.ID {
			return ct, nil
		}
	}
	return nil, status.WithSub(status.NotFound, sub, msgNotFound)
}

// parent finds the container of the resource that the path names, and holds the client to the container that it meant.
func (c *call) parent() (*core.Container, error) {
	ct, err := c.container(status.SubOwnerNotFound)
	if err != nil {
		return nil, err
	}
	if want := header(c.In, hIntendedRID); want != "" {
		rid := ct.RID()
		c.Spare = wire.AppendRID(c.Spare[:0], rid[:])
		if want != string(c.Spare) {
			return nil, status.WithSub(status.BadRequest, status.SubStaleContainer, "The container was created "+
				"anew: the intended collection rid does not match.")
		}
	}
	return ct, c.checkConsistency()
}

// setOwner adds the headers that name what a container belongs to. Java makes the container's own link from them.
func (c *call) setOwner(ct *core.Container) {
	n := len(c.Values)
	rid := ct.RID()
	c.Values = wire.AppendRID(c.Values, rid[:4])
	c.Add(hContentPath, n)
	n = len(c.Values)
	c.Values = append(c.Values, "dbs/"...)
	c.Values = appendPathName(c.Values, ct.Database())
	c.Add(hAltContentPath, n)
}

// setContainer adds the headers that name the container that the resource of a reply belongs to: its path and its
// resource id, which clients keep session tokens by.
func (c *call) setContainer(ct *core.Container) {
	n := len(c.Values)
	rid := ct.RID()
	c.Values = wire.AppendRID(c.Values, rid[:])
	c.Add(hContentPath, n)
	n = len(c.Values)
	c.Values = append(c.Values, "dbs/"...)
	c.Values = appendPathName(c.Values, ct.Database())
	c.Values = append(c.Values, "/colls/"...)
	c.Values = appendPathName(c.Values, ct.Spec().ID)
	c.Add(hAltContentPath, n)
}

// appendPathName appends a name as a header can hold it: bytes outside ASCII and controls are percent-encoded.
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
	return c.feed(ridText(rid[:]), "DocumentCollections"), d, nil
}

// addContainers adds at most n containers of a database, in the order of their creation, from one on.
func (f *feedReply) addContainers(d *core.Database, from, n int) error {
	for ct, err := range f.c.s.core.Definitions(d.ID, from) {
		if err != nil {
			return err
		}
		if n--; n < 0 {
			return nil
		}
		f.add(appendContainer(nil, ct))
	}
	return nil
}

func listContainers(c *call) error {
	f, d, err := c.containerFeed()
	if err != nil {
		return err
	}
	all := c.s.core.ContainerCount(d.ID)
	from, to, err := f.window(all, min(all, largestPage))
	if err != nil {
		return err
	}
	if err := f.addContainers(d, from, to-from); err != nil {
		return err
	}
	return f.write()
}

func queryContainers(c *call) error {
	f, d, err := c.containerFeed()
	if err != nil {
		return err
	}
	if err := f.addContainers(d, 0, math.MaxInt); err != nil {
		return err
	}
	return f.query()
}

func createContainer(c *call) error {
	d, err := c.database(status.SubOwnerNotFound)
	if err != nil {
		return err
	}
	if err := c.ReadBody(maxBody); err != nil {
		return err
	}
	spec, err := parseDefinition(c.Body, nil)
	if err != nil {
		return err
	}
	if spec.PartitionKey.SystemKey && header(c.In, hVersion) < legacyVersion && header(c.In, hVersion) != "" {
		spec.PartitionKey.Version = 1
	}
	if spec.Throughput, err = c.throughput(); err != nil {
		return err
	}
	if spec.Throughput.Max() == 0 && d.Throughput.Max() == 0 {
		spec.Throughput.Manual = defaultThroughput
	}
	if err := c.s.checkRoom(d, spec.Throughput.Max() == 0); err != nil {
		return err
	}
	ct, err := c.s.core.CreateContainer(c.Ctx(), d.ID, spec)
	if err != nil {
		return err
	}
	return c.sendContainer(ct, http.StatusCreated)
}

func (c *call) sendContainer(ct *core.Container, code int) error {
	c.setETag(ct.ETag())
	c.setOwner(ct)
	c.setContainerSession(ct)
	c.Out = appendContainer(c.Out[:0], ct.Definition)
	return c.send(code)
}

// setContainerSession adds the session token of a reply that concerns the whole container: that of its partition with
// the greatest LSN. One pair, because some clients take no list, and all partitions of a container count on one scale.
func (c *call) setContainerSession(ct *core.Container) {
	parts := ct.Partitions()
	best := parts[0]
	for _, p := range parts[1:] {
		if p.LSN > best.LSN {
			best = p
		}
	}
	n := len(c.Values)
	c.Values = wire.AppendSessionToken(c.Values, best.ID, best.LSN)
	c.Add(rSessionToken, n)
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
	c.SetInt(hIndexProgress, int64(ct.IndexProgress()))
	if isLazy(ct) {
		c.Set(hLazyProgress, "100") // kept as consistently as any other
	}
	c.setVersions()
	return c.sendContainer(ct, http.StatusOK)
}

// isLazy reports whether a container's indexing mode is the old "lazy".
func isLazy(ct *core.Container) bool {
	return bytes.HasPrefix(ct.Spec().IndexingPolicy, []byte(`{"indexingMode":"lazy"`)) // as normalIndexing writes it
}

// Quotas of a container that clients show beside the usage.
const (
	quotaKB = 50 << 20 // one physical partition: 50 GB
)

// setQuota adds the quota and usage headers; sizes are in KB.
func (c *call) setQuota(ct *core.Container) error {
	parts := ct.Partitions()
	c.Set(hResourceQuota, "functions=50;storedProcedures=100;triggers=25;documentSize="+
		strconv.Itoa(quotaKB/1024*len(parts))+
		";documentsSize="+strconv.Itoa(quotaKB*len(parts))+";documentsCount=-1;collectionSize="+
		strconv.Itoa(quotaKB*len(parts))+";")
	kb := strconv.FormatInt((ct.Size()+1023)/1024, 10)
	c.Set(hResourceUsage, "functions=0;storedProcedures=0;triggers=0;documentSize="+
		strconv.FormatInt(ct.Size()>>20, 10)+
		";documentsSize="+kb+";documentsCount="+strconv.FormatInt(ct.Count(), 10)+";collectionSize="+kb+";")
	return ct.Settle()
}

// replaceContainer changes what may change: indexing policy, time to live and the kept members.
func replaceContainer(c *call) error {
	ct, err := c.container(0)
	if err != nil {
		return err
	}
	if err := c.ReadBody(maxBody); err != nil {
		return err
	}
	old := ct.Spec()
	spec, err := parseDefinition(c.Body, old)
	if err != nil {
		return err
	}
	if err := c.ifMatch(ct.ETag()); err != nil {
		return err
	}
	if ct, err = c.s.core.ReplaceContainer(c.Ctx(), ct.Database(), old.ID, spec); err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(c.Ctx(), rebuildWait)
	defer cancel()
	if err := ct.WaitIndex(soon); err != nil && !status.Is(err, status.Timeout) {
		return err
	}
	c.SetInt(hIndexProgress, int64(ct.IndexProgress()))
	return c.sendContainer(ct, http.StatusOK)
}

// rebuildWait is how long a replace waits for the index to follow a changed policy: a small container's does before the
// reply, so that what a test suite asks next needs no polling.
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
