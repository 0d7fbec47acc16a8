package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/client"
)

type moveOptions struct {
	*cmdutil.IO
	to, dir      string
	files, empty bool
	spec         remote.Spec
}

func newMoveCmd(s *cmdutil.IO) *cobra.Command {
	o := &moveOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "move ID --to URL [flags]",
		Short: "Move a session to a service, where it continues",
		Long: "Move a session with its log, its tool outputs and the sessions of its subagents to the service at URL, see\n" +
			"docs/service.md. It continues there; here it can be read and forked, but not resumed. If a move was\n" +
			"interrupted, the same command completes it.\n\n" +
			"If the session's directory is a git repository without uncommitted changes, and its commit is on a remote that\n" +
			"is reached by https, the service fetches that. Otherwise say what to do: --files uploads the files, --cd names a\n" +
			"directory on the service's machine, --empty begins without files. Nothing here is deleted.",
		Example: "  agent sessions move 0198a2c4 --to https://agents.example\n  agent sessions move 0198a2c4 --to http://127.0.0.1:7433 --files",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.to = strings.TrimRight(o.to, "/"); o.to == "" {
				return cmdutil.Usagef("--to is missing: the URL of the service")
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "move it to the service at `URL`")
	f.BoolVar(&o.files, "files", false, "upload the files of its directory, except what git ignores and what may hold secrets")
	f.BoolVar(&o.empty, "empty", false, "let it continue in an empty directory")
	f.StringVarP(&o.dir, "cd", "C", "", "let it continue in `DIR` on the service's machine, which the service must allow")
	f.StringVarP(&o.spec.Model, "model", "m", "", "model to use there, as `[PROVIDER/]MODEL`")
	f.StringVar(&o.spec.Mode, "permission-mode", "", "permission `MODE` there, at most the one that the service allows")
	cmd.MarkFlagsMutuallyExclusive("files", "empty", "cd")
	return cmd
}

func (o *moveOptions) run(ctx context.Context, prefix string) error {
	if _, err := client.New(client.Options{URL: o.to, Token: "any"}); err != nil {
		return cmdutil.Usagef("--to: %w", err)
	}
	home, id, err := setup.FindSession(o.IO, prefix)
	if err != nil {
		return err
	}
	m, err := o.hold(home, id)
	if err != nil {
		return setup.SessionAdvice(err, id)
	}
	defer m.close()
	if done, err := m.begun(o.to); err != nil || done {
		return err
	}
	c, err := remote.Connect(ctx, o.IO, o.to)
	if err != nil {
		return err
	}
	defer c.Close()
	there, err := c.Get(ctx, id)
	switch {
	case err == nil && there.Imported != m.about.Digest:
		return fmt.Errorf("%s has another session %s: to move a copy, use agent sessions fork %[2]s", o.to, id)
	case err == nil: // an earlier move came so far
	case errors.Is(err, fs.ErrNotExist):
		if err := m.send(ctx, o, c); err != nil {
			return err
		}
	default:
		return err
	}
	if err := m.mark(store.Move{To: o.to, Begun: time.Now().UTC(), Done: true}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Out, "Moved %s to %s. To continue it: agent --on %[2]s --resume %[1]s\n", id, o.to)
	return err
}

// moving is a session that is moved, with its subagents'. Nobody else can open them.
type moving struct {
	*moveOptions
	dirs  store.Dirs
	cwd   string
	about service.Moved
	ids   []string // the session first
	held  []*store.Moving
}

