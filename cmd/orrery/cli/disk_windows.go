package cli

import "golang.org/x/sys/windows"

// diskRoom returns the free and all bytes of a directory's disk.
func diskRoom(dir string) (free, total int64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, err
	}
	var mine, all, unused uint64
	err = windows.GetDiskFreeSpaceEx(name, &mine, &all, &unused)
	return int64(mine), int64(all), err
}
