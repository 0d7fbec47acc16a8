package ssh

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// inSSHDir returns the files of ~/.ssh that exist.
func inSSHDir(names ...string) []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	var found []string
	for _, name := range names {
		file := filepath.Join(home, ".ssh", name)
		if _, err := os.Stat(file); err == nil {
			found = append(found, file)
		}
	}
	return found
}

// hosts are the hosts whose keys are known.
type hosts struct {
	files []string
	known ssh.HostKeyCallback
}

func newHosts(files []string) (*hosts, error) {
	if len(files) == 0 {
		files = inSSHDir("known_hosts")
		const everybody = "/etc/ssh/ssh_known_hosts"
		if _, err := os.Stat(everybody); err == nil {
			files = append(files, everybody)
		}
	}
	known, err := knownhosts.New(files...)
	if err != nil {
		return nil, fmt.Errorf("ssh: known hosts: %w", err)
	}
	return &hosts{files: files, known: known}, nil
}

// check implements ssh.HostKeyCallback.
func (h *hosts) check(addr string, remote net.Addr, key ssh.PublicKey) error {
	err := h.known(addr, remote, key)
	keyErr, ok := errors.AsType[*knownhosts.KeyError](err)
	switch {
	case !ok:
		return err
	case len(keyErr.Want) == 0:
		return fmt.Errorf("the key of the host %s (%s) is not in %q: verify it, then connect once with ssh: %w",
			addr, ssh.FingerprintSHA256(key), h.files, err)
	default:
		return fmt.Errorf("the key of the host %s (%s) differs from that in %s, line %d: this may be an attack. "+
			"If the host was reinstalled, verify its new key with its owner, remove that line, and connect once with ssh: %w",
			addr, ssh.FingerprintSHA256(key), keyErr.Want[0].Filename, keyErr.Want[0].Line, err)
	}
}

// algorithms returns the algorithms of a host's known keys, or nil if there are
// none: the host must not offer keys of other types.
func (h *hosts) algorithms(addr string) []string {
	stranger, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return nil
	}
	keyErr, ok := errors.AsType[*knownhosts.KeyError](h.known(addr, &net.TCPAddr{IP: net.IPv4zero}, stranger))
	if !ok {
		return nil
	}
	var list []string
	for _, known := range keyErr.Want {
		kinds := []string{known.Key.Type()}
		if kinds[0] == ssh.KeyAlgoRSA {
			kinds = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
		}
		for _, kind := range kinds {
			if !slices.Contains(list, kind) {
				list = append(list, kind)
			}
		}
	}
	return list
}

// keys are the keys for logging in: those of the agent and of files. Files are
// read on demand, once.
type keys struct {
	socket     string
	files      []string
	passphrase func(file string) ([]byte, error)

	mu     sync.Mutex
	agent  net.Conn
	loaded bool
	own    []ssh.Signer
	failed error // why some of the files could not be used
}

func newKeys(opts Options) *keys {
	k := &keys{socket: opts.AgentSocket, files: opts.KeyFiles, passphrase: opts.Passphrase}
	if k.socket == "" {
		k.socket = os.Getenv("SSH_AUTH_SOCK")
	}
	if k.socket == "none" {
		k.socket = ""
	}
	if len(k.files) == 0 {
		k.files = inSSHDir("id_ed25519", "id_ecdsa", "id_rsa")
	}
	return k
}

// signers returns all keys, or an error if there are none.
func (k *keys) signers() ([]ssh.Signer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	list, agentErr := k.fromAgent()
	if !k.loaded {
		k.load()
	}
	list = append(list, k.own...)
	if len(list) > 0 {
		return list, nil
	}
	if err := errors.Join(agentErr, k.failed); err != nil {
		return nil, err
	}
	return nil, errors.New("no key to log in with: start an SSH agent or name a key file")
}

// fromAgent returns the agent's keys. The connection stays open for signing.
func (k *keys) fromAgent() ([]ssh.Signer, error) {
	if k.socket == "" {
		return nil, nil
	}
	if k.agent == nil {
		conn, err := net.Dial("unix", k.socket)
		if err != nil {
			return nil, fmt.Errorf("SSH agent: %w", err)
		}
		k.agent = conn
	}
	list, err := agent.NewClient(k.agent).Signers()
	if err != nil {
		return nil, fmt.Errorf("SSH agent: %w", err)
	}
	return list, nil
}

func (k *keys) load() {
	k.loaded = true
	for _, file := range k.files {
		signer, err := k.read(file)
		if err != nil {
			k.failed = errors.Join(k.failed, fmt.Errorf("key file %s: %w", file, err))
			continue
		}
		k.own = append(k.own, signer)
	}
}

// read reads a key file and asks for its passphrase if it has one.
func (k *keys) read(file string) (ssh.Signer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(data)
	if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); !ok {
		return signer, err
	}
	if k.passphrase == nil {
		return nil, errors.New("the key is encrypted: add it to an SSH agent")
	}
	secret, err := k.passphrase(file)
	if err != nil {
		return nil, err
	}
	return ssh.ParsePrivateKeyWithPassphrase(data, secret)
}

// close disconnects from the agent.
func (k *keys) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.agent != nil {
		k.agent.Close()
		k.agent = nil
	}
}
