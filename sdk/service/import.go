package service

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

const (
	maxMoved  = 1 << 20  // bytes of what is said of a session
	maxRecord = 64 << 20 // bytes
)

// ErrMoving is the error of an import beside another one of the same session.
var ErrMoving = errors.New("the session is just being moved here by another request: try again in a minute")

// ImportOptions are those of [Import]. Check may be nil.
type ImportOptions struct {
	Engine     Engine
	Workspaces *workspace.Root // nil takes no workspaces
	Tenant, ID string
	Check      func(s Session) error // refuses a session that is new here
}

// Import adds a session that moves to this service, from what [Archive] wrote. It exists
// when all of it is here, at once: before, nothing runs it. An import that was
// interrupted can be repeated; created is false if it was complete. The error is a
// *[host.Error] or a *[workspace.RefusedError] for what is wrong with the archive, an
// [fs.ErrExist] if there is another session with the ID, or [ErrMoving].
func Import(ctx context.Context, o ImportOptions, archive io.Reader) (s Session, created bool, err error) {
	if err := store.CheckID(o.ID); err != nil {
		return s, false, err
	}
	if IsWebhook(o.ID) {
		return s, false, wrong("id is %.40q: that of a session does not begin like that of a webhook", o.ID)
	}
	body := &source{Reader: archive}
	in := &importing{ImportOptions: o, tar: tar.NewReader(body), digest: sha256.New(), usage: &sessionLog{settled: map[string]bool{}, usage: map[string]Usage{}}}
	var moved Moved
	if err := in.head(&moved); err != nil {
		return s, false, err
	}
	if moved.Files {
		if in.files, err = in.upload(moved.Workspace); err != nil {
			return s, false, err
		}
		defer func() { err = errors.Join(err, in.files.Close()) }()
	}
	switch s, err = o.Engine.Get(ctx, o.Tenant, o.ID); {
	case err == nil && s.Imported != moved.Digest:
		return s, false, fs.ErrExist
	case err == nil:
		return s, false, nil
	case !errors.Is(err, fs.ErrNotExist):
		return s, false, err
	}
	s = Session{Tenant: o.Tenant, ID: o.ID, Title: moved.Title, Labels: moved.Labels, Spec: moved.Spec, Workspace: moved.Workspace, Imported: moved.Digest}
	if o.Check != nil {
		if err := o.Check(s); err != nil {
			return s, false, err
		}
	}
	if err := in.entries(ctx); err != nil {
		if body.err != nil {
			err = wrong("the archive ends early: %v", err)
		}
		return s, false, err
	}
	if got := hex.EncodeToString(in.digest.Sum(nil)); got != moved.Digest {
		return s, false, wrong("the logs have the SHA-256 %s, and %.80q is expected: they changed meanwhile; try again", got, moved.Digest)
	}
	return in.create(ctx, s)
}

