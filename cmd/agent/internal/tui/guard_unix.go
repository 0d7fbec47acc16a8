//go:build unix

package tui

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// watchScript remembers the terminal's modes, and those that the session then
// sets. When the pipe on its stdin ends without a goodbye, the session was
// killed: if the terminal still is as the session set it, it gets its modes
// back. Fd 3 is the terminal to read from, 4 the one to write to.
const watchScript = `trap '' HUP INT QUIT TERM TSTP TTIN TTOU
saved=$(stty -g <&3) || exit 1
raw=
echo ready
while read -r word; do
	case $word in
	raw) raw=$(stty -g <&3) ;;
	bye) exit 0 ;;
	esac
done
if [ -z "$raw" ] || [ "$(stty -g <&3)" = "$raw" ]; then
	stty "$saved" <&3
	printf '\r\n\033[J\033[?2004l\033[?25h\033[0m' >&4
fi`

// watcher is a small process that outlives a killed session for as long as it
// takes to restore the terminal.
type watcher struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// watchTerminal starts a watcher, before the terminal's modes are changed. It
// returns nil where that is not possible; all methods of nil do nothing.
func watchTerminal(in, out *os.File, path string) *watcher {
	cmd := exec.Command("/bin/sh", "-c", watchScript)
	cmd.Env = []string{"PATH=" + path}
	cmd.ExtraFiles = []*os.File{in, out}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what is sent to our group is not for it
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil
	}
	ready, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return nil
	}
	w := &watcher{cmd, pipe}
	if line, err := bufio.NewReader(ready).ReadString('\n'); err != nil || line != "ready\n" {
		w.close()
		return nil
	}
	return w
}

// raw tells that the session has set the terminal's modes.
func (w *watcher) raw() {
	if w != nil {
		_, _ = io.WriteString(w.pipe, "raw\n") // a watcher that is gone is missed by nobody
	}
}

// close ends the watcher: the session restores the terminal itself.
func (w *watcher) close() {
	if w != nil {
		_, _ = io.WriteString(w.pipe, "bye\n")
		_ = w.pipe.Close()
		_ = w.cmd.Wait()
	}
}

// capable reports whether a terminal of this type can move its cursor.
func capable(term string) bool { return term != "" && term != "dumb" && term != "unknown" }

// canSuspend reports whether there is a shell to go back to: a process group
// that nobody in its session waits for cannot be stopped, and would not be
// woken.
func canSuspend() bool {
	ours, err := unix.Getsid(0)
	parents, perr := unix.Getsid(os.Getppid())
	return err == nil && perr == nil && ours == parents && unix.Getpgrp() != ours
}