// hold locks the session and those of its subagents.
func (o *moveOptions) hold(home, id string) (m *moving, err error) {
	dirs := store.Dirs{Sessions: agent.SessionsDir(home), Contexts: agent.ContextsDir(home)}
	about, err := store.Stat(dirs.Sessions, id)
	switch {
	case err != nil:
		return nil, err
	case about.Parent != "":
		return nil, fmt.Errorf("session %s is one of a subagent: move its parent, %s", id, about.Parent)
	}
	m = &moving{moveOptions: o, dirs: dirs, cwd: about.Cwd, ids: []string{id}}
	m.about.Title = display.OneLine(about.Text, 80)
	list, _ := store.List(dirs.Sessions) // sessions that cannot be read have another ID
	for i := 0; i < len(m.ids); i++ {
		for _, s := range list {
			if s.Parent == m.ids[i] {
				m.ids = append(m.ids, s.ID)
			}
		}
	}
	slices.Sort(m.ids[1:])
	digest := sha256.New()
	for _, id := range m.ids {
		h, err := store.Hold(dirs.Sessions, id)
		if err == nil {
			m.held = append(m.held, h)
			err = m.read(h, func(_ int64, r io.Reader) error {
				_, err := io.Copy(digest, r)
				return err
			})
		}
		if err != nil {
			m.close()
			return nil, err
		}
	}
	m.about.Digest = hex.EncodeToString(digest.Sum(nil))
	return m, nil
}

func (m *moving) close() {
	for _, h := range m.held {
		_ = h.Close() // nothing was written
	}
}

// begun reports whether the session was moved, or refuses another move.
func (m *moving) begun(to string) (done bool, err error) {
	move := m.held[0].Move()
	switch {
	case move == nil:
		return false, nil
	case move.To != to:
		return false, &store.MovedError{ID: m.ids[0], Move: *move}
	case move.Done:
		_, err = fmt.Fprintf(m.Out, "Session %s was moved to %s already. To continue it: agent --on %[2]s --resume %[1]s\n", m.ids[0], to)
	}
	return move.Done, err
}

func (m *moving) mark(to store.Move) error {
	for _, h := range m.held {
		if err := h.Mark(to); err != nil {
			return err
		}
	}
	return nil
}

// send uploads the session. From before that until it is known whether it is there, nobody
// can open it here: it must not run in both places.
func (m *moving) send(ctx context.Context, o *moveOptions, c *client.Client) (err error) {
	w, err := o.workspace(ctx, m.cwd)
	if err != nil {
		return err
	}
	defer w.close()
	m.about.Workspace, m.about.Files = w.spec, w.root != nil
	if m.about.Spec, err = json.Marshal(o.spec); err != nil {
		return err
	}
	first := m.held[0].Move() == nil
	if err := m.mark(store.Move{To: o.to, Begun: time.Now().UTC()}); err != nil {
		return err
	}
	_, err = c.Import(ctx, m.ids[0], m.about, func(a *service.Archive) error { return m.write(a, w) })
	switch {
	case err == nil:
		return nil
	case first && absent(err):
		for _, h := range m.held {
			err = errors.Join(err, h.Unmark())
		}
		return err
	}
	return fmt.Errorf("%w\nThe session may be there already: repeat the command to complete its move", err)
}

// absent reports whether an import that failed left no session on the service.
func absent(err error) bool {
	var refused *client.Error
	return errors.Is(err, client.ErrNotSent) || errors.As(err, &refused) && refused.Status >= http.StatusBadRequest && refused.Status < http.StatusInternalServerError
}

// write writes all that belongs to the session.
func (m *moving) write(a *service.Archive, w *moveFiles) error {
	for i, id := range m.ids {
		subagent := id
		if i == 0 {
			subagent = ""
		}
		if err := m.read(m.held[i], func(size int64, r io.Reader) error { return a.Log(subagent, size, r) }); err != nil {
			return err
		}
		outputs, err := m.dirs.Outputs(id)
		if err != nil {
			return err
		}
		for _, out := range outputs {
			if err := readFile(out.Path, func(size int64, r io.Reader) error { return a.Output(out.ID, size, r) }); err != nil {
				return err
			}
		}
	}
	for _, name := range w.names {
		if err := a.File(w.root, name); err != nil {
			return err
		}
	}
	return nil
}

// read reads a log as it is now.
func (m *moving) read(h *store.Moving, use func(size int64, r io.Reader) error) error {
	return readFile(h.Path(), use)
}

func readFile(path string, use func(size int64, r io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return use(info.Size(), f)
}
