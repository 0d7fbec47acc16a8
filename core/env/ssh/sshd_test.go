//go:build linux

package ssh_test

import (
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env/envtest"
	env "github.com/seed-009c0928/agent/core/env/ssh"
)

// sshd is OpenSSH's server on a loopback port, with keys of its own, for the user
// of the test.
type sshd struct {
	address string
	options env.Options
}

func startSSHD(t *testing.T) *sshd {
	t.Helper()
	program, err := exec.LookPath("sshd")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/sshd"); err != nil {
			t.Skip("sshd is not installed: it is in the package openssh-server")
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pemOf := func() (string, ssh.PublicKey) {
		private, signer := newSigner(t)
		block, err := ssh.MarshalPrivateKey(private, "")
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(block)), signer.PublicKey()
	}
	hostKey, hostPublic := pemOf()
	loginKey, loginPublic := pemOf()
	s := &sshd{address: freeAddress(t)}
	_, port, _ := net.SplitHostPort(s.address)
	command := `sh -c "$SSH_ORIGINAL_COMMAND"`
	if os.Getuid() == 0 { // the tests need a user who may not read everything
		command = fmt.Sprintf("setpriv --reuid=%d --regid=%d --clear-groups ", nobody, nobody) + command
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd insists on it
			t.Fatal(err)
		}
	}
	config := write("config", "ListenAddress 127.0.0.1\nPort "+port+"\nHostKey "+write("host", hostKey)+"\nAuthorizedKeysFile "+
		write("authorized", string(ssh.MarshalAuthorizedKey(loginPublic)))+"\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n"+
		"PasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 100\nForceCommand exec "+command+"\n"+
		"SetEnv SHLVL=1\n") // bash reads no .bashrc in a shell below another
	server := exec.Command(program, "-D", "-e", "-f", config)
	var log strings.Builder
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // killed
		if t.Failed() {
			t.Logf("sshd:\n%s", &log)
		}
	})
	waitForPort(t, s.address)
	s.options = env.Options{
		Host: me.Username + "@" + s.address, KeyFiles: []string{write("id", loginKey)}, AgentSocket: "none",
		KnownHosts: []string{write("known_hosts", knownhosts.Line([]string{s.address}, hostPublic)+"\n")},
	}
	return s
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func waitForPort(t *testing.T, address string) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return
		}
		select {
		case <-retry.C:
		case <-deadline.C:
			t.Fatalf("sshd does not listen on %s", address)
		}
	}
}

func (s *sshd) newEnv(t *testing.T) core.Environment {
	t.Helper()
	opts := s.options
	opts.Dir = envtest.Dir(t)
	e, err := env.New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestOpenSSH(t *testing.T) {
	s := startSSHD(t)
	coretest.TestEnvironment(t, s.newEnv, coretest.EnvironmentOptions{HasShell: true, HasSymlinks: true, HasSetsid: true})
	// Most of the time is spent waiting for the host.
	for name, suite := range map[string]func(*testing.T, func(*testing.T) core.Environment){
		"hard cases": envtest.TestHardCases, "search": envtest.TestSearch, "terminal": envtest.TestTerminal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(t, s.newEnv)
		})
	}
}
