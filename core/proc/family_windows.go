package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// guardScript is empty: a job object ends with the process that created it.
const guardScript = ""

func guardAttributes() *syscall.SysProcAttr { return nil }

// childAttributes detaches a command from the console of this process.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
}

// member is a process of a command.
type member struct {
	pid     int
	exiting bool // always false
}

// family is the set of a command's processes: those of a job object. Processes
// that the first one starts before it is assigned to the job, just after its
// start, are not part of it.
type family struct {
	leader *os.Process
	job    windows.Handle // 0 if none: then only the leader is known
}

func newFamily(cmd *exec.Cmd, _ string, _ time.Time, _ bool) *family {
	f := &family{leader: cmd.Process}
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return f
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		err = assign(job, cmd.Process.Pid)
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return f
	}
	f.job = job
	return f
}

// assign puts a process into a job.
func assign(job windows.Handle, pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	return windows.AssignProcessToJobObject(job, process)
}

// close ends the job and its remaining processes.
func (f *family) close() {
	if f.job != 0 {
		_ = windows.CloseHandle(f.job)
		f.job = 0
	}
}

func (f *family) lingers() bool { return len(f.members(false)) > 0 }

// jobProcesses is JOBOBJECT_BASIC_PROCESS_ID_LIST with a fixed number of ids.
type jobProcesses struct {
	assigned, listed uint32
	ids              [1024]uintptr
}

// members returns the processes of the job except the leader.
func (f *family) members(bool) []member {
	if f.job == 0 {
		return nil
	}
	var processes jobProcesses
	err := windows.QueryInformationJobObject(f.job, windows.JobObjectBasicProcessIdList,
		uintptr(unsafe.Pointer(&processes)), uint32(unsafe.Sizeof(processes)), nil)
	if err != nil && err != windows.ERROR_MORE_DATA {
		return nil
	}
	var list []member
	for _, id := range processes.ids[:processes.listed] {
		if int(id) != f.leader.Pid {
			list = append(list, member{pid: int(id)})
		}
	}
	return list
}

// signal kills everything at once: there is no SIGTERM.
func (f *family) signal([]member, bool) {
	if f.job != 0 {
		_ = windows.TerminateJobObject(f.job, 1)
		return
	}
	_ = f.leader.Kill()
}

// interruptScript sends CTRL_BREAK to a process group, which only a process on its
// console can do. That of this program must stay as it is.
const interruptScript = `$k = Add-Type -Name Kernel -Namespace Agent -PassThru -MemberDefinition '
[DllImport("kernel32.dll")] public static extern bool FreeConsole();
[DllImport("kernel32.dll")] public static extern bool AttachConsole(uint process);
[DllImport("kernel32.dll")] public static extern bool GenerateConsoleCtrlEvent(uint kind, uint group);'
[void]$k::FreeConsole(); if ($k::AttachConsole(%[1]d)) { [void]$k::GenerateConsoleCtrlEvent(1, %[1]d) }`

// interruptTime limits how long interrupting takes.
const interruptTime = 5 * time.Second

// interrupt sends CTRL_BREAK to the leader's group: CTRL_C is ignored in a new group.
func (f *family) interrupt() {
	ctx, cancel := context.WithTimeout(context.Background(), interruptTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "powershell.exe", "-NoProfile", "-NonInteractive", "-Command", fmt.Sprintf(interruptScript, f.leader.Pid))
	cmd.SysProcAttr = childAttributes()
	_ = cmd.Run() // the command may have ended
}

// status returns the exit code; there are no signals.
func status(state *os.ProcessState) (code int, signal string) { return state.ExitCode(), "" }

// endDetached does nothing: everything a command started ended with its job.
func (s *Supervisor) endDetached() {}
