package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-009c0928/agent/core/atomicfile"
)

// Keyring keeps small texts where the operating system keeps passwords. Get and
// Delete return an error that is fs.ErrNotExist if there is no such entry.
type Keyring interface {
	Get(ctx context.Context, name string) (string, error)
	Set(ctx context.Context, name, value string) error
	Delete(ctx context.Context, name string) error
}

// Store keeps the credentials of servers: in a keyring, or where that does not
// take them in files that only their owner may read. It keeps processes that
// change the same credentials apart. It is safe for concurrent use.
type Store struct {
	dir  string
	keys Keyring
}

// NewStore returns a store with a directory of its own, which is made when it
// is first needed. keys may be nil.
func NewStore(dir string, keys Keyring) *Store { return &Store{dir, keys} }

// credentials are what is kept of a server. All of it belongs to one issuer.
type credentials struct {
	Version  int    `json:"version"`
	Server   string `json:"server"`
	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`
	TokenURL string `json:"tokenUrl"`
	Revoke   string `json:"revocationUrl,omitempty"`

	Client client   `json:"client"`
	Scopes []string `json:"scopes,omitempty"` // that were asked for
	Token  token    `json:"token"`
}

// client is this program as the issuer knows it.
type client struct {
	ID       string    `json:"id"`
	Secret   string    `json:"secret,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`   // of the secret
	Method   string    `json:"method,omitempty"`   // token_endpoint_auth_method
	Redirect string    `json:"redirect,omitempty"` // that was registered
}

type token struct {
	Access  string    `json:"access,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	Granted []string  `json:"granted,omitempty"` // scopes
}

// secrets are the texts that no message may show.
func (c credentials) secrets() []string {
	return []string{c.Token.Access, c.Token.Refresh, c.Client.Secret}
}

// expired reports whether the token is at its end.
func (c credentials) expired() bool {
	return !c.Token.Expires.IsZero() && time.Until(c.Token.Expires) < early
}

// version is that of the record.
const version = 1

// storeKey names the credentials of a server, for file names and keyrings.
func storeKey(server *url.URL) string {
	sum := sha256.Sum256([]byte(server.String()))
	host := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(server.Host))
	return host[:min(len(host), 60)] + "-" + hex.EncodeToString(sum[:8])
}

func (s *Store) path(key string) string { return filepath.Join(s.dir, key+".json") }

// keyName is an entry's name in the keyring.
func keyName(key string) string { return "mcp/" + key }

// load reads credentials; the zero value if there are none.
func (s *Store) load(ctx context.Context, key string) (credentials, error) {
	data, err := os.ReadFile(s.path(key)) // it is there only if the keyring did not take them
	if errors.Is(err, fs.ErrNotExist) && s.keys != nil {
		var text string
		text, err = s.keys.Get(ctx, keyName(key))
		data = []byte(text)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return credentials{}, nil
	case err != nil:
		return credentials{}, err
	}
	var c credentials
	if err := json.Unmarshal(data, &c); err != nil || c.Version < 1 {
		return credentials{}, nil // not ours any more: a new sign-in writes them anew
	}
	if c.Version > version {
		return credentials{}, fmt.Errorf("they were written by a newer version of this program")
	}
	return c, nil
}

// save keeps credentials.
func (s *Store) save(ctx context.Context, key string, c credentials) error {
	c.Version = version
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if s.keys != nil && s.keys.Set(ctx, keyName(key), string(data)) == nil {
		return ignoreMissing(os.Remove(s.path(key)))
	}
	if err := s.makeDir(); err != nil {
		return err
	}
	if s.keys != nil { // what it may still hold is older
		_ = s.keys.Delete(ctx, keyName(key))
	}
	return atomicfile.Write(s.path(key), data, 0o600)
}

// remove forgets credentials.
func (s *Store) remove(ctx context.Context, key string) error {
	err := ignoreMissing(os.Remove(s.path(key)))
	if s.keys != nil {
		err = errors.Join(err, ignoreMissing(s.keys.Delete(ctx, keyName(key))))
	}
	return err
}

// lock keeps other processes from changing credentials until unlock is called.
func (s *Store) lock(ctx context.Context, key string) (unlock func() error, err error) {
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, key+".lock")
	guard := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	if _, err := guard.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return guard.Close, nil
}

func (s *Store) makeDir() error { return os.MkdirAll(s.dir, 0o700) }

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
