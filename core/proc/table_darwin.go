package proc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// SZOMB and P_WEXIT of <sys/proc.h>.
const (
	zombieState = 5
	exitingFlag = 0x2000
)

// childAttributes gives a command its own session.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// processes returns the processes with a pid of at least oldest.
func processes(oldest int) ([]entry, error) {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	var table []entry
	for i := range list {
		pid := int(list[i].Proc.P_pid)
		if pid < oldest {
			continue
		}
		e := entry{
			pid: pid, ppid: int(list[i].Eproc.Ppid), group: int(list[i].Eproc.Pgid),
			zombie: list[i].Proc.P_stat == zombieState, exiting: list[i].Proc.P_flag&exitingFlag != 0,
			started: list[i].Proc.P_starttime.Nano(),
		}
		if e.session, err = unix.Getsid(pid); err != nil {
			e.session = 0
		}
		table = append(table, e)
	}
	return table, nil
}

// environment returns the arguments and the environment of a process.
func environment(pid int) ([]byte, error) { return unix.SysctlRaw("kern.procargs2", pid) }

// newestPID is not supported.
func newestPID() int { return 0 }
