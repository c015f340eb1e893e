//go:build !linux

package script

import (
	"os"
	"syscall"
)

func defaultCommand() (string, error) { return os.Executable() }

func endsWithParent() *syscall.SysProcAttr { return nil }
