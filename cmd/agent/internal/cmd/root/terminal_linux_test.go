package root

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// BenchmarkTerminal opens a session of 8,000 events on a terminal. It reports how long
// that takes until keys are accepted, the memory that the process then has, and the
// processor time that it uses in a second without input.
func BenchmarkTerminal(b *testing.B) {
	w := newWorld(b, `[]`)
	var events []event.Body
	for i := range 4000 {
		events = append(events, event.User{Content: model.TextParts(fmt.Sprintf("question %d", i))}, event.Message{Content: model.TextParts("An *answer* of some words.\n\n- one\n- two\n")})
	}
	keepSession(b, filepath.Join(w.home, ".agent"), "long", w.workspace, events...)
	var opened, busy time.Duration
	var memory int
	for b.Loop() {
		begun := time.Now()
		s := w.onTerminal("resume", "long")
		if err := await("the prompt", func() bool {
			return strings.Contains(s.text(), "question 3999") && strings.Contains(s.text(), "default")
		}); err != nil {
			b.Fatalf("%v\n%s", err, s.text())
		}
		opened += time.Since(begun)
		before := processorTime(b, s.cmd.Process.Pid)
		time.Sleep(time.Second) // what is measured
		busy += processorTime(b, s.cmd.Process.Pid) - before
		memory = max(memory, resident(b, s.cmd.Process.Pid))
		s.answer("default", "/quit\r")
		s.exits(0)
	}
	b.ReportMetric(float64(opened.Milliseconds())/float64(b.N), "ms-open")
	b.ReportMetric(float64(busy.Milliseconds())/float64(b.N), "ms-cpu-idle-second")
	b.ReportMetric(float64(memory>>10), "MiB")
	b.ReportMetric(0, "ns/op")
}

// processorTime returns what a process has used, in steps of 10 ms.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] { // of user and system
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// resident returns the memory of a process in KiB.
func resident(b *testing.B, pid int) int {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(data), "VmRSS:")
	n, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		b.Fatal(err)
	}
	return n
}
