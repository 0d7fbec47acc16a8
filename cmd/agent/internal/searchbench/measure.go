package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// cost is what one run took.
type cost struct{ wall, cpu time.Duration }

// result is what a query took, round by round.
type result struct {
	query             *query
	tool, rival, base []cost
	hits              int
}

// rivals are the programs to compare with; a path is empty if one is not
// installed.
type rivals struct{ ripgrep, fd string }

func findRivals() rivals {
	var r rivals
	r.ripgrep, _ = exec.LookPath("rg")
	for _, name := range []string{"fdfind", "fd"} {
		if path, err := exec.LookPath(name); err == nil && r.fd == "" {
			r.fd = path
		}
	}
	return r
}

// measure runs a query in a tree for some rounds. A first round compares what was
// found and is not counted.
func measure(ctx context.Context, q *query, c *corpus, r rivals, rounds int) (*result, error) {
	call, err := newCaller(c.dir)
	if err != nil {
		return nil, err
	}
	got := &result{query: q}
	for round := range rounds + 1 {
		var ours, theirs string
		ourCost, err := timed(func() error { ours, err = call.run(ctx, q); return err })
		if err != nil {
			return nil, fmt.Errorf("%s in %s: %w", q.name, c.name, err)
		}
		theirCost, err := r.run(ctx, q, c.dir, &theirs)
		if err != nil {
			return nil, fmt.Errorf("%s in %s: %w", q.name, c.name, err)
		}
		floor, err := timed(func() error { return floor(c.dir, q) })
		if err != nil {
			return nil, err
		}
		if round == 0 {
			have, want := q.found(ours), q.found(theirs)
			have, want = without(have, want, call.otherwise), without(want, have, call.otherwise)
			if len(have) == q.args.MaxResults { // the tool stops there
				want = without(want, have, func(string) bool { return true })
			}
			if !slices.Equal(have, want) {
				return nil, fmt.Errorf("%s in %s: the tool found %d, its rival %d: %s", q.name, c.name, len(have), len(want), difference(have, want))
			}
			got.hits = len(have)
			continue
		}
		got.tool, got.rival, got.base = append(got.tool, ourCost), append(got.rival, theirCost), append(got.base, floor)
	}
	return got, call.close()
}

// without returns list without the lines that other has not and that do not count.
func without(list, other []string, uncounted func(string) bool) []string {
	var kept []string
	for _, line := range list {
		if _, both := slices.BinarySearch(other, line); both || !uncounted(line) {
			kept = append(kept, line)
		}
	}
	return kept
}

func difference(have, want []string) string {
	for _, line := range have {
		if !slices.Contains(want, line) {
			return "only the tool has " + line
		}
	}
	for _, line := range want {
		if !slices.Contains(have, line) {
			return "only its rival has " + line
		}
	}
	return "a line is there twice"
}

// timed returns the cost of a function in this process.
func timed(f func() error) (cost, error) {
	cpu, start := cpuTime(), time.Now()
	err := f()
	return cost{time.Since(start), cpuTime() - cpu}, err
}

// run runs the rival of a query's tool, from start to end.
func (r rivals) run(ctx context.Context, q *query, dir string, out *string) (cost, error) {
	path, args := r.fd, q.fd(dir)
	if q.grep() {
		path, args = r.ripgrep, q.ripgrep()
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 && stderr.Len() == 0 {
		err = nil // no match
	}
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w: %s", path, err, stderr.Bytes())
	}
	*out = stdout.String()
	return cost{took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// floor does what no search of a tree can do without.
func floor(dir string, q *query) error {
	if q.args.Path != "" {
		return readAll(filepath.Join(dir, q.args.Path), make([]byte, 1<<20))
	}
	dirs := []string{dir}
	var files []string
	for len(dirs) > 0 {
		at := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		entries, err := readDir(at)
		if err != nil {
			return err
		}
		for _, e := range entries {
			switch name := at + "/" + e.Name(); {
			case e.IsDir() && e.Name() != ".git":
				dirs = append(dirs, name)
			case e.Type().IsRegular():
				files = append(files, name)
			}
		}
	}
	if !q.grep() {
		return nil
	}
	var wg sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	for w := range errs {
		wg.Go(func() {
			buf := make([]byte, 64<<10)
			for i := w; i < len(files); i += len(errs) {
				errs[w] = errors.Join(errs[w], readAll(files[i], buf))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func readDir(name string) ([]os.DirEntry, error) {
	d, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

func readAll(name string, buf []byte) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if _, err := f.Read(buf); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// missing says which rival is not installed, or nothing.
func (r rivals) missing() string {
	var names []string
	if r.ripgrep == "" {
		names = append(names, "ripgrep (rg)")
	}
	if r.fd == "" {
		names = append(names, "fd (fdfind)")
	}
	return strings.Join(names, " and ")
}
