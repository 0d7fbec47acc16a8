// Package sandbox defines how a child process is confined, and computes what that
// takes: system calls for the helper of core/proc/internal/early on Linux, a profile for
// sandbox-exec on macOS. To confine a process, put a [Profile] into proc.Spec;
// package proc does the rest.
package sandbox
