package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	doors "github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
)

// PartitionsPath is the path of a container's physical partitions on the admin port. A GET names the container with the
// parameters database and container.
const PartitionsPath = "/orrery/partitions"

// PartitionsReport is the reply to a GET of PartitionsPath.
type PartitionsReport struct {
	Database   string           `json:"database"`
	Container  string           `json:"container"`
	Throughput int              `json:"throughput,omitempty"` // RU/s that the container may use; 0: it has none of its own
	Resizing   bool             `json:"resizing"`             // partitions are being split for the throughput
	Partitions []PhysicalReport `json:"partitions"`
	// what processes over a shared store are doing for the container, with all of its partitions
	Leases   []WorkReport    `json:"leases,omitempty"`
	Waiting  int             `json:"writesWaiting,omitempty"` // at this process, for a commit of others of a shared store
	Heaviest []LogicalReport `json:"heaviestKeys"`
	Keys     int64           `json:"keysSeen"` // logical partitions that were looked at
	AllKeys  bool            `json:"allKeysSeen"`
	Advice   string          `json:"advice"`
}

// PhysicalReport is a physical partition.
type PhysicalReport struct {
	PartitionStatus
	Parents []string `json:"parents"`
	LSN     int64    `json:"lsn"`
	RU      float64  `json:"ruPerSecond"`     // request units per second, in the last minute
	Total   float64  `json:"ru"`              // since the container was opened
	Share   float64  `json:"ruPerSecondMost"` // that it may use per second; 0: there is no throughput
}

// WorkReport is work of a process over a shared store.
type WorkReport struct {
	core.Lease
	Name string `json:"processName,omitempty"` // what the process calls itself
}

// LogicalReport is one of the largest logical partitions.
type LogicalReport struct {
	Key       json.RawMessage `json:"key"`
	Partition string          `json:"partition"`
	Items     int64           `json:"items"`
	Bytes     int64           `json:"bytes"`
}

// PartitionsChange is the body of a POST to PartitionsPath. The reply is the report after the change.
type PartitionsChange struct {
	Database  string `json:"database"`
	Container string `json:"container"`
	Partition string `json:"partition"` // id
	Do        string `json:"do"`        // split, or merge with the partition that follows
}

// getPartitions reports a container's partitions. The report has partition keys, which are data, so it requires the key
// unless that is public.
func (s *Server) getPartitions(c *gin.Context) {
	if s.cfg.Auth && !s.keyIsPublic() && !s.hasKey(c.Request) {
		s.askForKey(c)
		return
	}
	s.reportPartitions(c, c.Query("database"), c.Query("container"))
}

func (s *Server) reportPartitions(c *gin.Context, db, container string) {
	ct, err := s.container(c.Request.Context(), db, container)
	if err == nil {
		var r *PartitionsReport
		if r, err = s.partitions(c.Request.Context(), ct); err == nil {
			asJSON(c.Writer, r)
			return
		}
	}
	refusePartitions(c, err)
}

// postPartitions splits or merges a partition. It requires the key even without --auth, because it changes the store.
func (s *Server) postPartitions(c *gin.Context) {
	if !s.hasKey(c.Request) {
		s.askForKey(c)
		return
	}
	var ask PartitionsChange
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, 64<<10))
	if err != nil || json.Unmarshal(body, &ask) != nil || ask.Do != "split" && ask.Do != "merge" {
		plain(c.Writer, http.StatusBadRequest, "Send {\"database\": ID, \"container\": ID, \"partition\": ID, "+
			"\"do\": \"split\" or \"merge\"}.\n")
		return
	}
	ct, err := s.container(c.Request.Context(), ask.Database, ask.Container)
	if err == nil {
		do := ct.SplitPartition
		if ask.Do == "merge" {
			do = ct.MergePartitions
		}
		err = do(c.Request.Context(), ask.Partition)
	}
	if err != nil {
		refusePartitions(c, err)
		return
	}
	s.reportPartitions(c, ask.Database, ask.Container)
}

