//go:build !linux && !darwin

package main

import "os"

// maxResident returns 0: this platform does not report a process's peak memory.
func maxResident(*os.ProcessState) int64 { return 0 }
