package mongoapi

import "testing"

// TestHostInfo: monitors divide memory and files by what hostInfo says that there is.
func TestHostInfo(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	now := connect(t, addr).inDatabase("admin", `{"hostInfo":1}`)
	size, limit := now.Lookup("system", "memSizeMB").Int64(), now.Lookup("system", "memLimitMB").Int64()
	if size < 64 || limit <= 0 || limit > size {
		t.Errorf("%d MB of memory, %d MB of them may be used", size, limit)
	}
	if n := now.Lookup("extra", "numPages").Int64() * now.Lookup("extra", "pageSize").Int64() >> 20; n != size {
		t.Errorf("pages of %d MB, memory of %d MB", n, size)
	}
	if now.Lookup("extra", "maxOpenFiles").Int64() <= 0 || now.Lookup("extra", "kernelVersion").StringValue() == "" {
		t.Error(now)
	}
	if now.Lookup("system", "numNumaNodes").Int32() < 1 {
		t.Error(now)
	}
}
