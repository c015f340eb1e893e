//go:build !windows

package cli

import "io/fs"

// onlyOwner reports whether nobody but the owner may read a file.
func onlyOwner(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }
