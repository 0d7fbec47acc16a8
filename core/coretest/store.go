package coretest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// ErrStoreFull is the error of a [MemoryStore] with Full.
var ErrStoreFull = errors.New("no space left in the test's store")

// MemoryStore is a [core.ContextStore]. It keeps outputs in memory, where they
// have no path, or in files if Dir is set. The zero value is empty and ready to
// use; it is safe for concurrent use.
type MemoryStore struct {
	// Dir is an existing directory for the outputs, such as t.TempDir().
	Dir string
	// Full makes all writes fail with [ErrStoreFull].
	Full bool

	mu      sync.Mutex
	outputs map[string]*memoryOutput // by handle
	metas   []core.OutputMeta
	blobs   map[string][]byte
}

var _ core.ContextStore = (*MemoryStore)(nil)

// Create implements [core.ContextStore].
func (s *MemoryStore) Create(_ context.Context, meta core.OutputMeta) (core.StoredOutput, error) {
	if s.Full {
		return nil, ErrStoreFull
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("%d", len(s.metas)+1)
	o := &memoryOutput{handle: core.HandlePrefix + id}
	if s.Dir != "" {
		f, err := os.OpenFile(filepath.Join(s.Dir, "output-"+id), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		o.file = f
	}
	if s.outputs == nil {
		s.outputs = make(map[string]*memoryOutput)
	}
	s.outputs[o.handle] = o
	s.metas = append(s.metas, meta)
	return o, nil
}

// PutBlob implements [core.ContextStore].
func (s *MemoryStore) PutBlob(_ context.Context, data []byte) (string, error) {
	if s.Full {
		return "", ErrStoreFull
	}
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blobs == nil {
		s.blobs = make(map[string][]byte)
	}
	s.blobs[hash] = bytes.Clone(data)
	return hash, nil
}

// Open implements [core.ContextStore].
func (s *MemoryStore) Open(_ context.Context, id string) (core.File, error) {
	s.mu.Lock()
	o, blob := s.outputs[id], s.blobs[id]
	s.mu.Unlock()
	switch {
	case blob != nil:
		return newMemoryFile(id, blob), nil
	case o == nil:
		return nil, fmt.Errorf("store: %q: %w", id, fs.ErrNotExist)
	case o.file != nil:
		return os.Open(o.file.Name())
	}
	return newMemoryFile(strings.TrimPrefix(id, core.HandlePrefix), o.bytes()), nil
}

// Outputs returns what the outputs were created for, in order.
func (s *MemoryStore) Outputs() []core.OutputMeta {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]core.OutputMeta(nil), s.metas...)
}

// memoryOutput is a stored output, in a file or in data.
type memoryOutput struct {
	handle string
	file   *os.File

	mu   sync.Mutex
	data []byte
}

func (o *memoryOutput) Handle() string { return o.handle }

func (o *memoryOutput) Path() string {
	if o.file == nil {
		return ""
	}
	return o.file.Name()
}

func (o *memoryOutput) Write(p []byte) (int, error) {
	if o.file != nil {
		return o.file.Write(p)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data = append(o.data, p...)
	return len(p), nil
}

func (o *memoryOutput) ReadAt(p []byte, off int64) (int, error) {
	if o.file != nil {
		return o.file.ReadAt(p, off)
	}
	return bytes.NewReader(o.bytes()).ReadAt(p, off)
}

func (o *memoryOutput) Close() error {
	if o.file != nil {
		return o.file.Close()
	}
	return nil
}

// bytes returns what has been written; later writes do not change it.
func (o *memoryOutput) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data[:len(o.data):len(o.data)]
}

// memoryFile is a [core.File] over bytes.
type memoryFile struct {
	*bytes.Reader
	name string
}

func newMemoryFile(name string, data []byte) core.File {
	return &memoryFile{bytes.NewReader(data), name}
}

var _ io.ReaderAt = (*memoryFile)(nil)

func (f *memoryFile) Close() error               { return nil }
func (f *memoryFile) Stat() (fs.FileInfo, error) { return memoryInfo{f}, nil }

// memoryInfo describes a memoryFile.
type memoryInfo struct{ f *memoryFile }

func (i memoryInfo) Name() string       { return i.f.name }
func (i memoryInfo) Size() int64        { return i.f.Reader.Size() }
func (i memoryInfo) Mode() fs.FileMode  { return 0o400 }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) IsDir() bool        { return false }
func (i memoryInfo) Sys() any           { return nil }
