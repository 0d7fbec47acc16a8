package wire

import "golang.org/x/sys/windows"

// connectionRefused is the error of Winsock, which is not syscall.ECONNREFUSED.
const connectionRefused = windows.WSAECONNREFUSED
