package store_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// TestHugeLogsResumeInBoundedMemory resumes logs of 235 MB, each in a process of
// its own: never compacted, in large and in small records, and with full outputs.
func TestHugeLogsResumeInBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes and reads 700 MB")
	}
	const size, most = 235 << 20, 300 << 10 // bytes, KiB
	text := strings.Repeat("output of a tool, with \"quotes\"\n", 2000)
	for _, shape := range []struct {
		name    string
		content string
		output  *event.Output
		compact int // after so many rounds
	}{
		{"large results", text[:30_000], nil, 0},
		{"small results", text[:500], nil, 0},
		{"full outputs", text[:30_000], &event.Output{Text: text, Bytes: int64(len(text))}, 100},
	} {
		t.Run(shape.name, func(t *testing.T) {
			dir := t.TempDir()
			f, err := os.Create(filepath.Join(dir, "s.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			out, seq, written := bufio.NewWriter(f), 0, 0
			write := func(call string, body event.Body) {
				seq++
				e := newEvent(seq, body)
				e.Call, e.Required = call, event.Rebuilds(body)
				line, err := e.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				n, _ := out.Write(append(line, '\n')) // Flush has the error
				written += n
			}
			for i := 1; written < size; i++ {
				id := fmt.Sprint("c", i)
				write("", event.User{Content: model.TextParts("go on")})
				write("", event.Message{Content: model.Parts{model.ToolCall{ID: id, Name: "x", Args: "{}"}}, Stop: model.StopToolCalls})
				write(id, event.ToolResult{Name: "x", Content: model.TextParts(shape.content), Output: shape.output})
				if shape.compact > 0 && i%shape.compact == 0 {
					write("", event.Compacted{Content: model.TextParts("notes"), Summarised: 300})
				}
			}
			if err := out.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"=resume", "STORE_TEST_DIR="+dir)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			if !ok || usage.Maxrss > most {
				t.Errorf("resuming %d records took %d MiB, want at most %d", seq, usage.Maxrss>>10, most>>10)
			}
			t.Logf("%d records: %d MiB, %s of CPU time", seq, usage.Maxrss>>10, cmd.ProcessState.UserTime())
		})
	}
}
