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

// watchScript saves the terminal's modes, and those that the session then sets.
// If its stdin ends without "bye", the session was killed: unless the modes have
// changed since, it restores the saved ones. Fd 3 is the terminal's input, fd 4
// its output.
const watchScript = `trap '' HUP INT QUIT TERM TSTP TTIN TTOU
saved=$(stty -g <&3) || exit 1
raw=
leave=
echo ready
while read -r word; do
	case $word in
	raw) raw=$(stty -g <&3) ;;
	alt) leave='\033[?1049l' ;;
	main) leave= ;;
	bye) exit 0 ;;
	esac
done
if [ -z "$raw" ] || [ "$(stty -g <&3)" = "$raw" ]; then
	stty "$saved" <&3
	printf "$leave"'\r\n\033[J\033[?2004l\033[?25h\033[0m' >&4
fi`

// watcher is a small process that restores the terminal after the session was
// killed.
type watcher struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// watchTerminal starts a watcher, before the terminal's modes are changed. It
// returns nil if that fails; all methods of nil do nothing.
func watchTerminal(in, out *os.File, path string) *watcher {
	cmd := exec.Command("/bin/sh", "-c", watchScript)
	cmd.Env = []string{"PATH=" + path}
	cmd.ExtraFiles = []*os.File{in, out}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no signals to our process group
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

// raw tells the watcher that the session has set the terminal's modes.
func (w *watcher) raw() {
	w.tell("raw")
}

// tell tells the watcher a word of its script.
func (w *watcher) tell(word string) {
	if w != nil {
		_, _ = io.WriteString(w.pipe, word+"\n") // the session works without a watcher, too
	}
}

// close stops the watcher. The session restores the terminal itself.
func (w *watcher) close() {
	if w != nil {
		_, _ = io.WriteString(w.pipe, "bye\n")
		_ = w.pipe.Close()
		_ = w.cmd.Wait()
	}
}

// capable reports whether a terminal of this type can move its cursor.
func capable(term string) bool { return term != "" && term != "dumb" && term != "unknown" }

// canSuspend reports whether there is a shell with job control to return to: an
// orphaned process group cannot be stopped, and would not be continued.
func canSuspend() bool {
	ours, err := unix.Getsid(0)
	parents, perr := unix.Getsid(os.Getppid())
	return err == nil && perr == nil && ours == parents && unix.Getpgrp() != ours
}
