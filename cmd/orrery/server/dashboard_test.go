package server

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// dashboard has the parts of docs/grafana.json that the test reads.
type dashboard struct {
	Templating struct {
		List []struct{ Query json.RawMessage }
	}
	Panels []struct {
		Title   string
		Type    string
		Targets []struct{ Expr string }
	}
}

var metricName = regexp.MustCompile(`\b(orrery|go|process)_[a-z_]+\b`)

var histogramPart = regexp.MustCompile(`_(bucket|sum|count)$`)

// Every metric on the dashboard exists, and every metric of the server's own is on the dashboard.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	known := metricNames(t)
	shown := map[string]bool{}
	for _, v := range d.Templating.List {
		for _, name := range metricName.FindAllString(string(v.Query), -1) {
			shown[name] = true
		}
	}
	for _, p := range d.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			names := metricName.FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%s: no metric in %s", p.Title, target.Expr)
			}
			for _, name := range names {
				shown[name] = true
			}
		}
	}
	for name := range shown {
		if !known[name] {
			t.Errorf("the dashboard shows %s, which doesn't exist", name)
		}
	}
	for name := range known {
		whole := !histogramPart.MatchString(name) && !shown[name] && !shown[name+"_bucket"]
		if strings.HasPrefix(name, "orrery_") && whole && name != "orrery_build_info" {
			t.Errorf("the dashboard doesn't show %s", name)
		}
	}
}

// metricNames returns the names of all series of a server, and of the parts of its histograms.
func metricNames(t *testing.T) map[string]bool {
	t.Helper()
	families, err := wholeRegistry(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range families {
		known[f.GetName()] = true
		if len(f.GetMetric()) > 0 && f.GetMetric()[0].GetHistogram() != nil {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				known[f.GetName()+part] = true
			}
		}
	}
	return known
}
