package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
)

// Limits of what the status line runs in the background.
const (
	statusTime  = 5 * time.Second
	statusEvery = 3 * time.Second // while nothing has changed that the command is told
	statusWidth = 300
)

// statusLine runs the user's command for the status line, and finds out whether the
// repository has changes that are not committed. It is safe for concurrent use.
type statusLine struct {
	command string                         // of the user; may be empty
	git     func(ctx context.Context) bool // nil where git is not to be run
	changed chan struct{}                  // holds a token when there is something new to show

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	running bool
	asked   time.Time
	input   string // of the last run
	text    string
	dirty   bool
}

func newStatusLine(ctx context.Context, command string, git func(ctx context.Context) bool) *statusLine {
	s := &statusLine{command: command, git: git, changed: make(chan struct{}, 1)}
	s.ctx, s.stop = context.WithCancel(ctx)
	return s
}

// close ends what is running.
func (s *statusLine) close() {
	s.stop()
	s.wg.Wait()
}

// show returns what is known, and brings it up to date in the background if the
// input of the command is another one, or some time has passed.
func (s *statusLine) show(input string) (text string, dirty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stale := time.Since(s.asked) > statusEvery || s.command != "" && input != s.input && time.Since(s.asked) > statusEvery/10
	if stale && !s.running && (s.command != "" || s.git != nil) && s.ctx.Err() == nil {
		s.running, s.asked, s.input = true, time.Now(), input
		s.wg.Go(func() { s.update(input) })
	}
	return s.text, s.dirty
}

// update runs the command and asks git.
func (s *statusLine) update(input string) {
	ctx, cancel := context.WithTimeout(s.ctx, statusTime)
	defer cancel()
	text, dirty := "", false
	if s.command != "" {
		out, err := config.Filter(ctx, s.command, strings.NewReader(input))
		first, _, _ := strings.Cut(strings.TrimLeft(out, "\r\n"), "\n")
		if text = display.OneLine(first, statusWidth); err != nil {
			text = display.OneLine("terminal.statusLine: "+err.Error(), statusWidth)
		}
	}
	if s.git != nil {
		dirty = s.git(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	news := text != s.text || dirty != s.dirty
	s.text, s.dirty, s.running = text, dirty, false
	if news {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}

// statusInput is what the user's command gets: the fields that Claude Code documents
// for its status line, and some of ours.
func (c *chat) statusInput(st tui.Status, window int) string {
	type object = map[string]any
	name := st.Model[strings.Index(st.Model, "/")+1:]
	text, err := json.Marshal(object{
		"hook_event_name": "Status", "session_id": c.session.ID(), "transcript_path": c.session.Log(), "cwd": c.set.Dir, "version": cmdutil.Version(),
		"model":        object{"id": st.Model, "display_name": name},
		"workspace":    object{"current_dir": c.set.Dir, "project_dir": c.set.Dir},
		"output_style": object{"name": "default"},
		"cost":         object{"total_cost_usd": st.Cost},
		"context_window": object{
			"context_window_size": window, "used_percentage": st.Used, "total_input_tokens": c.usage.Input, "total_output_tokens": c.usage.Output,
		},
		"permission_mode": st.Mode, "effort": cmp.Or(st.Effort, "default"), "git_branch": st.Branch,
	})
	if err != nil {
		return "{}"
	}
	return string(text)
}
