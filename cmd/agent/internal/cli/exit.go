package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/mcp"
)

// The exit codes, a contract with scripts (docs/cli.md).
const (
	exitDone     = 0
	exitError    = 1
	exitUsage    = 2
	exitConfig   = 3
	exitProvider = 4
	exitLimit    = 5
	exitDenied   = 6
	exitSIGINT   = 130
	exitSIGTERM  = 143
)

// usageError is a mistake on the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// flagError says what is wrong with a flag, and what may have been meant.
func flagError(cmd *cobra.Command, err error) error {
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
	return &usageError{err}
}

// statusError ends the command with a code; what there was to say was said.
type statusError struct{ code int }

func (e *statusError) Error() string { return "failed" }

// exitCode maps an error to the exit code.
func exitCode(err error) int {
	var status *statusError
	var usage *usageError
	var conf *config.Error
	var provider *model.Error
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &status):
		return status.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &conf):
		if conf.CommandLine {
			return exitUsage
		}
		return exitConfig
	case errors.Is(err, errTerminated):
		return exitSIGTERM
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitSIGINT
	case errors.Is(err, mcp.ErrSignIn):
		return exitProvider
	case errors.As(err, &provider):
		if provider.Code == model.CodeNotConfigured || provider.Code == model.CodeNotSupported {
			return exitConfig
		}
		return exitProvider
	}
	return exitError
}

// outcomeCode maps what came of an input to the exit code.
func outcomeCode(out core.Outcome, err error) int {
	if err != nil {
		return exitCode(err)
	}
	switch out.Stop {
	case core.StopTurnLimit, core.StopTokenLimit, core.StopMaxTokens:
		return exitLimit
	case core.StopCancelled, core.StopAborted:
		return exitSIGINT
	case core.StopRefused:
		return exitError
	}
	if len(out.Denied) > 0 {
		return exitDenied
	}
	return exitDone
}
