//go:build unix

package ssh_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env/envtest"
	env "github.com/seed-009c0928/agent/core/env/ssh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nobody is an unprivileged user, which a test run as root switches to.
const nobody = 65534

func newSigner(t *testing.T) (ed25519.PrivateKey, ssh.Signer) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, signer
}

// host is an SSH server that runs commands in the login shell and, like sshd,
// lets them run when the client disconnects.
type host struct {
	listener net.Listener
	config   *ssh.ServerConfig
	shell    string
	known    string // a known_hosts file with its key
	key      string // the key file of a user who may log in
	private  ed25519.PrivateKey

	wg    sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
}

func newHost(t *testing.T) *host {
	t.Helper()
	_, hostKey := newSigner(t)
	private, login := newSigner(t)
	h := &host{shell: "/bin/sh", private: private}
	h.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(login.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	h.config.AddHostKey(hostKey)
	var err error
	if h.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	h.key = h.file(t, "id", string(pem.EncodeToMemory(block)))
	h.known = h.file(t, "known_hosts", knownhosts.Line([]string{h.listener.Addr().String()}, hostKey.PublicKey())+"\n")
	h.wg.Go(h.accept)
	t.Cleanup(func() {
		h.listener.Close()
		h.hangUp()
		h.wg.Wait()
	})
	return h
}

func (h *host) file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hangUp breaks all connections.
func (h *host) hangUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		c.Close()
	}
	h.conns = nil
}

func (h *host) accept() {
	for {
		raw, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		h.conns = append(h.conns, raw)
		h.mu.Unlock()
		h.wg.Go(func() { h.serve(raw) })
	}
}

func (h *host) serve(raw net.Conn) {
	defer raw.Close()
	conn, channels, requests, err := ssh.NewServerConn(raw, h.config)
	if err != nil {
		return
	}
	defer conn.Close()
	h.wg.Go(func() { ssh.DiscardRequests(requests) })
	open := make(chan struct{}, 10) // as sshd's MaxSessions
	for offered := range channels {
		select {
		case open <- struct{}{}:
		default:
			_ = offered.Reject(ssh.Prohibited, "open failed")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		h.wg.Go(func() {
			defer func() { <-open }()
			h.session(channel, requests)
		})
	}
}

// session runs the one command of a session.
func (h *host) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for req := range requests {
		if req.Type != "exec" {
			_ = req.Reply(false, nil)
			continue
		}
		_ = req.Reply(true, nil)
		h.wg.Go(func() { ssh.DiscardRequests(requests) })
		status := h.run(string(req.Payload[4:]), channel)
		_, _ = channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(status)))
		return
	}
}

