// Package ssh is an environment on another host, over SSH.
//
// Commands and files go through core/env/posix, which documents the requirements
// for the host; the SFTP subsystem is not needed. The user's shell on the host
// only has to start sh. Host keys must be in a known_hosts file: unknown keys are
// not trusted. The client's ssh_config is not read.
package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/user"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env/posix"
	"github.com/seed-009c0928/agent/core/proc"
)

// Options configure an [Env]: Host must be set.
type Options struct {
	Host string // "host", "user@host", "host:port", "user@host:port"
	// KnownHosts are the files with host keys; empty means ~/.ssh/known_hosts
	// and /etc/ssh/ssh_known_hosts, as far as they exist.
	KnownHosts []string
	// KeyFiles are private keys; empty means id_ed25519, id_ecdsa and id_rsa in
	// ~/.ssh, as far as they exist.
	KeyFiles []string
	// Passphrase returns the passphrase of an encrypted key file; if nil, such
	// files cannot be used.
	Passphrase func(file string) ([]byte, error)
	// AgentSocket is the socket of the SSH agent; empty = SSH_AUTH_SOCK,
	// "none" = no agent.
	AgentSocket string
	// Dial connects to the host, for example through a proxy; nil = directly.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	Dir     string   // working directory on the host; empty = that of a login
	AddDirs []string // further directories of the workspace, relative to Dir
	Home    string   // meaning of ~; empty = HOME on the host
	// Inherit selects how much of the login's environment commands get; PassEnv
	// names variables that are always passed on.
	Inherit proc.Inherit
	PassEnv []string
}

// Env is an environment on another host. It is safe for concurrent use.
type Env struct {
	*posix.Env
	pool     *pool
	close    sync.Once
	closeErr error
}

var (
	_ core.Environment = (*Env)(nil)
	_ core.ExactFiler  = (*Env)(nil)
)

// New connects to the host and returns its environment. ctx is only for
// connecting.
func New(ctx context.Context, opts Options) (*Env, error) {
	name, addr, err := address(opts.Host)
	if err != nil {
		return nil, err
	}
	hosts, err := newHosts(opts.KnownHosts)
	if err != nil {
		return nil, err
	}
	keys := newKeys(opts)
	config := &ssh.ClientConfig{
		User:              name,
		Auth:              []ssh.AuthMethod{ssh.PublicKeysCallback(keys.signers)},
		HostKeyCallback:   hosts.check,
		HostKeyAlgorithms: hosts.algorithms(addr),
	}
	e := &Env{pool: newPool(addr, config, opts.Dial, keys)}
	e.Env, err = posix.New(ctx, e.pool, posix.Options{
		Dir: opts.Dir, AddDirs: opts.AddDirs, Home: opts.Home, Inherit: opts.Inherit, PassEnv: opts.PassEnv,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("host %s: %w", opts.Host, err), e.pool.close())
	}
	return e, nil
}

// address parses "user@host:port". The defaults are the user of this process and
// port 22.
func address(host string) (name, addr string, err error) {
	name, rest, ok := cutLast(host, "@")
	if !ok {
		me, err := user.Current()
		if err != nil {
			return "", "", fmt.Errorf("ssh: unknown user name: give user@host: %w", err)
		}
		// Windows prefixes a domain.
		name = me.Username[strings.LastIndexByte(me.Username, '\\')+1:]
	}
	if name == "" || rest == "" {
		return "", "", fmt.Errorf("ssh: invalid host %q: give host, user@host or user@host:port", host)
	}
	if _, _, err := net.SplitHostPort(rest); err == nil {
		return name, rest, nil
	}
	return name, net.JoinHostPort(strings.Trim(rest, "[]"), "22"), nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// Close implements [core.Environment]: it ends the commands and disconnects.
func (e *Env) Close() error {
	e.close.Do(func() { e.closeErr = errors.Join(e.Env.Close(), e.pool.close()) })
	return e.closeErr
}
