package cli

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]size{
		"0": 0, "1048576": 1 << 20, "512B": 512, "4KiB": 4 << 10, "16MiB": 16 << 20, "2GiB": 2 << 30,
		"1.5 GiB": 3 << 29, "1TiB": 1 << 40, "": -1, "MiB": -1, "-1MiB": -1, "16MB": -1, "16mib": -1, "1e30TiB": -1,
		"NaN": -1, "Inf": -1, "8388608TiB": -1, "4 4KiB": -1,
	} {
		var s size
		err := s.Set(text)
		if (want < 0) != (err != nil) || err == nil && s != want {
			t.Errorf("%q: %d, %v", text, s, err)
		}
	}
}
