//go:build !windows

package wire

import "syscall"

const connectionRefused = syscall.ECONNREFUSED
