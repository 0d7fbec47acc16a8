package cmdutil

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/mcp"
)

// Exit codes: a contract with scripts (docs/cli.md).
const (
	ExitDone     = 0
	ExitError    = 1
	ExitUsage    = 2
	ExitConfig   = 3
	ExitProvider = 4
	ExitLimit    = 5
	ExitDenied   = 6
	ExitParked   = 7
	// Of tasks, see docs/tasks.md.
	ExitBlocked   = 8
	ExitExhausted = 9
	ExitCriteria  = 10
	ExitSIGINT    = 130
	ExitSIGTERM   = 143
)

// UsageError is a mistake on the command line. It is printed with a pointer to
// the command's help, and ends the process with ExitUsage.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a *UsageError; its arguments are those of [fmt.Errorf].
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// StatusError ends the command with an exit code. Nothing more is printed.
type StatusError struct{ Code int }

func (e *StatusError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// AdvisedError is an error with advice, which is printed below it.
type AdvisedError struct {
	Err    error
	Advice string // whole lines
}

func (e *AdvisedError) Error() string { return e.Err.Error() }
func (e *AdvisedError) Unwrap() error { return e.Err }

// Advise adds advice to err, unless either is empty.
func Advise(err error, advice string) error {
	if err == nil || advice == "" {
		return err
	}
	return &AdvisedError{err, advice}
}

// FlagError makes an error of pflag a usage error that names the flag and what
// was expected, and suggests the nearest flag for an unknown one.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := jsonpos.Nearest(unknown.GetSpecifiedName(), names); near != "" && unknown.GetSpecifiedShortnames() == "" {
			err = fmt.Errorf("%w; did you mean --%s?", err, near)
		}
	case errors.As(err, &bad):
		want := map[string]string{"int": "a whole number", "bool": "true or false"}
		if kind, ok := want[bad.GetFlag().Value.Type()]; ok {
			err = fmt.Errorf("--%s %q: expected %s", bad.GetFlag().Name, bad.GetValue(), kind)
		}
	}
	return &UsageError{err}
}

// ExitCode maps an error to the exit code of the process.
func ExitCode(err error) int {
	var status *StatusError
	var usage *UsageError
	var conf *config.Error
	var provider *model.Error
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &status):
		return status.Code
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &conf):
		if conf.CommandLine {
			return ExitUsage
		}
		return ExitConfig
	case errors.Is(err, ErrTerminated):
		return ExitSIGTERM
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled):
		return ExitSIGINT
	case errors.Is(err, mcp.ErrSignIn):
		return ExitProvider
	case errors.As(err, &provider):
		if provider.Code == model.CodeNotConfigured || provider.Code == model.CodeNotSupported {
			return ExitConfig
		}
		return ExitProvider
	}
	return ExitError
}