// wrong is the error of an archive that is not one of [Archive].
func wrong(format string, args ...any) error {
	return &host.Error{Code: host.CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

// source knows whether it ended.
type source struct {
	io.Reader
	err error
}

// Read implements [io.Reader].
func (s *source) Read(b []byte) (n int, err error) {
	n, err = s.Reader.Read(b)
	s.err = err
	return n, err
}

// importing is an import under way.
type importing struct {
	ImportOptions
	tar    *tar.Reader
	files  *workspace.Upload // nil without files
	digest hash.Hash
	agent  string // the ID of the subagent whose entries are read

	// What is known from the session's log.
	created, last time.Time
	usage         *sessionLog
	questions     event.Parked
	state         State
}

func (in *importing) head(m *Moved) error {
	h, err := in.tar.Next()
	if err != nil || h.Name != archiveHead || h.Size > maxMoved {
		return wrong("the body is not an archive of a session: use agent sessions move")
	}
	d := json.NewDecoder(in.tar)
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil || m.Digest == "" {
		return wrong("%s of the archive cannot be read: %v", archiveHead, err)
	}
	return nil
}

func (in *importing) upload(spec workspace.Spec) (*workspace.Upload, error) {
	switch {
	case in.Workspaces == nil:
		return nil, wrong("workspace: this service has no place for workspaces: leave it out")
	case spec != workspace.Spec{Directory: workspace.New}:
		return nil, wrong("workspace: files need a new directory")
	}
	u, err := in.Workspaces.Upload(in.Tenant, in.ID)
	if errors.Is(err, workspace.ErrBusy) {
		err = ErrMoving
	}
	return u, err
}

// entries reads the archive behind its head.
func (in *importing) entries(ctx context.Context) error {
	for logs := 0; ; {
		h, err := in.tar.Next()
		if err != nil {
			return wrong("the archive ends early: %v", err)
		}
		if h.Name == archiveEnd {
			if logs == 0 {
				return wrong("the archive has no log")
			}
			return nil
		}
		below, name := in.split(h.Name)
		switch {
		case name == archiveLog:
			if logs++; below == "" != (logs == 1) {
				return wrong("the log of the session comes first, and once")
			}
			in.agent = below
			err = in.log(ctx)
		case below != in.agent || logs == 0:
			err = wrong("%.100q is not behind its log", h.Name)
		case strings.HasPrefix(name, archiveFiles) && in.files != nil && below == "":
			err = in.files.Add(strings.TrimPrefix(name, archiveFiles), h, in.tar)
		default:
			err = in.output(ctx, name)
		}
		if err != nil {
			return err
		}
	}
}

// split returns the ID of the subagent that an entry belongs to, and the rest of its name.
func (in *importing) split(name string) (agent, rest string) {
	if after, ok := strings.CutPrefix(name, archiveAgents); ok {
		agent, rest, _ = strings.Cut(after, "/")
		return agent, rest
	}
	if strings.HasPrefix(name, archiveFiles) { // they come last
		in.agent = ""
	}
	return "", name
}

// id is the session, or the subagent, that is read.
func (in *importing) id() string {
	if in.agent == "" {
		return in.ID
	}
	return in.ID + "/" + in.agent
}

// log adds the records of a log behind those that an interrupted import left.
func (in *importing) log(ctx context.Context) error {
	if in.agent != "" {
		if err := store.CheckID(in.agent); err != nil {
			return err
		}
	}
	journal, err := in.Engine.Journal(ctx, in.Tenant, in.id())
	if err != nil {
		return err
	}
	stored, stop := iter.Pull2(journal.Replay(ctx, 0))
	defer stop()
	more := true
	for e, err := range in.records() {
		if err != nil {
			return err
		}
		var there event.Event
		if more {
			if there, err, more = stored(); err != nil {
				return err
			}
		}
		switch {
		case !more:
			err = journal.Append(ctx, e)
		case !same(e, there):
			err = fmt.Errorf("record %d differs from the one of an earlier move: %w", e.Seq, fs.ErrExist)
		}
		if err != nil {
			return err
		}
		if in.agent == "" {
			in.see(e)
		}
	}
	if more {
		if _, err, more = stored(); more {
			return errors.Join(fmt.Errorf("there is a longer log: %w", fs.ErrExist), err)
		}
	}
	return journal.Sync(ctx)
}

// same reports whether two events are the same record.
func same(a, b event.Event) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// records yields the records of a log in the archive.
func (in *importing) records() iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		var sequence event.Sequence
		lines := bufio.NewScanner(io.TeeReader(in.tar, in.digest))
		lines.Buffer(nil, maxRecord)
		for n := 1; lines.Scan(); n++ {
			var e event.Event
			err := json.Unmarshal(lines.Bytes(), &e)
			if err == nil {
				err = sequence.Next(e)
			}
			if err != nil {
				yield(e, wrong("record %d of the log: %v", n, err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(event.Event{}, wrong("the log cannot be read: %v", err))
		}
	}
}

// see notes what a record of the session says of what it is doing.
func (in *importing) see(e event.Event) {
	if in.usage.see(e); in.created.IsZero() {
		in.created = e.Time
	}
	in.last = e.Time
	in.questions.Add(e.Body)
	switch b := e.Body.(type) {
	case event.Result:
		in.state = State(core.StateIdle)
		if b.Outcome == string(core.StopParked) {
			in.state = State(core.StateParked)
		}
	case event.User:
		in.state = State(core.StateUnfinished)
	}
}

// output adds an output or an image.
func (in *importing) output(ctx context.Context, name string) error {
	if hash, ok := strings.CutPrefix(name, archiveBlob); ok {
		data, err := io.ReadAll(io.LimitReader(in.tar, maxRecord))
		if err != nil {
			return wrong("image %.80q: %v", hash, err)
		}
		id, err := in.Engine.Store(in.Tenant, in.id()).PutBlob(ctx, data)
		if err == nil && id != hash {
			err = wrong("image %.80q has the SHA-256 %s", hash, id)
		}
		return err
	}
	handle, ok := strings.CutPrefix(name, archiveOutput)
	session, rest, _ := strings.Cut(handle, "/")
	if err := errors.Join(store.CheckID(session), store.CheckID(rest)); !ok || err != nil {
		return wrong("unknown entry %.100q", name)
	}
	return in.Engine.PutOutput(ctx, in.Tenant, in.id(), core.HandlePrefix+handle, in.tar)
}

// create makes the session exist.
func (in *importing) create(ctx context.Context, s Session) (Session, bool, error) {
	s.Created, s.Updated, s.Usage = in.created, time.Now().UTC(), in.usage.used()
	if s.State = in.state; s.State == "" {
		s.State = State(core.StateIdle)
	}
	if s.Questions = in.questions; len(s.Questions) > 0 {
		s.Deadline = s.Updated.Add(answerWithin)
	}
	if in.files != nil {
		if err := in.files.Commit(ctx); err != nil {
			return s, false, err
		}
		s.Place = in.Workspaces.ID()
	}
	err := in.Engine.Create(ctx, s)
	if errors.Is(err, fs.ErrExist) { // another request was first
		if there, failed := in.Engine.Get(ctx, in.Tenant, in.ID); failed == nil && there.Imported == s.Imported {
			return there, false, nil
		}
	}
	return s, err == nil, err
}
