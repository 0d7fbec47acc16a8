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

// service is the name under which all entries are kept.
const service = "agent"

// patience is how long the keyring may take to answer: it may ask the person to
// unlock it.
const patience = 60 * time.Second

// System is the operating system's keyring. It is safe for concurrent use.
type System struct {
	env func(string) string
}

// New returns the keyring that the environment names.
func New(env func(string) string) System { return System{env} }

// Running reports whether a keyring may answer, without asking it: looking for
// one must not start it.
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

// Available reports whether entries can be read and kept.
func (s System) Available(ctx context.Context) bool {
	_, err := s.Get(ctx, "probe")
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// missingError says that there is no such entry. It is an fs.ErrNotExist.
type missingError struct{}

// Error implements error.
func (missingError) Error() string { return "there is no such entry" }

// Is implements what [errors.Is] looks for.
func (missingError) Is(target error) bool { return target == fs.ErrNotExist }

// errNone says that there is no keyring.
var errNone = errors.New("no keyring runs here (on Linux, a Secret Service such as gnome-keyring or KWallet is needed)")

// Get returns an entry. The error is an fs.ErrNotExist if there is none.
func (s System) Get(ctx context.Context, name string) (string, error) {
	value, err := s.do(ctx, func() (string, error) { return keyring.Get(service, name) })
	if err != nil {
		return "", fmt.Errorf("the entry %s of the keyring: %w", name, err)
	}
	return value, nil
}

// Set keeps an entry.
func (s System) Set(ctx context.Context, name, value string) error {
	_, err := s.do(ctx, func() (string, error) { return "", keyring.Set(service, name, value) })
	if err != nil {
		return fmt.Errorf("the entry %s of the keyring: %w", name, err)
	}
	return nil
}

// Delete removes an entry. The error is an fs.ErrNotExist if there is none.
func (s System) Delete(ctx context.Context, name string) error {
	_, err := s.do(ctx, func() (string, error) { return "", keyring.Delete(service, name) })
	if err != nil {
		return fmt.Errorf("the entry %s of the keyring: %w", name, err)
	}
	return nil
}

// do waits for f, which takes no context. When the wait ends first, f goes on
// until the keyring answers.
func (s System) do(ctx context.Context, f func() (string, error)) (string, error) {
	if !s.Running() {
		return "", errNone
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
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
		return "", fmt.Errorf("it does not answer: %w", context.Cause(ctx))
	}
}
