package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/redact"
)

const (
	outputSuffix = ".out"
	metaSuffix   = ".json"
	blobDir      = "blobs"

	defaultMaxBytes = 1 << 30
	maxMetaArgs     = 4 << 10 // bytes of a call's arguments that are kept
	maxCallName     = 64      // bytes of a call's id that can name a file
)

// ContextOptions are a context store's settings.
type ContextOptions struct {
	MaxBytes int64    // of all outputs and blobs of the session; 0 = 1 GiB
	Secrets  []string // replaced in the arguments that are kept with an output; see [Options]
}

// Context keeps the outputs and blobs of one session, a core.ContextStore. It
// is safe for concurrent use by one process, and holds nothing open.
type Context struct {
	session string
	dir     string // of this session
	max     int64
	redact  *redact.Redactor

	mu      sync.Mutex
	used    int64 // bytes; negative until counted
	numbers map[string]int
}

var _ core.ContextStore = (*Context)(nil)

// NewContext returns the context store of a session below dir, the directory
// of all of them. It creates nothing on disk until something is stored.
func NewContext(dir, session string, opts ContextOptions) (*Context, error) {
	if err := CheckID(session); err != nil {
		return nil, err
	}
	c := &Context{
		session: session, dir: filepath.Join(dir, session), max: opts.MaxBytes,
		redact: redact.New(opts.Secrets), used: -1, numbers: map[string]int{},
	}
	if c.max <= 0 {
		c.max = defaultMaxBytes
	}
	return c, nil
}

// Create implements core.ContextStore. The handle is HandlePrefix, the
// session, "/", and the id of the call, or "output" if that is not a valid file
// name; a name that is taken gets a number.
func (c *Context) Create(_ context.Context, meta core.OutputMeta) (core.StoredOutput, error) {
	f, name, err := c.create(meta.Call)
	if err != nil {
		return nil, fmt.Errorf("context store: %w", err)
	}
	return &output{file: f, store: c, name: name, meta: meta}, nil
}

func (c *Context) create(call string) (*os.File, string, error) {
	base := call
	if !validID(base) || len(base) > maxCallName {
		base = "output"
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		c.numbers[base]++
		name := base
		if n := c.numbers[base]; n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		f, err := os.OpenFile(filepath.Join(c.dir, name+outputSuffix), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, name, err
		}
	}
}

// PutBlob implements core.ContextStore. It writes atomically, and a blob only
// once.
func (c *Context) PutBlob(_ context.Context, data []byte) (string, error) {
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	path := filepath.Join(c.dir, blobDir, hash)
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(data)) {
		return hash, nil
	}
	if err := c.reserve(len(data)); err != nil {
		return "", err
	}
	if err := writeBlob(path, data); err != nil {
		c.release(len(data))
		return "", fmt.Errorf("context store: %w", err)
	}
	return hash, nil
}

func writeBlob(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}

// Open implements core.ContextStore. It opens only what belongs to this session;
// a fork has the outputs of its origin, too. The error for anything but a handle
// or a hash is an fs.ErrNotExist, too.
func (c *Context) Open(_ context.Context, id string) (core.File, error) {
	path, ok := c.path(id)
	if !ok {
		return nil, fmt.Errorf("%.80q is neither a handle of this session (%s%s/…) nor a SHA-256: %w",
			id, core.HandlePrefix, c.session, fs.ErrNotExist)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("context store: %w", err)
	}
	return f, nil
}

// path returns the file of a well-formed handle or hash. A handle of another
// session must be of an origin of this fork.
func (c *Context) path(id string) (string, bool) {
	if handle, ok := strings.CutPrefix(id, core.HandlePrefix); ok {
		session, name, _ := strings.Cut(handle, "/")
		if !validID(session) || !validID(name) {
			return "", false
		}
		dir := c.dir
		if session != c.session {
			dir = filepath.Join(c.dir, originDir, session)
			if _, err := os.Stat(dir); err != nil {
				return "", false
			}
		}
		return filepath.Join(dir, name+outputSuffix), true
	}
	if len(id) != hex.EncodedLen(sha256.Size) || strings.Trim(id, "0123456789abcdef") != "" {
		return "", false
	}
	return filepath.Join(c.dir, blobDir, id), true
}

// reserve takes n bytes of the limit.
func (c *Context) reserve(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used < 0 {
		used, err := sizeOf(c.dir)
		if err != nil {
			return fmt.Errorf("context store: %w", err)
		}
		c.used = used
	}
	if int64(n) > c.max-c.used {
		return fmt.Errorf("%w: %s holds %d of %d bytes, no room for %d more", ErrFull, c.dir, c.used, c.max, n)
	}
	c.used += int64(n)
	return nil
}

func (c *Context) release(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used -= int64(n)
}

// sizeOf adds up the files below a directory, which need not exist.
func sizeOf(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		total += info.Size()
		return nil
	})
	return total, err
}

// output is a core.StoredOutput. The file is not embedded: its ReadFrom would
// bypass the limit.
type output struct {
	file  *os.File
	store *Context
	name  string
	meta  core.OutputMeta
	once  sync.Once
}

// outputMeta is the JSON file of an output.
type outputMeta struct {
	Version int       `json:"v"`
	Tool    string    `json:"tool"`
	Args    string    `json:"args"` // at most 4 KiB of them
	Call    string    `json:"call,omitempty"`
	Time    time.Time `json:"time"`
	Result  string    `json:"result"` // the handle
	Bytes   int64     `json:"bytes"`
}

// Handle implements core.StoredOutput.
func (o *output) Handle() string { return core.HandlePrefix + o.store.session + "/" + o.name }

// Path implements core.StoredOutput.
func (o *output) Path() string { return o.file.Name() }

// ReadAt implements io.ReaderAt, until Close.
func (o *output) ReadAt(p []byte, off int64) (int, error) { return o.file.ReadAt(p, off) }

// Write implements io.Writer. If the store has no room it writes nothing, and
// the error is an ErrFull.
func (o *output) Write(p []byte) (int, error) {
	if err := o.store.reserve(len(p)); err != nil {
		return 0, err
	}
	n, err := o.file.Write(p)
	if err != nil {
		o.store.release(len(p) - n)
		return n, fmt.Errorf("context store: %w", err)
	}
	return n, nil
}

// Close implements io.Closer and writes the output's metadata. A second Close
// does nothing.
func (o *output) Close() error {
	var err error
	o.once.Do(func() {
		var size int64
		if info, statErr := o.file.Stat(); statErr == nil {
			size = info.Size()
		}
		err = errors.Join(o.file.Close(), o.writeMeta(size))
	})
	return err
}

func (o *output) writeMeta(size int64) error {
	args, _ := o.store.redact.Text([]byte(o.meta.Args))
	if len(args) > maxMetaArgs {
		args = args[:maxMetaArgs]
	}
	data, err := json.Marshal(outputMeta{
		Version: 1, Tool: o.meta.Tool, Args: strings.ToValidUTF8(string(args), ""), Call: o.meta.Call,
		Time: o.meta.Time, Result: o.Handle(), Bytes: size,
	})
	if err != nil {
		return fmt.Errorf("context store: %w", err)
	}
	if err := o.store.reserve(len(data)); err != nil {
		return err
	}
	if err := os.WriteFile(strings.TrimSuffix(o.Path(), outputSuffix)+metaSuffix, data, 0o600); err != nil {
		o.store.release(len(data))
		return fmt.Errorf("context store: %w", err)
	}
	return nil
}
