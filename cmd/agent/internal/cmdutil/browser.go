package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/proc"
)

// browserTime is how long the program that opens a page may take.
const browserTime = 10 * time.Second

// OpenBrowser opens a page in the user's browser, which BROWSER can name, and does not wait until it is
// shown. The address is one argument and passes no shell. Environment variables
// that look like a secret are withheld.
func OpenBrowser(ctx context.Context, page string) error {
	argv, err := browserCommand()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, browserTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], append(argv[1:], page)...) //nolint:gosec // a program of a fixed name, without a shell
	cmd.Env = proc.FilterEnv(os.Environ(), proc.InheritAll)
	cmd.Cancel = func() error { return os.ErrProcessDone } // it may be the browser itself, which stays
	cmd.WaitDelay = time.Millisecond
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }() // ends with the program, or at browserTime
	select {
	case err := <-done:
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			return fmt.Errorf("%s ended with %w", argv[0], err)
		}
		return nil
	case <-time.After(time.Second): // it shows the page, or will
		return nil
	}
}

// browserCommand returns the command that opens an address on this system.
func browserCommand() ([]string, error) {
	switch runtime.GOOS {
	case "darwin":
		return []string{"open"}, nil
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}, nil
	}
	if argv := strings.Fields(os.Getenv("BROWSER")); len(argv) > 0 {
		return argv, nil
	}
	// Without a display, xdg-open would start a browser in this terminal.
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return nil, errors.New("no display")
	}
	path, err := exec.LookPath("xdg-open")
	if err != nil {
		return nil, errors.New("xdg-open is not installed")
	}
	return []string{path}, nil
}

// PageServer serves web pages on a listener.
type PageServer interface {
	URL(l net.Listener, id string) string
	Serve(ctx context.Context, l net.Listener) error
}

// ServePage serves a page on this machine until Ctrl-C. It prints its address and, if
// wanted, opens it.
func (s *IO) ServePage(ctx context.Context, server PageServer, id string, browse bool) error {
	err := Interruptible(ctx, func(ctx context.Context) error { return s.servePage(ctx, server, id, browse) })
	if errors.Is(err, ErrInterrupted) { // this is how it ends
		return nil
	}
	return err
}

func (s *IO) servePage(ctx context.Context, server PageServer, id string, browse bool) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serve the page: %w", err)
	}
	url := server.URL(l, id)
	fmt.Fprintln(s.Out, url)
	fmt.Fprintln(s.Err, "Press Ctrl-C to stop.")
	var opened sync.WaitGroup
	defer opened.Wait()
	if browse {
		opened.Go(func() {
			if err := OpenBrowser(ctx, url); err != nil {
				fmt.Fprintf(s.Err, "agent: open the address in a browser; it could not be opened: %v\n", err)
			}
		})
	}
	return server.Serve(ctx, l)
}
