package workspace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// cloneWithin is how long a repository may take.
const cloneWithin = 10 * time.Minute

// gitOptions keep git from running programs, and from following what a server says.
var gitOptions = []string{
	"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "gc.auto=0", "-c", "maintenance.auto=false",
	"-c", "credential.helper=", "-c", "http.followRedirects=false", "-c", "fetch.recurseSubmodules=false",
	"-c", "transfer.fsckObjects=true", "-c", "protocol.version=2", "-c", "advice.detachedHead=false",
}

// clone fetches a revision of a repository into dir. What an interrupted one left there
// goes first.
func (r *Root) clone(ctx context.Context, dir string, s Spec) error {
	ctx, cancel := context.WithTimeout(ctx, cloneWithin)
	defer cancel()
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	env, secrets, err := r.credentials(ctx, s.Git)
	if err != nil {
		return fmt.Errorf("credentials for %s: %w", s.Git, err)
	}
	// The address is no remote of the repository, and credentials reach the fetch alone.
	for _, step := range []struct {
		env  []string
		args []string
	}{
		{nil, []string{"init", "--quiet", "--template=", "."}},
		{env, []string{"fetch", "--quiet", "--depth=1", "--no-tags", "--end-of-options", s.Git, cmp.Or(s.Revision, "HEAD")}},
		{nil, []string{"checkout", "--quiet", "--detach", "FETCH_HEAD"}},
	} {
		if err := r.git(ctx, dir, step.env, step.args...); err != nil {
			text := err.Error()
			for _, secret := range secrets {
				text = strings.ReplaceAll(text, secret, "…")
			}
			return fmt.Errorf("fetch %s at %s: %s", s.Git, cmp.Or(s.Revision, "HEAD"), text)
		}
	}
	return nil
}

// credentials returns the environment with which git reaches an address.
func (r *Root) credentials(ctx context.Context, address string) (env, secrets []string, err error) {
	if r.opts.Credentials == nil {
		return nil, nil, nil
	}
	user, password, err := r.opts.Credentials(ctx, address)
	if err != nil || user == "" && password == "" {
		return nil, nil, err
	}
	basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	for _, secret := range []string{basic, password} {
		if secret != "" {
			secrets = append(secrets, secret)
		}
	}
	return []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http." + address + ".extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic " + basic}, secrets, nil
}

// git runs git with nothing of this process' environment but where programs are.
func (r *Root) git(ctx context.Context, dir string, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append(append([]string{}, gitOptions...), args...)...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append([]string{
		"HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=",
		"GIT_ALLOW_PROTOCOL=" + strings.Join(r.opts.Schemes, ":"), "GIT_SSH_COMMAND=ssh -o BatchMode=yes", "LC_ALL=C",
	}, env...)
	for _, name := range []string{"PATH", "SYSTEMROOT", "TEMP", "TMP", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSH_AUTH_SOCK"} {
		if value, set := os.LookupEnv(name); set {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	var failure bytes.Buffer
	cmd.Stderr = &failure
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("git is not installed on this machine")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(failure.String()), "\n")
	return fmt.Errorf("git %s: %w: %.300s", args[0], err, first)
}
