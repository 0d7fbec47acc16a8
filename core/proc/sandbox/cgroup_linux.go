package sandbox

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// groupPrefix begins the names of control groups.
const groupPrefix = "agent-"

// groups is where control groups of version 2 are, and the file that names that of
// this process.
type groups struct{ mount, self string }

func systemGroups() groups { return groups{"/sys/fs/cgroup", "/proc/self/cgroup"} }

// create creates a control group with limits below that of this process or beside it,
// where that was delegated to the user. It is empty if it was not.
func (g groups) create(l Limits) string {
	if l == (Limits{}) {
		return ""
	}
	own, ok := g.own()
	if !ok {
		return ""
	}
	for _, parent := range []string{own, filepath.Dir(own)} {
		if parent != g.mount && !strings.HasPrefix(parent, g.mount+"/") || unix.Access(filepath.Join(parent, "cgroup.procs"), unix.W_OK) != nil {
			continue
		}
		enabled := enabledControllers(parent)
		if len(enabled) == 0 {
			continue
		}
		sweepGroups(parent)
		dir := filepath.Join(parent, groupPrefix+rand.Text())
		if os.Mkdir(dir, 0o755) == nil {
			setLimits(dir, enabled, l)
			return dir
		}
	}
	return ""
}

// own returns the control group of this process.
func (g groups) own() (string, bool) {
	if _, err := os.Stat(filepath.Join(g.mount, "cgroup.controllers")); err != nil {
		return "", false // version 1
	}
	data, err := os.ReadFile(g.self)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return filepath.Join(g.mount, path), true
		}
	}
	return "", false
}

// enabledControllers returns those that limit groups below one. They are enabled there
// if possible, which it is only without processes.
func enabledControllers(parent string) (enabled []string) {
	read := func(name string) []string {
		data, _ := os.ReadFile(filepath.Join(parent, name)) // without it, there are none
		return strings.Fields(string(data))
	}
	for _, c := range []string{"memory", "pids", "cpu"} {
		control := filepath.Join(parent, "cgroup.subtree_control")
		if slices.Contains(read("cgroup.subtree_control"), c) ||
			slices.Contains(read("cgroup.controllers"), c) && os.WriteFile(control, []byte("+"+c), 0) == nil && slices.Contains(read("cgroup.subtree_control"), c) {
			enabled = append(enabled, c)
		}
	}
	return enabled
}

// setLimits sets the limits of a group. It gets at most half of the processors.
func setLimits(dir string, enabled []string, l Limits) {
	set := func(controller, file, value string) {
		if slices.Contains(enabled, controller) {
			_ = os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644) // a kernel may lack it; other limits remain
		}
	}
	if l.Memory > 0 {
		set("memory", "memory.max", strconv.FormatInt(l.Memory, 10))
		set("memory", "memory.swap.max", "0")
		set("memory", "memory.oom.group", "1")
	}
	if l.Processes > 0 {
		set("pids", "pids.max", strconv.Itoa(l.Processes))
	}
	if l.CPU > 0 {
		const period = 100_000
		set("cpu", "cpu.max", fmt.Sprintf("%d %d", max(1, runtime.NumCPU()/2)*period, period))
	}
}

// sweepGroups removes empty groups that killed agents left behind; others cannot be
// removed.
func sweepGroups(parent string) {
	old, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*")) // the pattern is valid
	for _, dir := range old {
		_ = unix.Rmdir(dir)
	}
}

// joinGroup moves a process into a group.
func joinGroup(dir string, pid int) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
}

// removeGroup ends what is left in a group and removes it. If that takes longer, the
// next group that is created removes it.
func removeGroup(dir string) {
	_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0o644)
	_ = unix.Rmdir(dir)
}
