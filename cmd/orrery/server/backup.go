package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/backup"
)

// BackupPath is the path of backups on the admin port.
const BackupPath = "/orrery/backup"

// BackupRequest is the body of a POST to BackupPath.
type BackupRequest struct {
	To string `json:"to"` // the directory of backups: an absolute path on the server's machine
}

// BackupLine is a line of the reply. All lines except the last one report progress. The last line has the backup or the
// error.
type BackupLine struct {
	Done   int64      `json:"doneBytes"`
	Total  int64      `json:"totalBytes"`
	Backup *kv.Backup `json:"backup,omitempty"`
	Error  string     `json:"error,omitempty"`
}

// backupLineTime is the time between two lines of a reply.
const backupLineTime = 200 * time.Millisecond

// backupLines are the lines of an answer.
type backupLines struct {
	w    gin.ResponseWriter
	last time.Time
	line BackupLine
}

// progress writes a line if backupLineTime has passed. From then on the status is sent, so an error must go into the
// last line.
func (b *backupLines) progress(done, total int64) {
	b.line.Done, b.line.Total = done, total
	if now := wall.Now(); now.Sub(b.last) >= backupLineTime {
		b.last = now
		b.write(http.StatusOK)
	}
}

func (b *backupLines) write(code int) {
	if !b.w.Written() {
		b.w.Header().Set("Content-Type", "application/x-ndjson")
		b.w.WriteHeader(code)
	}
	_ = json.NewEncoder(b.w).Encode(&b.line)
	b.w.Flush()
}

// postBackup makes a backup. It requires the key even without --auth, because it writes to the server's disk.
func (s *Server) postBackup(c *gin.Context) {
	if !s.hasKey(c.Request) {
		s.askForKey(c)
		return
	}
	var ask BackupRequest
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, 64<<10))
	if err != nil || json.Unmarshal(body, &ask) != nil || !filepath.IsAbs(ask.To) {
		plain(c.Writer, http.StatusBadRequest, "Send {\"to\": DIRECTORY}, with an absolute path on the server's "+
			"machine.\n")
		return
	}
	ctx, cancel := context.WithCancel(c.Request.Context())
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	out := &backupLines{w: c.Writer}
	out.line.Backup, err = s.backup(ctx, filepath.Clean(ask.To), out.progress)
	if err != nil {
		out.line.Error = err.Error()
	}
	out.write(backupCode(err))
}

func backupCode(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, core.ErrNoBackups):
		return http.StatusNotImplemented
	case errors.Is(err, kv.ErrFull):
		return http.StatusInsufficientStorage
	}
	return http.StatusConflict
}

// backup makes a backup of the server's store in a directory. Its errors are sentences for the operator.
func (s *Server) backup(ctx context.Context, to string, progress func(done, total int64)) (*kv.Backup, error) {
	b := s.backing()
	if b == nil {
		return nil, core.ErrNoBackups
	}
	if s.stage != nil { // tests may replace the store, and a store that is read can't be closed
		limited, cancel := s.stage.untilReplaced(ctx)
		defer cancel()
		ctx = limited
	}
	clk := b.eng.Clock()
	var random [4]byte
	clk.Random(random[:])
	o := kv.BackupOptions{Taken: clk.Now(), Progress: func(done, total int64) {
		s.backups.progress(done, total)
		progress(done, total)
	}}
	o.Name = backup.Name(o.Taken, random)
	begun := wall.Now()
	s.backups.begin()
	done, err := b.eng.Backup(ctx, to, o)
	err = backupError(err)
	s.backups.end(&done, err)
	if err != nil {
		s.log.Warn("A backup was not made", "to", to, "error", err)
		return nil, err
	}
	s.log.Info("A backup was made", "path", done.Path, "bytes", done.Bytes, "copied", done.Copied,
		"took", wall.Now().Sub(begun))
	return &done, nil
}

// refusedBackup is a refusal with its sentence as the error text.
type refusedBackup struct{ *kv.Refusal }

// Error implements error.
func (r refusedBackup) Error() string { return r.Sentence }

// Unwrap lets errors.Is find the kind of the refusal.
func (r refusedBackup) Unwrap() error { return r.Kind }

func backupError(err error) error {
	var r *kv.Refusal
	if errors.As(err, &r) {
		return refusedBackup{r}
	}
	return err
}

// BackupStatus is the part of /status about backups since the start.
type BackupStatus struct {
	Running bool       `json:"running"`
	Done    int64      `json:"doneBytes,omitempty"` // of the running backup
	Total   int64      `json:"totalBytes,omitempty"`
	Last    *kv.Backup `json:"last,omitempty"` // the last backup that was made
	LastEnd string     `json:"lastEnd,omitempty"`
	Error   string     `json:"error,omitempty"` // of the last request, if it failed
}

// backups tracks the backups of a server.
type backups struct {
	mu      sync.Mutex
	running int // running backups; a second one is refused
	st      *BackupStatus

	made, failed int
	last         time.Time // when the last one was made; zero: none since the start
}

// figures are the metrics for alerts: the age of the last backup shows that no more backups are made.
func (b *backups) figures() []figure {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := 0.0
	if !b.last.IsZero() {
		last = float64(b.last.Unix())
	}
	const help = "Backups that were asked for since the start."
	return []figure{
		{"orrery_backups_total", help, counter, float64(b.made), []label{{"outcome", "made"}}},
		{"orrery_backups_total", help, counter, float64(b.failed), []label{{"outcome", "failed"}}},
		{"orrery_backup_last_timestamp_seconds", "When the last backup was made, 0 for none since the start.", gauge,
			last, nil},
	}
}

func (b *backups) status() *BackupStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.st == nil {
		return nil
	}
	st := *b.st
	st.Running = b.running > 0
	return &st
}

func (b *backups) change(f func(st *BackupStatus)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.st == nil {
		b.st = &BackupStatus{}
	}
	f(b.st)
}

func (b *backups) begin() { b.change(func(*BackupStatus) { b.running++ }) }

func (b *backups) progress(done, total int64) {
	b.change(func(st *BackupStatus) { st.Done, st.Total = done, total })
}

func (b *backups) end(made *kv.Backup, err error) {
	b.change(func(st *BackupStatus) {
		b.running--
		st.Done, st.Total, st.Error = 0, 0, ""
		if err != nil {
			b.failed++
			st.Error = err.Error()
			return
		}
		b.made, b.last = b.made+1, wall.Now()
		st.Last, st.LastEnd = made, b.last.UTC().Format(time.RFC3339)
	})
}

// AskForBackup has the server at an admin port make a backup, and reports its progress. When ctx ends, the server
// aborts the backup.
func AskForBackup(ctx context.Context, admin, key, to string, progress func(done, total int64)) (*kv.Backup, error) {
	body, err := json.Marshal(BackupRequest{To: to})
	if err != nil {
		return nil, err
	}
	res, err := postAdmin(ctx, admin, BackupPath, key, body)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Type") != "application/x-ndjson" {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return nil, fmt.Errorf("the server answers %s: %s", res.Status, text)
	}
	for lines := json.NewDecoder(res.Body); ; {
		var l BackupLine
		if err := lines.Decode(&l); err != nil {
			return nil, fmt.Errorf("the connection ended before the backup was complete: %w", err)
		}
		switch {
		case l.Error != "":
			return nil, errors.New(l.Error)
		case l.Backup != nil:
			return l.Backup, nil
		}
		progress(l.Done, l.Total)
	}
}
