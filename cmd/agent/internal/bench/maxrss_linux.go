package main

import (
	"os"
	"syscall"
)

// maxResident returns the peak resident memory of an ended process in bytes.
func maxResident(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return int64(usage.Maxrss) * 1024 // the kernel counts in KiB
}
