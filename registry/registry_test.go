package registry_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tool is a tool that has only a name and a description.
type tool struct {
	name, text string
	schema     string // empty for any object
	panics     func() bool
}

func (t *tool) Definition() core.ToolDefinition {
	if t.panics != nil && t.panics() {
		panic("broken definition")
	}
	return core.ToolDefinition{Name: t.name, Description: t.text, Schema: json.RawMessage(cmp.Or(t.schema, `{"type":"object"}`))}
}

func (*tool) Access(context.Context, *core.Call) ([]core.Access, error) { return nil, nil }

func (*tool) Run(context.Context, *core.Call) (core.Result, error) { return core.Result{}, nil }

func tools(names ...string) []core.Tool {
	list := make([]core.Tool, len(names))
	for i, n := range names {
		list[i] = &tool{name: n}
	}
	return list
}

// toolset is a toolset controlled by a test.
type toolset struct {
	name    string
	changed chan struct{}

	mu     sync.Mutex
	list   []core.Tool
	read   func(ctx context.Context) error // what Tools does first
	reads  int
	closed func() error
}

func newToolset(name string, names ...string) *toolset {
	return &toolset{name: name, changed: make(chan struct{}, 1), list: tools(names...)}
}

func (s *toolset) Name() string { return s.name }

func (s *toolset) Tools(ctx context.Context) ([]core.Tool, error) {
	s.mu.Lock()
	s.reads++
	read, list := s.read, s.list
	s.mu.Unlock()
	if read != nil {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (s *toolset) Changed() <-chan struct{} { return s.changed }

func (s *toolset) Close() error {
	if s.closed != nil {
		return s.closed()
	}
	return nil
}

// set changes what Tools returns, without a notification.
func (s *toolset) set(read func(context.Context) error, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read, s.list = read, tools(names...)
}

func (s *toolset) signal() { s.changed <- struct{}{} }

func (s *toolset) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

func fails(err error) func(context.Context) error { return func(context.Context) error { return err } }

func newRegistry(t testing.TB, o registry.Options) *registry.Registry {
	t.Helper()
	r := registry.New(o)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func add(t testing.TB, r *registry.Registry, sets ...core.Toolset) {
	t.Helper()
	for _, s := range sets {
		if err := r.Add(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

func snapshot(t testing.TB, r *registry.Registry) *core.Snapshot {
	t.Helper()
	s, err := r.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// listing is name=source/own-name of all entries.
func listing(s *core.Snapshot) string {
	var all []string
	for _, e := range s.Entries() {
		all = append(all, e.ModelName+"="+e.Source+"/"+e.Tool.Definition().Name)
	}
	return strings.Join(all, " ")
}

func want(t *testing.T, s *core.Snapshot, listed string) {
	t.Helper()
	if got := listing(s); got != listed {
		t.Errorf("table\n%s\nwant\n%s", got, listed)
	}
}

func TestNamesAcrossSources(t *testing.T) {
	r := newRegistry(t, registry.Options{})
	add(t, r, newToolset("early", "grep", "search"))
	if err := r.AddBuiltin(t.Context(), newToolset("builtin", "grep", "shell", "edit")); err != nil {
		t.Fatal(err)
	}
	add(t, r, newToolset("github", "search", "github__issues", "shell"), newToolset("evil", "github__merge", "edit"))
	if err := r.AddHost(tools("edit", "extra")...); err != nil {
		t.Fatal(err)
	}
	if err := r.AddBuiltin(t.Context(), newToolset("more", "shell", "spawn")); err != nil {
		t.Fatal(err)
	}
	s := snapshot(t, r)
	got := regexp.MustCompile(`_[0-9a-f]{8}=`).ReplaceAllString(listing(s), "_HASH=")
	const listed = "early__grep=early/grep search=early/search grep=builtin/grep shell=builtin/shell " +
		"github__search=github/search github__issues=github/github__issues github__shell=github/shell " +
		"evil__github_-_merge_HASH=evil/github__merge evil__edit=evil/edit edit=host/edit extra=host/extra " +
		"more__shell=more/shell spawn=more/spawn"
	if got != listed {
		t.Errorf("table\n%s\nwant\n%s", got, listed)
	}
	for _, e := range s.Entries() {
		if found, ok := s.Lookup(e.ModelName); !ok || found.Tool != e.Tool {
			t.Errorf("Lookup(%q) finds another tool", e.ModelName)
		}
	}
}

func TestLaterHostToolCounts(t *testing.T) {
	r := newRegistry(t, registry.Options{})
	second := &tool{name: "a", text: "second"}
	if err := errors.Join(r.AddHost(tools("a", "b")...), r.AddHost(second)); err != nil {
		t.Fatal(err)
	}
	s := snapshot(t, r)
	if e, _ := s.Lookup("a"); e.Tool != second || len(s.Entries()) != 2 {
		t.Errorf("table %s: the later tool a must be in it", listing(s))
	}
	for _, bad := range []core.Tool{nil, &tool{}, &tool{name: "a b"}, &tool{name: strings.Repeat("x", 65)}, &tool{panics: func() bool { return true }}} {
		if err := r.AddHost(bad); err == nil || !strings.Contains(err.Error(), "host tool") {
			t.Errorf("AddHost(%+v): %v", bad, err)
		}
	}
}

// TestNamesAreUniqueAndValid uses names that are easily confused.
func TestNamesAreUniqueAndValid(t *testing.T) {
	parts := []string{
		"a", "b", "a_", "_a", "a__b", "_", "__", "___", "a b", "a.b", "a/b", "ä", "a_-_b", "", strings.Repeat("x", 64), strings.Repeat("x", 65),
		strings.Repeat("x", 64) + "y", strings.Repeat("y_", 40), "tool", "a_0123abcd", "b__a_0123abcd",
	}
	valid := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	r := newRegistry(t, registry.Options{})
	count := 0
	for _, source := range parts {
		if source == "" {
			continue
		}
		add(t, r, newToolset(source, parts...))
		count += len(parts)
	}
	s := snapshot(t, r)
	if len(s.Entries()) != count {
		t.Errorf("%d tools of %d are in the table", len(s.Entries()), count)
	}
	for _, e := range s.Entries() {
		if !valid.MatchString(e.ModelName) {
			t.Errorf("name %q of %s/%s", e.ModelName, e.Source, e.Tool.Definition().Name)
		}
	}
	// The same members get the same names.
	again := newRegistry(t, registry.Options{})
	for _, source := range parts {
		if source != "" {
			add(t, again, newToolset(source, parts...))
		}
	}
	if !slices.Equal(s.Names(), snapshot(t, again).Names()) {
		t.Error("the names depend on more than the toolsets")
	}
}

func TestSnapshotStaysUntilSomethingChanges(t *testing.T) {
	r := newRegistry(t, registry.Options{})
	a, b := newToolset("a", "one"), newToolset("b", "two")
	add(t, r, a, b)
	first := snapshot(t, r)
	if second := snapshot(t, r); second != first {
		t.Error("another snapshot without a change")
	}
	if a.count() != 1 || b.count() != 1 {
		t.Errorf("tools were read %d and %d times, want once", a.count(), b.count())
	}

	a.set(nil, "one", "three")
	if snapshot(t, r) != first {
		t.Error("another snapshot before the toolset said that it changed")
	}
	a.signal()
	second := snapshot(t, r)
	want(t, second, "one=a/one three=a/three two=b/two")
	want(t, first, "one=a/one two=b/two")
	if second.Version() <= first.Version() {
		t.Errorf("version %d after %d", second.Version(), first.Version())
	}
	if b.count() != 1 {
		t.Error("a toolset that did not change was read again")
	}

	// Closing the channel is one last change.
	a.set(nil)
	close(a.changed)
	want(t, snapshot(t, r), "two=b/two")
	reads := a.count()
	snapshot(t, r)
	if a.count() != reads {
		t.Error("a toolset whose channel is closed is read for ever")
	}
}

func TestRemove(t *testing.T) {
	r := newRegistry(t, registry.Options{})
	a, b := newToolset("a", "search"), newToolset("b", "search")
	closed := false
	a.closed = func() error { closed = true; return nil }
	add(t, r, a, b)
	before := snapshot(t, r)
	if err := r.Remove("a"); err != nil || !closed {
		t.Fatalf("Remove: %v, closed %t", err, closed)
	}
	want(t, before, "search=a/search b__search=b/search")
	// A name of a must never become a name of b.
	want(t, snapshot(t, r), "b__search=b/search")
	if err := r.Remove("a"); err == nil || !strings.Contains(err.Error(), `no toolset "a"`) {
		t.Errorf("a second Remove: %v", err)
	}
	add(t, r, newToolset("a", "search"))
	want(t, snapshot(t, r), "b__search=b/search search=a/search")
	if err := r.Remove("host"); err == nil {
		t.Error("the host's tools can be removed")
	}
}

func TestBuiltinNameStaysTheBuiltins(t *testing.T) {
	r := newRegistry(t, registry.Options{})
	if err := r.AddBuiltin(t.Context(), newToolset("builtin", "grep")); err != nil {
		t.Fatal(err)
	}
	add(t, r, newToolset("plugin", "grep"))
	snapshot(t, r)
	if err := r.Remove("builtin"); err != nil {
		t.Fatal(err)
	}
	want(t, snapshot(t, r), "plugin__grep=plugin/grep")
}

func TestFailingToolset(t *testing.T) {
	r := newRegistry(t, registry.Options{})
	good, bad := newToolset("good", "one"), newToolset("bad", "two")
	down := errors.New("server is down")
	bad.set(fails(down))
	add(t, r, good, bad)

	s, err := r.Snapshot(t.Context())
	want(t, s, "one=good/one")
	if !errors.Is(err, down) || !strings.Contains(err.Error(), "toolset bad") {
		t.Errorf("error %v, want one that names the toolset and the cause", err)
	}
	if again, err := r.Snapshot(t.Context()); again != s || !errors.Is(err, down) {
		t.Errorf("still down: another snapshot, or error %v", err)
	}

	bad.set(nil, "two")
	s = snapshot(t, r) // it is tried again without a signal
	want(t, s, "one=good/one two=bad/two")

	bad.set(fails(down))
	bad.signal()
	again, err := r.Snapshot(t.Context())
	if !errors.Is(err, down) || again != s {
		t.Errorf("error %v; the toolset must keep the tools that it had", err)
	}
}

func TestPanicsOfToolsets(t *testing.T) {
	boom := func(context.Context) error { panic("boom") }
	calls := 0
	for name, bad := range map[string]*toolset{
		"tools": {name: "bad", read: boom},
		"definition": {name: "bad", list: []core.Tool{&tool{name: "x", panics: func() bool {
			return true
		}}, nil}},
		"definition, later": {name: "bad", list: []core.Tool{&tool{name: "x", panics: func() bool {
			calls++
			return calls > 1
		}}}},
		"twice": {name: "bad", list: tools("one", "one")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, registry.Options{})
			add(t, r, newToolset("good", "fine"), bad)
			bad.closed = func() error { panic("bad close") }
			s, err := r.Snapshot(t.Context())
			if err == nil || !strings.Contains(err.Error(), "toolset bad") {
				t.Errorf("error %v, want one that names the toolset", err)
			}
			if _, ok := s.Lookup("fine"); !ok {
				t.Errorf("the other toolset is lost: %s", listing(s))
			}
			if err := r.Close(); err == nil || !strings.Contains(err.Error(), "closing toolset bad: panic: bad close") {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

func TestAddRefuses(t *testing.T) {
	r := newRegistry(t, registry.Options{})
	add(t, r, newToolset("a"))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Add(done, newToolset("b")); !errors.Is(err, context.Canceled) {
		t.Errorf("with a done context: %v", err)
	}
	for _, set := range []core.Toolset{newToolset("a"), newToolset(""), newToolset("host"), nil} {
		if err := r.Add(t.Context(), set); err == nil {
			t.Errorf("Add(%v) succeeds", set)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(t.Context(), newToolset("c")); !errors.Is(err, registry.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestAllowedAndDisallowed(t *testing.T) {
	for _, tt := range []struct {
		allowed, disallowed []string
		want                string
	}{
		{nil, nil, "grep read_file read_many_files gh__grep"},
		{[]string{"read_*"}, nil, "read_file read_many_files"},
		{[]string{"*"}, []string{"read_*_files", "gh__*"}, "grep read_file"},
		{[]string{"grep"}, []string{"grep"}, ""},
		{nil, []string{"grep"}, "read_file read_many_files gh__grep"}, // gh's does not move up
		{[]string{"*r*e*"}, nil, "grep read_file read_many_files gh__grep"},
		{[]string{"[g]rep", "rea?_file"}, nil, ""},
		{nil, []string{"*"}, ""},
	} {
		r := newRegistry(t, registry.Options{Allowed: tt.allowed, Disallowed: tt.disallowed})
		if err := r.AddBuiltin(t.Context(), newToolset("builtin", "grep", "read_file", "read_many_files")); err != nil {
			t.Fatal(err)
		}
		add(t, r, newToolset("gh", "grep"))
		if got := strings.Join(snapshot(t, r).Names(), " "); got != tt.want {
			t.Errorf("allowed %q, disallowed %q: %q, want %q", tt.allowed, tt.disallowed, got, tt.want)
		}
	}
}

func TestCloseInReverseOrder(t *testing.T) {
	r := registry.New(registry.Options{})
	var order []string
	broken := errors.New("does not close")
	for _, name := range []string{"a", "b", "c"} {
		s := newToolset(name)
		s.closed = func() error {
			order = append(order, name)
			if name == "b" {
				return broken
			}
			return nil
		}
		add(t, r, s)
	}
	if err := r.AddHost(tools("x")...); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, r)
	if err := r.Close(); !errors.Is(err, broken) || !strings.Contains(err.Error(), "toolset b") {
		t.Errorf("Close: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if got := strings.Join(order, ""); got != "cba" {
		t.Errorf("closed in the order %s, want cba", got)
	}
	s, err := r.Snapshot(t.Context())
	if !errors.Is(err, registry.ErrClosed) || len(s.Entries()) != 0 || s.Version() <= before.Version() {
		t.Errorf("after Close: %v, %s", err, listing(s))
	}
}

func TestCloseEndsAReading(t *testing.T) {
	r := registry.New(registry.Options{})
	reading := make(chan struct{})
	slow := newToolset("slow")
	slow.set(func(ctx context.Context) error {
		close(reading)
		<-ctx.Done()
		return ctx.Err()
	})
	add(t, r, slow)
	result := make(chan error)
	go func() {
		_, err := r.Snapshot(context.Background())
		result <- err
	}()
	<-reading

	// With a context that is done, Snapshot returns the last table.
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := r.Snapshot(impatient); !errors.Is(err, context.Canceled) || s == nil {
		t.Errorf("Snapshot beside a slow one: %v, %v", s, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, registry.ErrClosed) {
		t.Errorf("the slow Snapshot: %v", err)
	}
}

// TestSnapshotWhileTheTableIsBuilt: it does not return the table before, as if nothing
// had changed.
func TestSnapshotWhileTheTableIsBuilt(t *testing.T) {
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	r := registry.New(registry.Options{})
	defer r.Close()
	calls := 0
	set := newToolset("set")
	set.list = []core.Tool{&tool{name: "a", panics: func() bool {
		if calls++; calls != 2 { // 1: the name is read
			return false
		}
		if s, err := r.Snapshot(impatient); !errors.Is(err, context.Canceled) {
			t.Errorf("Snapshot beside another: %s, %v; want one that waits", listing(s), err)
		}
		return false
	}}}
	add(t, r, set)
	if s, err := r.Snapshot(t.Context()); err != nil || !strings.Contains(listing(s), "a") || calls < 2 {
		t.Errorf("%s, %v; the definition was read %d times", listing(s), err, calls)
	}
}

func TestToolsetsAreReadSideBySide(t *testing.T) {
	r := newRegistry(t, registry.Options{})
	var both sync.WaitGroup
	both.Add(2)
	for _, name := range []string{"a", "b"} {
		s := newToolset(name, name)
		s.read = func(context.Context) error { both.Done(); both.Wait(); return nil }
		add(t, r, s)
	}
	want(t, snapshot(t, r), "a=a/a b=b/b")
}

func TestConcurrentUse(t *testing.T) {
	r := newRegistry(t, registry.Options{})
	sets := make([]*toolset, 4)
	for i := range sets {
		sets[i] = newToolset(fmt.Sprintf("set%d", i), "common", fmt.Sprintf("own%d", i))
		add(t, r, sets[i])
	}
	var wg sync.WaitGroup
	for i, s := range sets {
		wg.Go(func() {
			for n := range 50 {
				s.set(nil, "common", fmt.Sprintf("own%d_%d", i, n))
				select {
				case s.changed <- struct{}{}:
				default:
				}
			}
		})
		wg.Go(func() {
			var last uint64
			for range 50 {
				table, err := r.Snapshot(t.Context())
				if err != nil || table.Version() < last {
					t.Errorf("version %d after %d, error %v", table.Version(), last, err)
				}
				last = table.Version()
				for _, e := range table.Entries() {
					if _, ok := table.Lookup(e.ModelName); !ok {
						t.Errorf("%s is not found in its own table", e.ModelName)
					}
				}
			}
		})
		wg.Go(func() {
			name := fmt.Sprintf("guest%d", i)
			for range 10 {
				if err := r.Add(t.Context(), newToolset(name, "common")); err != nil {
					t.Error(err)
				}
				if err := r.Remove(name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := snapshot(t, r)
	for i := range sets {
		if _, ok := s.Lookup(fmt.Sprintf("own%d_49", i)); !ok {
			t.Errorf("the last change of set%d is lost: %s", i, listing(s))
		}
	}
}

func BenchmarkSnapshotUnchanged(b *testing.B) {
	r := newRegistry(b, registry.Options{})
	for i := range 20 {
		names := make([]string, 20)
		for j := range names {
			names[j] = fmt.Sprintf("tool%d", j)
		}
		add(b, r, newToolset(fmt.Sprintf("set%d", i), names...))
	}
	snapshot(b, r)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Snapshot(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
