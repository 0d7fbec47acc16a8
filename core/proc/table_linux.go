package proc

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
)

// childAttributes gives a command its own session, and kills it if the thread that
// started it ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// processes returns the processes with a pid of at least oldest.
func processes(oldest int) ([]entry, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var table []entry
	buf := make([]byte, 1024)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid < oldest {
			continue
		}
		if e, ok := readStat(pid, buf); ok {
			table = append(table, e)
		}
	}
	if oldest == 0 && len(table) == 0 {
		return nil, errors.New("/proc contains no processes")
	}
	return table, nil
}

// readStat reads a process's line in the table. It is not ok if the process has
// ended.
func readStat(pid int, buf []byte) (e entry, ok bool) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return entry{}, false
	}
	defer f.Close()
	n, err := f.Read(buf)
	if err != nil {
		return entry{}, false
	}
	return parseStat(pid, buf[:n])
}

// PF_EXITING and PF_KTHREAD of the kernel's <linux/sched.h>.
const (
	exitingFlag = 0x4
	kernelFlag  = 0x200000
)

// parseStat parses "pid (name) state ppid group session tty tpgid flags …" with
// the start as field 22 (proc_pid_stat(5)). The name may contain anything, even
// parentheses.
func parseStat(pid int, line []byte) (e entry, ok bool) {
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 20 {
		return entry{}, false
	}
	started, err := strconv.ParseInt(string(fields[19]), 10, 64)
	if err != nil {
		return entry{}, false
	}
	var numbers [6]int
	for i := range numbers {
		n, err := strconv.Atoi(string(fields[i+1]))
		if err != nil {
			return entry{}, false
		}
		numbers[i] = n
	}
	state := fields[0][0]
	return entry{
		pid: pid, ppid: numbers[0], group: numbers[1], session: numbers[2],
		zombie: state == 'Z' || state == 'X', exiting: numbers[5]&exitingFlag != 0, kernel: numbers[5]&kernelFlag != 0, started: started,
	}, true
}

// environment returns the environment the process was started with.
func environment(pid int) ([]byte, error) {
	return os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
}

// newestPID returns the last pid assigned, or 0 if unknown.
func newestPID() int {
	f, err := os.Open("/proc/loadavg")
	if err != nil {
		return 0
	}
	defer f.Close()
	buf := make([]byte, 128)
	n, err := f.Read(buf)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	fields := bytes.Fields(buf[:n])
	if len(fields) != 5 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[4]))
	if err != nil {
		return 0
	}
	return pid
}
