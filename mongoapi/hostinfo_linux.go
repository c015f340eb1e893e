package mongoapi

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/orrerydb/orrery/core/bson"
)

// memoryLimits are the files with the memory that a container's processes may use, of both versions of cgroups.
var memoryLimits = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// thisMachine reads what the kernel and the distribution say.
func thisMachine() machine {
	m := machine{name: "linux"}
	var s syscall.Sysinfo_t
	if syscall.Sysinfo(&s) == nil {
		m.memory = int64(s.Totalram) * int64(s.Unit)
	}
	m.limit = m.memory
	for _, name := range memoryLimits {
		if n, err := strconv.ParseInt(firstLine(name), 10, 64); err == nil && n > 0 && n < m.limit {
			m.limit = n
		}
	}
	nodes, _ := filepath.Glob("/sys/devices/system/node/node[0-9]*")
	m.nodes = int32(max(1, len(nodes)))
	release, _ := os.ReadFile("/etc/os-release")
	for line := range strings.Lines(string(release)) {
		key, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch v = strings.Trim(v, `"'`); key {
		case "NAME":
			m.name = v
		case "VERSION_ID":
			m.version = v
		}
	}
	m.extra = m.linux
	return m
}

// linux appends the part extra.
func (m *machine) linux(dst []byte) []byte {
	dst = bson.AppendString(dst, "versionString", firstLine("/proc/version"))
	dst = bson.AppendString(dst, "kernelVersion", firstLine("/proc/sys/kernel/osrelease"))
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	first, _, _ := strings.Cut(string(cpus), "\n\n") // it stands for all
	for line := range strings.Lines(first) {
		key, v, _ := strings.Cut(line, ":")
		v = strings.TrimSpace(v)
		switch strings.TrimSpace(key) {
		case "model name":
			dst = bson.AppendString(dst, "cpuString", v)
		case "cpu MHz":
			dst = bson.AppendString(dst, "cpuFrequencyMHz", v)
		case "flags", "Features":
			dst = bson.AppendString(dst, "cpuFeatures", v)
		}
	}
	page := int64(os.Getpagesize())
	dst = bson.AppendInt64(dst, "pageSize", page)
	dst = bson.AppendInt64(dst, "numPages", m.memory/page)
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		dst = bson.AppendInt64(dst, "maxOpenFiles", int64(files.Cur))
	}
	return dst
}

// firstLine returns the first line of a file, "" if it can't be read.
func firstLine(name string) string {
	b, _ := os.ReadFile(name)
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}
