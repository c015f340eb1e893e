package pebblekv

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/orrerydb/orrery/core/few"
)

// numbered is a file with its number.
type numbered struct {
	name string
	num  uint64
}

// parts are the files of a directory, sorted by their kind.
type parts struct {
	logs, tables, manifests, options []numbered // by number
	markers                          []string
	others                           []string // of a store, but ignored: locks and incomplete files
	foreign                          []string // not of a store
	// logs that a relaxed store of an older version left when it was killed
	heirs     []string
	note      bool // see closedNote
	identity  bool // see identityName
	opened    bool // see openedName
	restoring bool // see restoringName
	old       bool // a file of formats before the oldest that can be read
}

var partNames = regexp.MustCompile(`^(?:(\d+)(?:-\d+)?\.(log)|(\d+)\.(sst|blob)|(MANIFEST|OPTIONS)-(\d+))$`)

// heirPrefix begins the names of logs that a relaxed store of an older version left when it was killed.
const heirPrefix = "heir-"

// partsOf sorts the files of a directory.
func partsOf(fs vfs.FS, dir string) (p parts, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return p, err
	}
	slices.Sort(names)
	kinds := map[string]*[]numbered{
		"log": &p.logs, "sst": &p.tables, "blob": &p.tables, "MANIFEST": &p.manifests, "OPTIONS": &p.options,
	}
	for _, name := range names {
		m := partNames.FindStringSubmatch(name)
		if m == nil {
			p.other(name)
			continue
		}
		num, err := strconv.ParseUint(m[1]+m[3]+m[6], 10, 64)
		if err != nil {
			p.foreign = append(p.foreign, name)
			continue
		}
		to := kinds[m[2]+m[4]+m[5]]
		*to = append(*to, numbered{name, num})
	}
	for _, l := range [][]numbered{p.logs, p.tables, p.manifests, p.options} {
		few.Sort(l, func(a, b numbered) int { return cmp.Compare(a.num, b.num) })
	}
	return p, nil
}

func (p *parts) other(name string) {
	switch {
	case name == closedName:
		p.note = true
	case name == identityName:
		p.identity = true
	case name == openedName:
		p.opened = true
	case name == restoringName:
		p.restoring = true
	case strings.HasPrefix(name, "marker."):
		p.markers = append(p.markers, name)
	case name == "CURRENT":
		p.old = true
	case strings.HasPrefix(name, heirPrefix):
		p.heirs = append(p.heirs, name)
	case name == "LOCK", name == ballastName, name == stageName, name == tablesName, strings.HasSuffix(name, tempEnd):
		p.others = append(p.others, name)
	default:
		p.foreign = append(p.foreign, name)
	}
}

// Holds reports whether a directory has files of a store. It is false if the directory can't be read.
func Holds(dir string) bool {
	p, err := partsOf(vfs.Default, dir)
	return err == nil && !p.empty()
}

// empty reports whether there are no files of a store.
func (p *parts) empty() bool {
	files := len(p.logs) + len(p.tables) + len(p.manifests) + len(p.options) + len(p.markers) + len(p.heirs)
	return files == 0 && !p.note && !p.identity && !p.old
}
