package serve

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/privatefile"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/service/api"
)

const (
	firstToken    = "first" // the name of the token of the first start
	defaultTenant = "default"
	tokenBytes    = 32
)

func allScopes() []api.Scope {
	return []api.Scope{api.ScopeRead, api.ScopeRun, api.ScopeAnswer, api.ScopeAdmin}
}

// tokenList are the tokens of a service, in a file of its data.
type tokenList struct{ dir string }

// tokenRecord is what is kept of a token.
type tokenRecord struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	api.Token
}

type tokensFile struct {
	Version int           `json:"version"`
	Tokens  []tokenRecord `json:"tokens"`
}

func (l tokenList) path() string { return filepath.Join(l.dir, "tokens.json") }

// read returns the tokens; the error is an fs.ErrNotExist before the first start.
func (l tokenList) read() ([]tokenRecord, error) {
	data, err := privatefile.Read(l.path())
	if err != nil {
		return nil, err
	}
	return l.parse(data)
}

func (l tokenList) parse(data []byte) ([]tokenRecord, error) {
	var f tokensFile
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("%s: %w", l.path(), err)
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("%s: version %d is not supported, only 1", l.path(), f.Version)
	}
	return f.Tokens, nil
}

// update changes the list; before the first start it is empty.
func (l tokenList) update(ctx context.Context, change func([]tokenRecord) ([]tokenRecord, error)) error {
	return privatefile.Update(ctx, l.path(), l.path()+".lock", func(old []byte) ([]byte, error) {
		var list []tokenRecord
		if old != nil {
			var err error
			if list, err = l.parse(old); err != nil {
				return nil, err
			}
		}
		list, err := change(list)
		if err != nil {
			return nil, err
		}
		data, err := json.MarshalIndent(tokensFile{1, append([]tokenRecord{}, list...)}, "", "  ")
		return append(data, '\n'), err
	})
}

// add makes a token.
func (l tokenList) add(ctx context.Context, name, tenant string, scopes []api.Scope) (token string, err error) {
	if err := store.CheckID(tenant); err != nil {
		return "", cmdutil.Usagef("--tenant: %w", err)
	}
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // never fails
	token = "agent_" + base64.RawURLEncoding.EncodeToString(secret)
	return token, l.update(ctx, func(list []tokenRecord) ([]tokenRecord, error) {
		if slices.ContainsFunc(list, func(r tokenRecord) bool { return r.Name == name }) {
			return nil, fmt.Errorf("there is a token %q: use another name, or revoke that one", name)
		}
		return append(list, tokenRecord{name, time.Now().UTC(), api.Token{Hash: api.Hash(token), Tenant: tenant, Scopes: scopes}}), nil
	})
}

// revoke removes a token.
func (l tokenList) revoke(ctx context.Context, name string) error {
	return l.update(ctx, func(list []tokenRecord) ([]tokenRecord, error) {
		rest := slices.DeleteFunc(slices.Clone(list), func(r tokenRecord) bool { return r.Name == name })
		if len(rest) == len(list) {
			return nil, fmt.Errorf("there is no token %q: see agent serve token list", name)
		}
		return rest, nil
	})
}

// first makes the token of the first start, or if there is no other; else it returns
// none.
func (l tokenList) first(ctx context.Context) (string, error) {
	if list, err := l.read(); len(list) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	token, err := l.add(ctx, firstToken, defaultTenant, allScopes())
	if err != nil {
		return "", err
	}
	file := remote.TokenFile(l.dir)
	return token, privatefile.Update(ctx, file, file+".lock", func([]byte) ([]byte, error) { return []byte(token + "\n"), nil })
}

// tokens returns the tokens for the API. Without any, none is right.
func (l tokenList) tokens() ([]api.Token, error) {
	list, err := l.read()
	tokens := []api.Token{{Hash: api.Hash(rand.Text()), Tenant: defaultTenant}}
	for _, r := range list {
		r.Token.Name = r.Name
		tokens = append(tokens, r.Token)
	}
	return tokens, err
}

// reloading gives the API the tokens of the list as it is now.
type reloading struct {
	http.Handler
	list tokenList
	log  *slog.Logger
	api  *api.API

	mu   sync.Mutex
	read fs.FileInfo // when the list was read; nil before
}

// ServeHTTP implements [http.Handler].
func (r *reloading) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if err := r.load(); err != nil {
		r.log.ErrorContext(req.Context(), "the tokens cannot be read, and no request is answered", "error", err)
		http.Error(w, `{"error":{"code":"failed","message":"the service cannot read its tokens: see its log"}}`, http.StatusInternalServerError)
		return
	}
	r.Handler.ServeHTTP(w, req)
}

// load reads the list if it has changed.
func (r *reloading) load() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(r.list.path())
	if err != nil {
		return err
	}
	if r.read != nil && os.SameFile(info, r.read) && info.ModTime().Equal(r.read.ModTime()) {
		return nil
	}
	tokens, err := r.list.tokens()
	if err == nil {
		err = r.api.SetTokens(tokens)
	}
	if err == nil {
		r.read = info
	}
	return err
}
