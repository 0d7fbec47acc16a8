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

// Keyring is the operating system's password store. Get and Delete return an
// error that is fs.ErrNotExist if there is no such entry.
type Keyring interface {
	Get(ctx context.Context, name string) (string, error)
	Set(ctx context.Context, name, value string) error
	Delete(ctx context.Context, name string) error
}

// Store stores the credentials of servers in a keyring or, if that fails, in files
// that only their owner can read. Changes are synchronized between processes. It
// is safe for concurrent use.
type Store struct {
	dir  string
	keys Keyring
}

// NewStore returns a store with the given directory, which it creates when
// needed. keys may be nil.
func NewStore(dir string, keys Keyring) *Store { return &Store{dir, keys} }

// credentials are the stored credentials of a server. All are of one issuer.
type credentials struct {
	Version  int    `json:"version"`
	Server   string `json:"server"`
	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`
	TokenURL string `json:"tokenUrl"`
	Revoke   string `json:"revocationUrl,omitempty"`

	Client client   `json:"client"`
	Scopes []string `json:"scopes,omitempty"` // requested ones
	Token  token    `json:"token"`
}

// client is this program's registration with the issuer.
type client struct {
	ID       string    `json:"id"`
	Secret   string    `json:"secret,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`   // of the secret
	Method   string    `json:"method,omitempty"`   // token_endpoint_auth_method
	Redirect string    `json:"redirect,omitempty"` // the registered one
}

type token struct {
	Access  string    `json:"access,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	Granted []string  `json:"granted,omitempty"` // scopes
}

// secrets returns the values that must not be shown.
func (c credentials) secrets() []string {
	return []string{c.Token.Access, c.Token.Refresh, c.Client.Secret}
}

// expired reports whether the token has expired or is about to.
func (c credentials) expired() bool {
	return !c.Token.Expires.IsZero() && time.Until(c.Token.Expires) < renewMargin
}

// version is the version of the stored form.
const version = 1

// storeKey returns the name of a server's credentials, for files and keyrings.
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

// keyName returns an entry's name in the keyring.
func keyName(key string) string { return "mcp/" + key }

// load reads credentials, the zero value if there are none.
func (s *Store) load(ctx context.Context, key string) (credentials, error) {
	data, err := os.ReadFile(s.path(key)) // exists only if the keyring failed
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
		return credentials{}, nil // invalid: replaced by the next sign-in
	}
	if c.Version > version {
		return credentials{}, fmt.Errorf("written by a newer version of this program")
	}
	return c, nil
}

// save stores credentials.
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
	if s.keys != nil { // delete an older entry
		_ = s.keys.Delete(ctx, keyName(key))
	}
	return atomicfile.Write(s.path(key), data, 0o600)
}

// remove deletes credentials.
func (s *Store) remove(ctx context.Context, key string) error {
	err := ignoreMissing(os.Remove(s.path(key)))
	if s.keys != nil {
		err = errors.Join(err, ignoreMissing(s.keys.Delete(ctx, keyName(key))))
	}
	return err
}

// lock prevents other processes from changing credentials until unlock is called.
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
