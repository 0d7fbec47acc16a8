package jetstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/seed-009c0928/agent/core"
)

// outputs keeps the outputs and blobs of one session. It is safe for concurrent use.
type outputs struct {
	db      *DB
	session session
}

var _ core.ContextStore = (*outputs)(nil)

// Store returns the store of a tenant's session. It is deleted with the session.
func (d *DB) Store(tenant, id string) core.ContextStore { return &outputs{d, session{tenant, id}} }

// Create implements [core.ContextStore]. An output is a file on this machine until it
// is closed.
func (s *outputs) Create(ctx context.Context, meta core.OutputMeta) (core.StoredOutput, error) {
	if err := s.session.check(); err != nil {
		return nil, err
	}
	f, err := tempFile(s.db.opts.TempDir)
	if err != nil {
		return nil, err
	}
	return &output{temporaryFile: f, store: s, id: nuid.Next(), meta: meta}, nil
}

// PutBlob implements [core.ContextStore].
func (s *outputs) PutBlob(ctx context.Context, data []byte) (string, error) {
	if err := s.session.check(); err != nil {
		return "", err
	}
	hash := sha256.Sum256(data)
	id := hex.EncodeToString(hash[:])
	if _, err := s.db.objects.GetInfo(ctx, s.session.object(id)); err == nil {
		return id, nil
	}
	if _, err := s.db.objects.PutBytes(ctx, s.session.object(id), data); err != nil {
		return "", fmt.Errorf("session %s: store %d bytes: %w", s.session, len(data), err)
	}
	return id, nil
}

// Open implements [core.ContextStore]. The output is copied to this machine.
func (s *outputs) Open(ctx context.Context, id string) (core.File, error) {
	name := s.session.object(strings.TrimPrefix(id, core.HandlePrefix))
	from, err := s.db.objects.Get(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, fmt.Errorf("session %s: output %q: %w", s.session, id, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("session %s: output %q: %w", s.session, id, err)
	}
	defer from.Close()
	f, err := tempFile(s.db.opts.TempDir)
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(f, from); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("session %s: output %q: %w", s.session, id, err), f.Close())
	}
	return f, nil
}

// PutOutput implements [service.Engine].
func (d *DB) PutOutput(ctx context.Context, tenant, id, handle string, content io.Reader) error {
	s := session{tenant, id}
	if err := s.check(); err != nil {
		return err
	}
	if _, err := d.objects.Put(ctx, jetstream.ObjectMeta{Name: s.object(strings.TrimPrefix(handle, core.HandlePrefix))}, content); err != nil {
		return fmt.Errorf("session %s: store output %q: %w", s, handle, err)
	}
	return nil
}

// RemoveOutput implements [service.Engine].
func (d *DB) RemoveOutput(ctx context.Context, tenant, id, handle string) error {
	s := session{tenant, id}
	if err := s.check(); err != nil {
		return err
	}
	err := d.objects.Delete(ctx, s.object(strings.TrimPrefix(handle, core.HandlePrefix)))
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("session %s: remove output %q: %w", s, handle, err)
	}
	return nil
}

// output is an output that is written.
type output struct {
	*temporaryFile
	store *outputs
	id    string
	meta  core.OutputMeta
}

// storeTimeout limits how long closing an output may take.
const storeTimeout = time.Minute

func (o *output) Handle() string { return core.HandlePrefix + o.id }
func (o *output) Path() string   { return "" }

// Close stores the output.
func (o *output) Close() error {
	_, err := o.Seek(0, io.SeekStart)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		defer cancel()
		_, err = o.store.db.objects.Put(ctx, jetstream.ObjectMeta{
			Name:     o.store.session.object(o.id),
			Metadata: map[string]string{"tool": o.meta.Tool, "call": o.meta.Call, "time": o.meta.Time.UTC().Format(time.RFC3339)},
		}, o.temporaryFile)
	}
	if err != nil {
		err = fmt.Errorf("session %s: store the output of %s: %w", o.store.session, o.meta.Tool, err)
	}
	return errors.Join(err, o.temporaryFile.Close())
}

// temporaryFile is removed when it is closed.
type temporaryFile struct{ *os.File }

func tempFile(dir string) (*temporaryFile, error) {
	f, err := os.CreateTemp(dir, "agent-output-")
	if err != nil {
		return nil, err
	}
	return &temporaryFile{f}, nil
}

func (f *temporaryFile) Close() error {
	return errors.Join(f.File.Close(), os.Remove(f.Name()))
}
