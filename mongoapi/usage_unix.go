//go:build unix

package mongoapi

import "syscall"

// usage returns what the process has used, by the names of extra_info.
func usage() []named {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return nil
	}
	return []named{{"user_time_us", u.Utime.Nano() / 1000}, {"system_time_us", u.Stime.Nano() / 1000},
		{"page_faults", int64(u.Majflt)}, {"page_reclaims", int64(u.Minflt)}}
}
