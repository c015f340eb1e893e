package mongoapi

import (
	"strings"
	"testing"
)

// TestMemberStatus: the member of replSetGetStatus was elected, and replicates from nobody.
func TestMemberStatus(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	all := c.inDatabase("admin", `{"replSetGetStatus":1}`)
	m := all.Lookup("members", "0").Document()
	elected, _ := m.Lookup("electionTime").Timestamp()
	if date := m.Lookup("electionDate").DateTime(); elected == 0 || date != int64(elected)*1000 {
		t.Errorf("elected at %d, %d", elected, date)
	}
	if m.Lookup("syncSourceHost").StringValue() != "" || m.Lookup("syncSourceId").Int32() != -1 {
		t.Error(m)
	}
	if all.Lookup("optimes", "lastAppliedWallTime").DateTime() != m.Lookup("lastAppliedWallTime").DateTime() {
		t.Error(all)
	}
}

// TestBuildEnvironment: programs tell systems apart by it.
func TestBuildEnvironment(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	e := c.inDatabase("admin", `{"buildInfo":1}`).Lookup("buildEnvironment").Document()
	arch := c.inDatabase("admin", `{"hostInfo":1}`).Lookup("system", "cpuArch").StringValue()
	if e.Lookup("target_arch").StringValue() != arch || strings.HasPrefix(arch, "amd") {
		t.Errorf("%v on %s", e, arch)
	}
}
