package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Timeout is the limit for every operation.
const Timeout = 20 * time.Second

// Check is one thing that an agent expects of a plugin.
type Check struct {
	Name string
	Run  func(context.Context) error
}

// Checks returns what an agent expects of every plugin: that it describes itself the
// same each time, with names and schemas that models accept, that it refuses what it
// does not have and an agent that cannot run its hooks, that samples give the expected
// results, also when they run concurrently, and that work ends when it is cancelled.
// Run them in their order.
func Checks(d *Driver, samples []Sample) []Check {
	list := []Check{
		{"describe", func(ctx context.Context) error { return d.checkDescription(ctx, samples) }},
		{"host without hooks", d.checkOlderHost},
		{"unknown tool", d.refuses(Sample{Tool: "no-such-tool"})},
		{"unknown command", d.refuses(Sample{Command: "no-such-command"})},
		{"unknown context source", d.refuses(Sample{Context: "no-such-source"})},
		{"unknown hook", d.refuses(Sample{Hook: "no-such-hook"})},
		{"no first frame", func(ctx context.Context) error {
			if _, err := d.converse(ctx, &toolproto.HostFrame{}, Sample{}, false); err == nil {
				return errors.New("a session without a call succeeded")
			}
			return nil
		}},
	}
	for i := range samples {
		s := samples[i]
		list = append(list, Check{s.label(), func(ctx context.Context) error { return d.checkSample(ctx, s) }})
	}
	list = append(list,
		Check{"concurrent calls", func(ctx context.Context) error { return d.checkConcurrent(ctx, samples) }},
		Check{"still running", func(ctx context.Context) error {
			_, err := d.Describe(ctx)
			return err
		}})
	for i, c := range list {
		list[i].Run = func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, Timeout)
			defer cancel()
			return c.Run(ctx)
		}
	}
	return list
}

var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })

func (d *Driver) checkDescription(ctx context.Context, samples []Sample) error {
	desc, err := d.Describe(ctx)
	if err != nil {
		return err
	}
	again, err := d.Describe(ctx)
	if err != nil {
		return err
	}
	var errs []error
	if !desc.Dynamic && !proto.Equal(desc, again) {
		errs = append(errs, fmt.Errorf("Describe answers differently the second time:\n%v\n%v", desc, again))
	}
	if desc.Name == "" || desc.Version == "" {
		errs = append(errs, fmt.Errorf("name %q, version %q: both are required", desc.Name, desc.Version))
	}
	taken := map[[2]string]bool{}
	check := func(kind, name, text string) {
		switch {
		case !plainName().MatchString(name):
			errs = append(errs, fmt.Errorf("%s %q: expected 1 to 64 letters, digits, _ or -", kind, name))
		case taken[[2]string{kind, name}]:
			errs = append(errs, fmt.Errorf("duplicate %s %q", kind, name))
		case strings.TrimSpace(text) == "":
			errs = append(errs, fmt.Errorf("%s %q has no description", kind, name))
		}
		taken[[2]string{kind, name}] = true
	}
	for _, t := range desc.Tools {
		check("tool", t.Name, t.Description)
		if !slices.ContainsFunc(samples, func(s Sample) bool { return s.Tool == t.Name }) {
			errs = append(errs, fmt.Errorf("tool %q has no sample", t.Name))
		}
		errs = append(errs, checkSchema(t))
	}
	for _, c := range desc.Commands {
		check("command", c.Name, c.Description)
	}
	for _, c := range desc.Contexts {
		check("context source", c.Name, c.Description)
	}
	for _, h := range desc.Hooks {
		check("hook", h.Name, h.Event)
	}
	return errors.Join(errs...)
}

func checkSchema(t *toolproto.Tool) error {
	var schema jsonschema.Schema
	err := json.Unmarshal(t.InputSchema, &schema)
	if err == nil && schema.Type != "object" {
		err = errors.New(`the root must have "type": "object"`)
	}
	if err == nil {
		_, err = schema.Resolve(nil)
	}
	if err != nil {
		err = fmt.Errorf("schema of %q: %w\n%s", t.Name, err, t.InputSchema)
	}
	return err
}

// checkOlderHost describes the plugin to a host that has no features: its hooks would
// not run, and they may be guards.
func (d *Driver) checkOlderHost(ctx context.Context) error {
	desc, err := d.Client.Describe(ctx, &toolproto.DescribeRequest{HostVersion: "plugintest"})
	if _, again := d.Describe(ctx); again != nil { // it may remember what the host has
		return again
	}
	switch {
	case err != nil && status.Code(err) != codes.FailedPrecondition:
		return fmt.Errorf("Describe for a host without features: %w; expected an answer, or FAILED_PRECONDITION", err)
	case err == nil && len(desc.Hooks) > 0:
		return errors.New("Describe for a host that does not run hooks must fail with FAILED_PRECONDITION, as the plugin has hooks")
	}
	return nil
}

// refuses returns a check that a sample fails.
func (d *Driver) refuses(s Sample) func(context.Context) error {
	return func(ctx context.Context) error {
		res, err := d.Run(ctx, s)
		if ctx.Err() != nil {
			return fmt.Errorf("no answer within %s", Timeout)
		}
		if err == nil && res.Code == "" {
			return fmt.Errorf("it succeeded; expected a result with a code, such as NOT_FOUND")
		}
		return nil
	}
}

// checkSample runs a sample, and once more to cancel it right after its start: any
// work must end soon then.
func (d *Driver) checkSample(ctx context.Context, s Sample) error {
	if !s.Blocks {
		run := d.Run
		if s.Changes {
			run = d.runChanging
		}
		res, err := run(ctx, s)
		if err == nil {
			err = s.compare(res)
		}
		if err != nil {
			return err
		}
	}
	first, err := d.first(s)
	if err != nil {
		return err
	}
	if _, err := d.converse(ctx, first, s, true); err != nil {
		return fmt.Errorf("cancelled: %w; expected a result", err)
	}
	return nil
}

// runChanging runs a sample that changes the tools: a watch is told of them at once, and
// again after the change.
func (d *Driver) runChanging(ctx context.Context, s Sample) (res Result, err error) {
	before, err := d.Describe(ctx)
	if err != nil {
		return res, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := d.Client.Session(ctx)
	if err == nil {
		err = stream.Send(&toolproto.HostFrame{Frame: &toolproto.HostFrame_Watch{Watch: &toolproto.Watch{}}})
	}
	told := func(when string) error {
		f, err := stream.Recv()
		if err != nil || f.GetToolsChanged() == nil {
			return fmt.Errorf("a watch was not told of the tools %s: got %v, %w", when, f, err)
		}
		return nil
	}
	if err == nil {
		err = told("at once")
	}
	if err == nil {
		res, err = d.Run(ctx, s)
	}
	if err == nil {
		err = told("after the change")
	}
	if err != nil {
		return res, err
	}
	after, err := d.Describe(ctx)
	if err == nil && proto.Equal(before, after) {
		err = errors.New("the description is the same after the change")
	}
	return res, err
}

func (d *Driver) checkConcurrent(ctx context.Context, samples []Sample) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, s := range samples {
		if s.Blocks {
			continue
		}
		for range 4 {
			wg.Go(func() {
				res, err := d.Run(ctx, s)
				if err == nil && res.Code != s.Code {
					err = fmt.Errorf("code %q, want %q; the text: %s", res.Code, s.Code, short(res.Text, 300))
				}
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, fmt.Errorf("%s: %w", s.label(), err))
				}
			})
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}