func (h *host) run(line string, channel ssh.Channel) int {
	cmd := exec.Command(h.shell, "-c", line)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "AGENT_PROC_ID=") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	cmd.Stdout, cmd.Stderr = lenient{channel.Write}, lenient{channel.Stderr().Write}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 126
	}
	go func() { // ends with the channel
		defer stdin.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := channel.Read(buf)
			if n > 0 {
				_, _ = stdin.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// lenient ignores write errors.
type lenient struct{ write func([]byte) (int, error) }

// Write implements io.Writer.
func (l lenient) Write(p []byte) (int, error) {
	_, _ = l.write(p)
	return len(p), nil
}

func (h *host) options(t *testing.T) env.Options {
	return env.Options{
		Host: "me@" + h.listener.Addr().String(), KnownHosts: []string{h.known}, KeyFiles: []string{h.key},
		AgentSocket: "none", Dir: envtest.Dir(t),
	}
}

func (h *host) newEnv(t *testing.T) core.Environment {
	t.Helper()
	e, err := env.New(t.Context(), h.options(t))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestConforms(t *testing.T) {
	h := newHost(t)
	coretest.TestEnvironment(t, h.newEnv, coretest.EnvironmentOptions{HasShell: true, HasSymlinks: true, HasSetsid: true})
}

func TestSearch(t *testing.T) {
	h := newHost(t)
	envtest.TestSearch(t, h.newEnv)
}

func TestHardCases(t *testing.T) {
	h := newHost(t)
	envtest.TestHardCases(t, h.newEnv)
}

func TestLoginShells(t *testing.T) {
	for _, shell := range []string{"bash", "dash", "zsh", "fish", "csh", "tcsh"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed", shell)
			continue
		}
		h := newHost(t)
		h.shell = path
		e := h.newEnv(t)
		out, exit, err := core.Exec(t.Context(), e, core.Command{Argv: []string{"printf", "%s|", "a\nb", "it's", `\n`}})
		if want := "a\nb|it's|\\n|"; err != nil || exit.Code != 0 || string(out) != want {
			t.Errorf("%s: %q, %+v, %v", shell, out, exit, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestManySessions runs more concurrent commands than fit on a connection.
func TestManySessions(t *testing.T) {
	h := newHost(t)
	e := h.newEnv(t)
	defer e.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all []core.Process
	for range 25 {
		p, err := e.Start(ctx, core.Command{Script: "sleep 300"})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	cancel()
	for _, p := range all {
		if _, err := p.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait: %v", err)
		}
	}
}

// TestReconnects breaks the connection between and during commands.
func TestReconnects(t *testing.T) {
	h := newHost(t)
	e := h.newEnv(t)
	defer e.Close()
	p, err := e.Start(t.Context(), core.Command{Script: "sleep 300"})
	if err != nil {
		t.Fatal(err)
	}
	h.hangUp()
	if exit, err := p.Wait(); err == nil {
		t.Errorf("a command whose connection was lost succeeded: %+v", exit)
	}
	if out, _, err := core.Exec(t.Context(), e, core.Command{Script: "echo again"}); err != nil || string(out) != "again\n" {
		t.Errorf("after the connection was lost: %q, %v", out, err)
	}
}

func TestAgent(t *testing.T) {
	h := newHost(t)
	keyring := agent.NewKeyring()
	if err := keyring.Add(agent.AddedKey{PrivateKey: h.private}); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(envtest.Dir(t), "agent")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { // ends with its client
				defer conn.Close()
				_ = agent.ServeAgent(keyring, conn)
			}()
		}
	}()
	opts := h.options(t)
	opts.AgentSocket, opts.KeyFiles = socket, []string{"/no/such/key"}
	e, err := env.New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestPassphrase(t *testing.T) {
	h := newHost(t)
	block, err := ssh.MarshalPrivateKeyWithPassphrase(h.private, "", []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	opts := h.options(t)
	opts.KeyFiles = []string{h.file(t, "id", string(pem.EncodeToMemory(block)))}
	if _, err := env.New(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "encrypted") {
		t.Errorf("New without a passphrase: %v", err)
	}
	opts.Passphrase = func(string) ([]byte, error) { return []byte("open sesame"), nil }
	e, err := env.New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	h := newHost(t)
	_, stranger := newSigner(t)
	other, _ := newSigner(t)
	block, err := ssh.MarshalPrivateKey(other, "")
	if err != nil {
		t.Fatal(err)
	}
	addr := h.listener.Addr().String()
	for want, change := range map[string]func(*env.Options){
		"invalid host":          func(o *env.Options) { o.Host = "me@" },
		"unable to authenticat": func(o *env.Options) { o.KeyFiles = []string{h.file(t, "id", string(pem.EncodeToMemory(block)))} },
		"no such file":          func(o *env.Options) { o.KeyFiles = []string{"/no/such/key"} },
		"known hosts":           func(o *env.Options) { o.KnownHosts = []string{"/no/such/file"} },
		"is not in":             func(o *env.Options) { o.KnownHosts = []string{h.file(t, "known_hosts", "")} },
		"differs from that in": func(o *env.Options) {
			o.KnownHosts = []string{h.file(t, "known_hosts", knownhosts.Line([]string{addr}, stranger.PublicKey()))}
		},
		"connect to 127.0.0.1:1": func(o *env.Options) { o.Host = "me@127.0.0.1:1" },
	} {
		opts := h.options(t)
		change(&opts)
		e, err := env.New(t.Context(), opts)
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v, want an error with %q", opts, err, want)
		}
	}
}
