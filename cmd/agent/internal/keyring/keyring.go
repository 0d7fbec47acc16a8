package keyring

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the service name of all entries.
const service = "agent"

// timeout is long, since the keyring may ask the user to unlock it.
const timeout = 60 * time.Second

// System is the operating system's keyring. It is safe for concurrent use.
type System struct {
	env func(string) string
}

// New returns the keyring of the session that the environment describes.
func New(env func(string) string) System { return System{env} }

// Running reports whether there may be a keyring, without a call that could
// start one.
func (s System) Running() bool {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return true
	}
	if s.env("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := s.env("XDG_RUNTIME_DIR")
	if dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil
}

// Available reports whether the keyring answers.
func (s System) Available(ctx context.Context) bool {
	_, err := s.Get(ctx, "probe")
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// missingError is the error for a missing entry. It matches fs.ErrNotExist.
type missingError struct{}

// Error implements error.
func (missingError) Error() string { return "no such entry" }

// Is makes [errors.Is] match fs.ErrNotExist.
func (missingError) Is(target error) bool { return target == fs.ErrNotExist }

var errNone = errors.New("no keyring is running (on Linux, a Secret Service such as gnome-keyring or KWallet is needed)")

// Get returns an entry. The error matches fs.ErrNotExist if there is none.
func (s System) Get(ctx context.Context, name string) (string, error) {
	value, err := s.do(ctx, func() (string, error) { return keyring.Get(service, name) })
	if err != nil {
		return "", fmt.Errorf("keyring entry %s: %w", name, err)
	}
	return value, nil
}

// Set stores an entry.
func (s System) Set(ctx context.Context, name, value string) error {
	_, err := s.do(ctx, func() (string, error) { return "", keyring.Set(service, name, value) })
	if err != nil {
		return fmt.Errorf("keyring entry %s: %w", name, err)
	}
	return nil
}

// Delete removes an entry. The error matches fs.ErrNotExist if there is none.
func (s System) Delete(ctx context.Context, name string) error {
	_, err := s.do(ctx, func() (string, error) { return "", keyring.Delete(service, name) })
	if err != nil {
		return fmt.Errorf("keyring entry %s: %w", name, err)
	}
	return nil
}

// do waits for f, which takes no context. If ctx ends first, f keeps running
// until the keyring answers.
func (s System) do(ctx context.Context, f func() (string, error)) (string, error) {
	if !s.Running() {
		return "", errNone
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type answer struct {
		value string
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		value, err := f()
		if errors.Is(err, keyring.ErrNotFound) {
			err = missingError{}
		}
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return "", fmt.Errorf("no answer: %w", context.Cause(ctx))
	}
}
