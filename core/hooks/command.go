package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// maxOutput is how much a command or a server may print, in bytes.
const maxOutput = 1 << 20

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// command runs a command in the session's environment: in its sandbox, with the
// workspace writable, and without a terminal.
func (p Place) command(ctx context.Context, d *Definition, input []byte) (reply, error) {
	h := &d.Handler
	info := p.Env.Info()
	cmd := core.Command{Script: d.Source.expand(h.Command), Stdin: bytes.NewReader(append(input, '\n')), Env: p.environ(d)}
	if h.Args != nil {
		cmd.Script, cmd.Argv = "", []string{d.Source.expand(h.Command)}
		for _, a := range h.Args {
			cmd.Argv = append(cmd.Argv, d.Source.expand(a))
		}
	}
	line := cmd.Script
	if line == "" {
		line = strings.Join(cmd.Argv, " ")
	}
	grants := []core.Grant{{Access: core.Access{Scope: core.ScopeShell, Resource: line}}}
	for _, dir := range slices.Concat(info.Roots, d.Source.Write) {
		grants = append(grants, core.Grant{Access: core.Access{Scope: core.ScopeWrite, Resource: dir, Recursive: true, Inside: true}})
	}
	for _, dir := range d.Source.Read {
		grants = append(grants, core.Grant{Access: core.Access{Scope: core.ScopeRead, Resource: dir, Recursive: true}})
	}
	for _, host := range h.Hosts {
		grants = append(grants, core.Grant{Access: core.Access{Scope: core.ScopeNetwork, Resource: host}})
	}
	if p.Transcript != "" {
		grants = append(grants, core.Grant{Access: core.Access{Scope: core.ScopeRead, Resource: p.Transcript}})
	}
	file, err := p.newEnvFile(ctx, d)
	if err != nil {
		return reply{}, fmt.Errorf("CLAUDE_ENV_FILE: %w", err)
	}
	defer file.close()
	if grants = append(grants, file.grants()...); file != nil {
		cmd.Env = append(cmd.Env, "CLAUDE_ENV_FILE="+file.file.Name())
	}
	rep, err := run(ctx, core.Restrict(p.Env, grants, nil), cmd)
	if err != nil {
		return reply{}, err
	}
	rep.env, err = file.read()
	return rep, err
}

// run runs a command to its end.
func run(ctx context.Context, env core.Environment, cmd core.Command) (reply, error) {
	var stdout, stderr limited
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	process, err := env.Start(ctx, cmd)
	if err != nil {
		return reply{}, err
	}
	exit, err := process.Wait()
	switch {
	case err != nil:
		return reply{}, err
	case exit.Signal != "":
		return reply{}, errors.New("it was ended by the signal " + exit.Signal)
	case stdout.over:
		return reply{}, errors.New("it printed more than 1 MiB")
	}
	return reply{out: stdout.Bytes(), err: stderr.String(), code: exit.Code, ran: true}, nil
}

// environ returns the variables of a command.
func (p Place) environ(d *Definition) []string {
	dir := p.Session.Dir
	if roots := p.Env.Info().Roots; len(roots) > 0 {
		dir = roots[0]
	}
	env := []string{"CLAUDE_PROJECT_DIR=" + dir}
	if d.gemini {
		env = append(env, "GEMINI_PROJECT_DIR="+dir, "GEMINI_CWD="+p.Session.Dir, "GEMINI_SESSION_ID="+p.Session.ID)
	}
	for name, value := range d.Source.Vars {
		if identifier.MatchString(name) {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return env
}

// limited keeps the beginning of an output.
type limited struct {
	bytes.Buffer
	over bool
}

// Write implements [io.Writer].
func (l *limited) Write(data []byte) (int, error) {
	if room := maxOutput - l.Len(); room < len(data) {
		l.over = true
		l.Buffer.Write(data[:room])
		return len(data), nil
	}
	return l.Buffer.Write(data)
}
