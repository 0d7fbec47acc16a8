package proc

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	tests := []struct {
		line string
		want entry
		ok   bool
	}{
		{"7 (sh) S 1 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 0 0 0 0 99", entry{pid: 7, ppid: 1, group: 7, session: 7, started: 99}, true},
		{"7 (a) b) (c) R 2 3 4 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 99", entry{pid: 7, ppid: 2, group: 3, session: 4, started: 99}, true},
		{"7 (new\nline) Z 2 3 4 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 99", entry{pid: 7, ppid: 2, group: 3, session: 4, started: 99, zombie: true}, true},
		{"7 (sh) X 2 3 4 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 99", entry{pid: 7, ppid: 2, group: 3, session: 4, started: 99, zombie: true}, true},
		{"7 (sh) S 2 3 4 0 -1 4194308 0 0 0 0 0 0 0 0 0 0 0 0 99 5", entry{pid: 7, ppid: 2, group: 3, session: 4, started: 99, exiting: true}, true},
		{"7 (sh) S 1 7 7 0 -1 0 0 0", entry{}, false},
		{"7 (sh) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 soon", entry{}, false},
		{"7 (sh) S one 7 7 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 99", entry{}, false},
		{"", entry{}, false},
	}
	for _, test := range tests {
		if got, ok := parseStat(7, []byte(test.line)); got != test.want || ok != test.ok {
			t.Errorf("%q: %+v, %t, want %+v, %t", test.line, got, ok, test.want, test.ok)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (a) b) (c) R 2 3 4 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 99"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, ok := parseStat(7, line); !ok && e != (entry{}) {
			t.Errorf("%q is not ok and yet %+v", line, e)
		}
	})
}

func TestProcesses(t *testing.T) {
	table, err := processes(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range table {
		if e.pid == os.Getpid() {
			if e.ppid != os.Getppid() || e.zombie {
				t.Errorf("this process is %+v", e)
			}
			return
		}
	}
	t.Error("this process is not in the table")
}

func TestNewestPID(t *testing.T) {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Skip(err)
	}
	fields := strings.Fields(string(data))
	if fields[len(fields)-1] == "0" {
		t.Skip("this system does not report the newest pid")
	}
	if _, err := strconv.Atoi(fields[len(fields)-1]); err != nil {
		t.Skip(err)
	}
	if newestPID() <= 0 {
		t.Error("the newest pid is unknown")
	}
}
