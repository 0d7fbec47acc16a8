package bead

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/lazy"
)

// The results of a criterion.
const (
	Pass   = "pass"
	Fail   = "fail"
	Failed = "error" // it could not be checked
	NotRun = "not-run"
)

// impactTests is the name and kind of the tests that the graph selects.
const impactTests = "impact-tests"

// maxOutput limits the output of a criterion that is kept, in bytes.
const maxOutput = 4000

// cost orders criteria from cheap to dear.
func cost(kind string) int {
	return slices.Index([]string{DoneMarker, FileExists, FileContains, LintPass, impactTests, TestsPass, CommandPass}, kind)
}

// verification checks the criteria of a bead.
type verification struct {
	tree     fs.FS
	exec     Exec
	response string
	report   func(event.Criterion) error
}

// check checks criteria, the cheap ones first. After a failure those that cost more
// are not run. The error means that nothing was found out.
func (v *verification) check(ctx context.Context, criteria []event.TaskCriterion) (failures []string, err error) {
	criteria = slices.Clone(criteria)
	slices.SortStableFunc(criteria, func(a, b event.TaskCriterion) int { return cost(a.Kind) - cost(b.Kind) })
	level := -1
	for _, c := range criteria {
		r := event.Criterion{Name: c.Name, Kind: c.Kind, Command: c.Command, Status: NotRun}
		if len(failures) == 0 || cost(c.Kind) == level || c.Command == "" {
			if err := v.one(ctx, c, &r); err != nil {
				return nil, err
			}
		}
		if r.Status == Fail || r.Status == Failed {
			level = cost(c.Kind)
			failures = append(failures, failure(r))
		}
		if err := v.report(r); err != nil {
			return nil, err
		}
	}
	return failures, nil
}

// failure describes a criterion that is not met.
func failure(r event.Criterion) string {
	text := "criterion " + r.Name
	if r.Command != "" {
		text += fmt.Sprintf(" (%s): exit code %d", r.Command, r.ExitCode)
	}
	return strings.TrimSpace(text + "\n" + r.Output)
}

func (v *verification) one(ctx context.Context, c event.TaskCriterion, r *event.Criterion) error {
	start := time.Now()
	ok := false
	switch c.Kind {
	case DoneMarker:
		if ok = Done(v.response); !ok {
			r.Output = "the last line of the answer is not " + Marker
		}
	case FileExists, FileContains:
		data, err := fs.ReadFile(v.tree, path.Clean(c.Path))
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			r.Output = c.Path + " cannot be read: " + err.Error()
		case err != nil:
			r.Output = c.Path + " does not exist"
		case c.Kind == FileContains && !bytes.Contains(data, []byte(c.Text)):
			r.Output = fmt.Sprintf("%s does not contain %q", c.Path, c.Text)
		default:
			ok = true
		}
	default:
		out, err := v.exec.Run(ctx, c.Command)
		if err != nil {
			return fmt.Errorf("criterion %s: %w", c.Name, err)
		}
		r.ExitCode, r.Output = out.Code, tail(out.Output)
		ok = out.Code == 0 && !out.TimedOut
		if out.Code == 126 || out.Code == 127 || out.TimedOut { // the command did not run, or not to its end
			r.Status = Failed
		}
		if out.TimedOut {
			r.Output = strings.TrimSpace(r.Output + "\nit took too long and was ended")
		}
	}
	if ok {
		r.Status = Pass
	} else if r.Status != Failed {
		r.Status = Fail
	}
	r.DurationMS = time.Since(start).Milliseconds()
	return nil
}

// tail returns the end of an output, from the beginning of a line.
func tail(output string) string {
	output = strings.TrimSpace(strings.ToValidUTF8(output, "\uFFFD"))
	if len(output) <= maxOutput {
		return output
	}
	output = output[len(output)-maxOutput:]
	return "…" + output[strings.IndexByte(output, '\n')+1:]
}

var (
	position  = lazy.Regexp(`:\d+(:\d+)?\b|\bline \d+`)
	duration  = lazy.Regexp(`\b\d+(\.\d+)?(ns|µs|ms|s|m|h)\b|\b\d+\.\d+ (seconds|sec|s)\b`)
	moment    = lazy.Regexp(`\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d(\.\d+)?`)
	address   = lazy.Regexp(`0x[0-9a-fA-F]+|\b[0-9a-f]{12,}\b|goroutine \d+|\bpid[ =]\d+`)
	temporary = lazy.Regexp(`/(private/)?(tmp|var/folders)/\S+`)
)

// Fingerprint returns a hash of failures that does not depend on what differs from run
// to run: positions, times, addresses and temporary files.
func Fingerprint(failures []string) string {
	if len(failures) == 0 {
		return ""
	}
	h := sha256.New()
	for _, f := range failures {
		f = moment().ReplaceAllString(f, "TIME")
		f = temporary().ReplaceAllString(f, "TMP")
		f = address().ReplaceAllString(f, "ADDRESS")
		f = duration().ReplaceAllString(f, "DURATION")
		f = position().ReplaceAllString(f, ":N")
		for _, w := range strings.Fields(f) {
			h.Write([]byte(w + " "))
		}
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
