package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

// launchCommand makes bench the launcher of one contestant: it starts it,
// waits and reports. Until the exec, the kernel counts the parent's resident
// memory into the child's peak; a fresh launcher keeps that floor at some 7 MiB,
// bench with its server would not.
const launchCommand = "launch"

// launchReport is the launcher's report to bench.
type launchReport struct {
	Started int64 `json:"started"` // Unix time in nanoseconds, just before the start
	Wall    int64 `json:"wall"`    // nanoseconds until the process had exited
	Peak    int64 `json:"peak"`    // bytes
}

// launcher returns the command that runs argv and writes a report file. When
// ctx ends, the launcher is interrupted and kills what it runs.
func launcher(ctx context.Context, report string, argv []string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{launchCommand, report}, argv...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	return cmd, nil
}

// launchMain is the launcher's main function: args are the report file and the
// command line to run. It returns the exit code.
func launchMain(args []string) int {
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: bench launch REPORT PROGRAM [ARG …]")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := launch(ctx, args[0], args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "launch:", err)
		return 1
	}
	return 0
}

func launch(ctx context.Context, report string, argv []string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	started := time.Now()
	err := cmd.Run()
	elapsed := time.Since(started)
	if err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	data, err := json.Marshal(launchReport{
		Started: started.UnixNano(),
		Wall:    elapsed.Nanoseconds(),
		Peak:    maxResident(cmd.ProcessState),
	})
	if err != nil {
		return err
	}
	return os.WriteFile(report, data, 0o600)
}

// readReport returns the launcher's part of a sample.
func readReport(file string) (sample, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return sample{}, err
	}
	var r launchReport
	if err := json.Unmarshal(data, &r); err != nil {
		return sample{}, fmt.Errorf("launcher's report: %w", err)
	}
	if r.Started == 0 {
		return sample{}, errors.New("launcher's report has no start time")
	}
	return sample{started: time.Unix(0, r.Started), wall: time.Duration(r.Wall), peak: r.Peak}, nil
}
