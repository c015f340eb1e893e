package cli

import "io/fs"

// onlyOwner reports whether nobody but the owner may read a file. Windows has no such bits: the folder of the user's
// settings is the user's.
func onlyOwner(fs.FileInfo) bool { return true }