func (s *Server) container(ctx context.Context, db, id string) (*core.Container, error) {
	b := s.backing()
	if b == nil {
		return nil, status.New(status.Unavailable, "The store is not open.")
	}
	return b.eng.Within(ctx).Container(db, id)
}

// refusePartitions replies with an error.
func refusePartitions(c *gin.Context, err error) {
	st, code := status.From(err), http.StatusInternalServerError
	switch st.Code {
	case status.BadRequest:
		code = http.StatusBadRequest
	case status.NotFound:
		code = http.StatusNotFound
	case status.RetryWith:
		code = http.StatusConflict
	case status.Unavailable, status.Timeout, status.TooManyRequests, status.UnknownOutcome:
		code = http.StatusServiceUnavailable
	case status.Forbidden:
		code = http.StatusForbidden
	case status.StoreFull:
		code = http.StatusInsufficientStorage
	}
	plain(c.Writer, code, st.Msg+"\n")
}

// partitions makes the report of a container.
func (s *Server) partitions(ctx context.Context, ct *core.Container) (*PartitionsReport, error) {
	k, err := ct.ReportKey(ctx)
	if err != nil {
		return nil, err
	}
	resizing, err := s.Engine().Resizing(ctx, ct.Database(), ct.ID())
	if err != nil {
		return nil, err
	}
	r := &PartitionsReport{Database: ct.Database(), Container: ct.ID(), Throughput: ct.Spec().Throughput.Max(),
		Resizing: resizing, Partitions: []PhysicalReport{},
		Heaviest: []LogicalReport{}, Keys: k.Logical, AllKeys: k.Whole, Advice: k.Advice}
	if err := s.sharing(ctx, ct, r); err != nil {
		return nil, err
	}
	for i, p := range k.Partitions {
		u := &k.Uses[i]
		r.Partitions = append(r.Partitions, PhysicalReport{PartitionStatus{p.ID, p.Min, p.Max, p.Items, p.Bytes},
			append([]string{}, p.Parents...), p.LSN, u.Minute, u.Total, u.Share})
	}
	for _, l := range k.Heaviest {
		r.Heaviest = append(r.Heaviest, LogicalReport{json.RawMessage(l.Key), l.Partition, l.Items, l.Bytes})
	}
	return r, nil
}

// sharing adds to a report what is about several processes over one store.
func (s *Server) sharing(ctx context.Context, ct *core.Container, r *PartitionsReport) error {
	r.Waiting = ct.Waiting()
	leases, err := ct.Leases(ctx)
	if len(leases) == 0 || err != nil {
		return err
	}
	all, err := s.Engine().Processes(ctx)
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, p := range all {
		names[p.ID] = p.Name
	}
	for _, l := range leases {
		r.Leases = append(r.Leases, WorkReport{l, names[l.Process]})
	}
	return nil
}

// AskForPartitions gets the report of a container from the server at an admin port.
func AskForPartitions(ctx context.Context, admin, key, db, container string) (*PartitionsReport, error) {
	path := PartitionsPath + "?" + url.Values{"database": {db}, "container": {container}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(admin, "/")+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	return readReport(doors.Client(0).Do(req))
}

// AskToChangePartitions has the server at an admin port split or merge a partition. It returns the report afterwards.
func AskToChangePartitions(ctx context.Context, admin, key string, ask PartitionsChange) (*PartitionsReport, error) {
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	return readReport(postAdmin(ctx, admin, PartitionsPath, key, body))
}

func readReport(res *http.Response, err error) (*PartitionsReport, error) {
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return nil, errors.New(strings.TrimSpace(string(text)))
	}
	r := &PartitionsReport{}
	if err := json.NewDecoder(res.Body).Decode(r); err != nil {
		return nil, fmt.Errorf("the answer of the server is incomplete: %w", err)
	}
	return r, nil
}
