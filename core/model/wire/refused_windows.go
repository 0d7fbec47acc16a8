package wire

import "golang.org/x/sys/windows"

// connectionRefused is what Winsock returns; package syscall's ECONNREFUSED is
// not.
const connectionRefused = windows.WSAECONNREFUSED
