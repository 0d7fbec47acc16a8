//go:build !windows

package langchain

import "syscall"

const connectionRefused = syscall.ECONNREFUSED
