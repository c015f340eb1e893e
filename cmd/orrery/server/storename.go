package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/orrerydb/orrery/core/kv/pebblekv/backup"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// The store of a data directory is in its directory store. Test controls replace a store by another one, which is
// opened in a directory of its own before that. Then a file of the data directory names it. So a replacement is the
// replacement of one file, and at each moment the data directory has either the old store or the new one.
//
// Example: after the second reset of a server there are
//
//	store-name    with the text 4
//	stores/4      the present store
//	stores/5      an empty one for the next reset, or one that is being removed
const (
	storeName     = "store"
	storesName    = "stores"
	storeNameFile = "store-name"
)

// storeNumber is the form of the names in storesName.
var storeNumber = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)

// StoreDir returns the directory of the engine's files in a data directory.
func StoreDir(data string) string {
	name, err := readStoreName(data)
	switch {
	case err != nil:
		return filepath.Join(data, storeNameFile) // which is no directory, so that it can't be opened as a store
	case name == "":
		return filepath.Join(data, storeName)
	}
	return filepath.Join(data, storesName, name)
}

// readStoreName returns the name of the store in storesName, "" if the store was never replaced.
func readStoreName(data string) (string, error) {
	text, err := os.ReadFile(filepath.Join(data, storeNameFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	name := strings.TrimSpace(string(text))
	if !storeNumber.MatchString(name) {
		return "", fmt.Errorf("%s names no store", filepath.Join(data, storeNameFile))
	}
	return name, nil
}

// nameStore makes a store in storesName the one of the data directory, durably.
func nameStore(data, dir string) error {
	return files.Replace(backup.OS, filepath.Join(data, storeNameFile), newEnd, []byte(filepath.Base(dir)+"\n"))
}
