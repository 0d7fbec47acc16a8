package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// bench runs contestants against one fake model, one process at a time.
type bench struct {
	model   *fakeModel
	temp    string
	timeout time.Duration // of one run
}

// measure runs s the given number of rounds, the contestants in turn, and
// returns the samples by contestant and round. A first round warms the file
// cache and is not counted.
func (b *bench) measure(ctx context.Context, s *scenario, contestants []contestant, rounds int) ([][]sample, error) {
	samples := make([][]sample, len(contestants))
	for round := range rounds + 1 {
		for i, c := range contestants {
			one, err := b.pair(ctx, s, c)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", c.name, s.name, err)
			}
			if round > 0 {
				samples[i] = append(samples[i], one)
			}
		}
	}
	return samples, nil
}

// pair does one run, after the one that the scenario compares it with, if there is one.
func (b *bench) pair(ctx context.Context, s *scenario, c contestant) (sample, error) {
	if s.before == nil || !c.judged {
		return b.once(ctx, s, c)
	}
	before, err := b.once(ctx, s.before, c)
	if err != nil {
		return sample{}, err
	}
	one, err := b.once(ctx, s, c)
	one.before = &before
	return one, err
}

// once does one run in a new workspace, and in a new home unless the scenario keeps one.
func (b *bench) once(ctx context.Context, s *scenario, c contestant) (sample, error) {
	dir, err := os.MkdirTemp(b.temp, "run-")
	if err != nil {
		return sample{}, err
	}
	defer os.RemoveAll(dir)
	workspace, home := filepath.Join(dir, "workspace"), filepath.Join(dir, "home")
	for _, d := range []string{workspace, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return sample{}, err
		}
	}
	if s.home != nil && c.judged {
		if home, err = b.keptHome(ctx, s, c); err != nil {
			return sample{}, err
		}
	}
	if s.prepare != nil {
		if err := s.prepare(workspace); err != nil {
			return sample{}, err
		}
	}
	if s.sessions != nil && c.judged {
		sessions := filepath.Join(home, ".agent", "sessions")
		if err := os.MkdirAll(sessions, 0o700); err != nil {
			return sample{}, err
		}
		if err := s.sessions(sessions, workspace); err != nil {
			return sample{}, err
		}
	}
	b.model.play(s)
	one, err := b.launch(ctx, dir, workspace, home, append([]string{c.path}, c.commandLine(b.model.endpoint(), s)...))
	one.traffic = b.model.observed()
	if err != nil {
		return sample{}, err
	}
	return one, one.verify(s, c.judged)
}

// commandLine returns the arguments of a program for a scenario.
func (c contestant) commandLine(endpoint string, s *scenario) []string {
	switch {
	case len(s.command) > 0 && c.judged:
		return s.command
	case len(s.command) > 0:
		return []string{"version"}
	}
	args := c.arguments(endpoint, "Do the work of the scenario: "+s.name+".")
	if s.resume != "" && c.judged {
		args = slices.Insert(args, 1, "--resume", s.resume)
	}
	if s.confined && c.judged {
		args[slices.Index(args, "--permission-mode")+1] = "workspace"
	}
	return args
}

// launch runs argv through the launcher and returns its times and memory.
func (b *bench) launch(ctx context.Context, dir, workspace, home string, argv []string) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	report := filepath.Join(dir, "report.json")
	cmd, err := launcher(ctx, report, argv)
	if err != nil {
		return sample{}, err
	}
	// A file, not a pipe: contestants must not wait for bench to read.
	output, err := os.Create(filepath.Join(dir, "output.txt"))
	if err != nil {
		return sample{}, err
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Dir = workspace
	cmd.Env = environment(dir, home)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("stopped: %w", ctx.Err())
		}
		return sample{}, fmt.Errorf("%w; its last output:\n%s", err, tail(output.Name(), 2000))
	}
	one, err := readReport(report)
	one.output = tail(output.Name(), 1<<20)
	return one, err
}

// verify checks that the run did all of the scenario's work: a refused or
// failed tool call would be fast.
func (r sample) verify(s *scenario, judged bool) error {
	if len(s.command) > 0 {
		if judged && !bytes.Contains(r.output, []byte(s.proof)) {
			return fmt.Errorf("the output has no %q:\n%s", s.proof, r.output[:min(len(r.output), 2000)])
		}
		return nil
	}
	if got, want := len(r.traffic.arrivals), s.calls+1; got != want {
		return fmt.Errorf("the model got %d requests, want %d", got, want)
	}
	if !r.traffic.proven && (judged || s.resume == "") {
		return fmt.Errorf("the last request has no %q: the tool calls were not executed, or the session not resumed", s.proof)
	}
	return nil
}

// tail returns the last bytes of a file, or why there are none.
func tail(name string, limit int) []byte {
	data, err := os.ReadFile(name)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(data[max(0, len(data)-limit):])
}
