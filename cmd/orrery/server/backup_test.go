package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A backup needs the key, even without --auth, and isn't available to pages of other sites.
func TestBackupIsAskedForWithTheKey(t *testing.T) {
	for _, auth := range []bool{true, false} {
		s, _ := whole(t, func(c *Config) {
			c.Memory, c.Data, c.Auth = false, t.TempDir(), auth
		})
		to := filepath.Join(t.TempDir(), "backups")
		good := fmt.Sprintf(`{"to":%q}`, to)
		for _, c := range []struct {
			name, method, body string
			header             []string
			code               int
			text               string
		}{
			{"no key", "POST", good, nil, 401, "account key"},
			{"a wrong key", "POST", good, []string{"Authorization", "Bearer d3Jvbmc="}, 401, "account key"},
			{"a page of another site", "POST", good,
				[]string{"Authorization", "Bearer " + s.cfg.Key, "Sec-Fetch-Site", "cross-site"}, 403, "other sites"},
			{"another name", "POST", good, []string{"Authorization", "Bearer " + s.cfg.Key, "Host", "evil.example"},
				421, "not a name"},
			{"GET", "GET", "", []string{"Authorization", "Bearer " + s.cfg.Key}, 405, ""},
			{"no body", "POST", "", []string{"Authorization", "Bearer " + s.cfg.Key}, 400, "absolute"},
			{"a relative path", "POST", `{"to":"x"}`, []string{"Authorization", "Bearer " + s.cfg.Key}, 400,
				"absolute"},
			{"the data directory", "POST", fmt.Sprintf(`{"to":%q}`, s.cfg.Data),
				[]string{"Authorization", "Bearer " + s.cfg.Key}, 409, "may contain the other"},
			{"a directory that can't be", "POST", `{"to":"/dev/null/x"}`,
				[]string{"Authorization", "Bearer " + s.cfg.Key}, 409, "could not be made"},
			{"good", "POST", good, []string{"Authorization", "Bearer " + s.cfg.Key}, 200, `"backup":{"path":`},
		} {
			if _, err := os.Stat(to); err == nil {
				t.Errorf("before %s: a backup was made", c.name)
			}
			req, err := http.NewRequest(c.method, "http://"+s.Addr(Admin)+BackupPath, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(c.header); i += 2 {
				req.Header.Set(c.header[i], c.header[i+1])
			}
			if h := req.Header.Get("Host"); h != "" {
				req.Host = h
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || res.StatusCode != c.code || !strings.Contains(string(text), c.text) {
				t.Errorf("auth %v, %s: %d %s, want %d %s", auth, c.name, res.StatusCode, text, c.code, c.text)
			}
		}
		_, figures := get(t, http.DefaultClient, "http://"+s.Addr(Admin)+"/metrics")
		for _, line := range []string{"orrery_backups_total{outcome=\"made\"} 1\n",
			"orrery_backups_total{outcome=\"failed\"} 2\n",
			"orrery_backup_last_timestamp_seconds 1"} {
			if !strings.Contains(figures, line) {
				t.Errorf("auth %v: the figures lack %q", auth, line)
			}
		}
	}
}

// A server in memory replies that there is nothing to back up.
func TestNoBackupOfAServerInMemory(t *testing.T) {
	s, ctx := whole(t, nil)
	_, err := AskForBackup(ctx, "http://"+s.Addr(Admin)+"/", s.cfg.Key, "/x", func(int64, int64) {})
	if err == nil || !strings.Contains(err.Error(), "in memory") {
		t.Error(err)
	}
}

// A backup ends when its server stops or its client disconnects.
func TestBackupEndsWithWhoAsks(t *testing.T) {
	s, _ := whole(t, func(c *Config) { c.Memory, c.Data = false, t.TempDir() })
	to := filepath.Join(t.TempDir(), "backups")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.backup(ctx, to, func(int64, int64) {}); err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("nobody waits for it: %v", err)
	}
	if st := s.status(context.Background()).Backup; st == nil || st.Running ||
		!strings.Contains(st.Error, "cancelled") || st.Last != nil {
		t.Errorf("/status says %+v", st)
	}
	made, err := s.backup(context.Background(), to, func(int64, int64) {
		if st := s.status(context.Background()).Backup; !st.Running || st.Total == 0 {
			t.Errorf("in the middle /status says %+v", st)
		}
	})
	if st := s.status(context.Background()).Backup; err != nil || st.Running || st.Error != "" ||
		st.Last.Path != made.Path || st.LastEnd == "" {
		t.Errorf("%v; /status says %+v", err, st)
	}
	if s.life.Err() != nil {
		t.Error("the server has ended")
	}
	stop(t, s, 0)
	if s.life.Err() == nil {
		t.Error("a backup would go on while the store is closed")
	}
}
