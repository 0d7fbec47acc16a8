// Package sandbox says how a child process is confined, and works out what it
// takes: system calls for the helper of core/proc/internal/early on Linux, a profile for
// sandbox-exec on macOS. Whoever starts a process fills in a [Profile] and puts
// it into proc.Spec; proc does the rest.
package sandbox
