package skills

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// Bounds of a fetch.
const (
	maxDownload  = 100 << 20 // bytes
	fetchTimeout = 5 * time.Minute
	maxGitError  = 8 << 10 // bytes of git's stderr in an error
)

// fetched is a source, unpacked in a private directory.
type fetched struct {
	origin Origin
	stage  *bundle.Stage
	commit string // of a repository
	tag    bool   // the ref is a tag
	// leftOut are links and the like, relative to the stage.
	leftOut []bundle.RefusedError
}

// fetch unpacks a source into a stage of the store. The caller closes the stage.
func (in *Installer) fetch(ctx context.Context, o Origin, commit string) (_ *fetched, err error) {
	stage, err := in.store.Stage(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stage.Close())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	f := &fetched{origin: o, stage: stage}
	switch o.Kind {
	case SourceFolder:
		err = stage.AddFolder(ctx, o.Location)
	case SourceArchive:
		err = in.archive(ctx, f)
	case SourceGit:
		err = in.git(ctx, f, commit)
	case SourceWellKnown:
		err = in.wellKnown(ctx, f)
	default:
		err = fmt.Errorf("unknown kind of source %q", o.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o, err)
	}
	f.leftOut = append(f.leftOut, stage.Refused()...)
	return f, nil
}

// Fetch unpacks a folder, an archive or a repository into a stage and selects its
// path. Of a repository it returns the commit, which must be the wanted one if that is
// not empty. Nil means [http.DefaultClient].
func Fetch(ctx context.Context, stage *bundle.Stage, o Origin, want string, client *http.Client) (commit string, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	in := &Installer{client: cmp.Or(client, http.DefaultClient)}
	f := &fetched{origin: o, stage: stage}
	switch o.Kind {
	case SourceFolder:
		err = stage.AddFolder(ctx, o.Location)
	case SourceArchive:
		err = in.archive(ctx, f)
	case SourceGit:
		if err = in.git(ctx, f, want); err == nil && want != "" && f.commit != want {
			err = fmt.Errorf("the commit is %s, expected %s", f.commit, want)
		}
	default:
		err = fmt.Errorf("unknown kind of source %q", o.Kind)
	}
	if err == nil && o.Path != "" {
		err = stage.Select(o.Path)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", o, err)
	}
	return f.commit, nil
}

// Download fetches a URL to a temporary file, which the caller removes. Integrity is
// what its content must have, as sha512-BASE64 (or sha256, sha384); empty is not
// checked.
func Download(ctx context.Context, client *http.Client, address, integrity string) (file string, err error) {
	in := &Installer{client: cmp.Or(client, http.DefaultClient)}
	file, _, err = in.download(ctx, address)
	if err != nil || integrity == "" {
		return file, err
	}
	data, err := os.ReadFile(file)
	if err == nil {
		err = checkIntegrity(data, integrity)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", address, err), os.Remove(file))
	}
	return file, nil
}

// checkIntegrity compares content with a list of hashes of Subresource Integrity.
func checkIntegrity(data []byte, integrity string) error {
	for one := range strings.FieldsSeq(integrity) {
		name, want, _ := strings.Cut(one, "-")
		var sum []byte
		switch name {
		case "sha512":
			h := sha512.Sum512(data)
			sum = h[:]
		case "sha384":
			h := sha512.Sum384(data)
			sum = h[:]
		case "sha256":
			h := sha256.Sum256(data)
			sum = h[:]
		default:
			continue
		}
		if got := base64.StdEncoding.EncodeToString(sum); got != want {
			return fmt.Errorf("its content has the hash %s-%s, expected %s", name, got, one)
		}
		return nil
	}
	return fmt.Errorf("unknown kind of hash %q: expected sha512, sha384 or sha256", cut(integrity, 80))
}

// archive unpacks an archive from disk or a URL.
func (in *Installer) archive(ctx context.Context, f *fetched) error {
	file := f.origin.Location
	if strings.Contains(file, "://") {
		temp, _, err := in.download(ctx, file)
		if err != nil {
			return err
		}
		defer os.Remove(temp)
		file = temp
	}
	if err := f.stage.AddArchive(ctx, file); err != nil {
		return err
	}
	return f.stage.Unwrap()
}

// download fetches a URL to a temporary file, which the caller removes, and
// returns its SHA-256 in hex.
func (in *Installer) download(ctx context.Context, address string) (file, sum string, err error) {
	body, err := in.get(ctx, address)
	if err != nil {
		return "", "", err
	}
	defer body.Close()
	temp, err := os.CreateTemp("", "agent-skill-*")
	if err != nil {
		return "", "", err
	}
	defer func() {
		if err = errors.Join(err, temp.Close()); err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(temp, hash), io.LimitReader(body, maxDownload+1))
	if err == nil && n > maxDownload {
		err = fmt.Errorf("larger than %d MiB", maxDownload>>20)
	}
	return temp.Name(), hex.EncodeToString(hash.Sum(nil)), err
}

// get opens a URL. Redirects must stay on https, except to this machine.
func (in *Installer) get(ctx context.Context, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	client := *in.client
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) > 5:
			return errors.New("too many redirects")
		case next.URL.Scheme != "https" && !loopback(next.URL.Hostname()):
			return fmt.Errorf("refusing the redirect to %s, which is not encrypted", next.URL.Redacted())
		}
		return nil
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%s: the server responded %s", address, resp.Status)
	}
	return resp.Body, nil
}

// discovery is the index of a site's skills, version 0.2.0 of Agent Skills
// Discovery via Well-Known URIs
// (https://github.com/cloudflare/agent-skills-discovery-rfc).
type discovery struct {
	Skills []struct {
		Name   string `json:"name"`
		Type   string `json:"type"` // skill-md or archive
		URL    string `json:"url"`  // relative to the index
		Digest string `json:"digest"`
	} `json:"skills"`
}

// wellKnown fetches the skills that a site publishes, each into a folder named
// after it, or only the one named by the path.
func (in *Installer) wellKnown(ctx context.Context, f *fetched) error {
	index := f.origin.Location
	if !strings.HasSuffix(index, ".json") {
		index = strings.TrimSuffix(index, "/.well-known/agent-skills") + "/.well-known/agent-skills/index.json"
	}
	body, err := in.get(ctx, index)
	if err != nil {
		return err
	}
	defer body.Close()
	var list discovery
	if err := json.NewDecoder(io.LimitReader(body, maxFile)).Decode(&list); err != nil {
		return fmt.Errorf("%s is not a skill index: %w", index, err)
	}
	base, err := url.Parse(index)
	if err != nil {
		return err
	}
	found := 0
	for _, s := range list.Skills {
		if f.origin.Path != "" && s.Name != f.origin.Path {
			continue
		}
		if s.Name == "" || CleanName(s.Name) != s.Name {
			return fmt.Errorf("%s: invalid skill name %q", index, cut(s.Name, 80))
		}
		if found++; found > maxFolders {
			return fmt.Errorf("%s lists more than %d skills", index, maxFolders)
		}
		at, err := base.Parse(s.URL)
		if err != nil {
			return fmt.Errorf("%s: skill %s: %w", index, s.Name, err)
		}
		if err := in.published(ctx, f, s.Name, s.Type, at.String(), s.Digest); err != nil {
			return fmt.Errorf("skill %s: %w", s.Name, err)
		}
	}
	if found == 0 {
		return fmt.Errorf("%s does not list a skill %q", index, f.origin.Path)
	}
	return nil
}

// published adds one published skill to the stage if its digest matches the
// index.
func (in *Installer) published(ctx context.Context, f *fetched, name, kind, address, digest string) error {
	file, sum, err := in.download(ctx, address)
	if err != nil {
		return err
	}
	defer os.Remove(file)
	if want, ok := strings.CutPrefix(digest, "sha256:"); !ok || !strings.EqualFold(want, sum) {
		return fmt.Errorf("%s has digest sha256:%s, but the index lists %q", address, sum, cut(digest, 80))
	}
	folder := filepath.Join(f.stage.Dir(), name)
	switch kind {
	case "skill-md":
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(folder, "SKILL.md"), data, 0o644)
	case "archive":
		inner, err := in.store.Stage(ctx)
		if err != nil {
			return err
		}
		defer inner.Close()
		if err := inner.AddArchive(ctx, file); err != nil {
			return err
		}
		if err := inner.Unwrap(); err != nil {
			return err
		}
		if _, err := inner.Tree(ctx); err != nil {
			return err
		}
		for _, r := range inner.Refused() {
			if rel, err := filepath.Rel(inner.Root(), filepath.Join(inner.Dir(), filepath.FromSlash(r.Path))); err == nil && filepath.IsLocal(rel) {
				f.leftOut = append(f.leftOut, bundle.RefusedError{Path: path.Join(name, filepath.ToSlash(rel)), Reason: r.Reason})
			}
		}
		return os.CopyFS(folder, os.DirFS(inner.Root()))
	}
	return fmt.Errorf("unsupported type %q", cut(kind, 40))
}

var commitHash = lazy.Regexp(`^[0-9a-f]{40}$`)

// git fetches a repository with the git program: go-git would add seven
// megabytes and not know the user's credentials. Nothing is checked out: the
// files are those of the commit, byte for byte, without hooks, submodules, and
// the filters, attributes and line endings that the user's settings ask for. A
// commit takes precedence over the ref.
func (in *Installer) git(ctx context.Context, f *fetched, commit string) error {
	program, err := exec.LookPath("git")
	if err != nil {
		return fmt.Errorf("this source requires git, which is not in PATH: %w", err)
	}
	sandbox.SweepTempDirs()
	temp, err := sandbox.NewTempDir()
	if err != nil {
		return err
	}
	defer temp.Remove()
	dir := temp.Path
	run := func(args ...string) (string, error) { return runGit(ctx, program, dir, "", args...) }
	if _, err := run("init", "--quiet"); err != nil {
		return err
	}
	want := commit
	if want == "" {
		want = f.origin.Ref
	}
	if want == "" {
		want = "HEAD"
	}
	_, err = run("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", f.origin.Location, want)
	if err != nil && commit != "" && f.origin.Ref != "" { // some servers do not serve commits
		_, err = run("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", f.origin.Location, f.origin.Ref)
	}
	if err != nil {
		return err
	}
	head, err := run("rev-parse", "--verify", "FETCH_HEAD^{commit}")
	if err != nil {
		return err
	}
	if f.commit = strings.TrimSpace(head); !commitHash().MatchString(f.commit) {
		return fmt.Errorf("git returned an invalid commit %q", cut(f.commit, 80))
	}
	fetchHead, err := os.ReadFile(filepath.Join(dir, ".git", "FETCH_HEAD"))
	f.tag = err == nil && bytes.Contains(fetchHead, []byte("\ttag '"))
	list := []string{"ls-tree", "-r", "-z", "--full-tree", "--long", f.commit}
	if f.origin.Path != "" {
		list = append(list, "--", f.origin.Path+"/")
	}
	text, err := run(list...)
	if err != nil || text == "" {
		return err
	}
	files, ids, err := gitFiles(text)
	if err != nil {
		return err
	}
	contents, err := runGit(ctx, program, dir, ids, "cat-file", "--batch")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "files.tar")
	if err := writeTar(file, files, contents); err != nil {
		return err
	}
	return f.stage.AddArchive(ctx, file)
}

// gitFiles reads the output of git ls-tree. Ids are the objects of the regular
// files, one per line.
func gitFiles(list string) (files []*tar.Header, ids string, err error) {
	total := int64(0)
	for line := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		info, name, _ := strings.Cut(line, "\t")
		fields := strings.Fields(info) // mode, type, object, size
		if len(fields) != 4 {
			return nil, "", fmt.Errorf("git ls-tree: unexpected line %q", cut(line, 200))
		}
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Format: tar.FormatPAX}
		switch {
		case fields[0] == "120000":
			h.Typeflag, h.Linkname = tar.TypeSymlink, "."
		case fields[1] != "blob": // a submodule
			h.Typeflag = tar.TypeFifo
		default:
			if h.Size, err = strconv.ParseInt(fields[3], 10, 64); err != nil {
				return nil, "", fmt.Errorf("git ls-tree: %w", err)
			}
			if total += h.Size; total > skillLimits.Bytes {
				return nil, "", fmt.Errorf("the files have more than %d MiB: name a folder of the repository", skillLimits.Bytes>>20)
			}
			if fields[0] == "100755" {
				h.Mode = 0o755
			}
			ids += fields[2] + "\n"
		}
		files = append(files, h)
	}
	return files, ids, nil
}

// writeTar writes an archive of files with the contents that git cat-file printed.
func writeTar(file string, files []*tar.Header, contents string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	packed := tar.NewWriter(out)
	defer func() { err = errors.Join(err, packed.Close(), out.Close()) }()
	for _, h := range files {
		content := ""
		if h.Typeflag == tar.TypeReg {
			head, rest, _ := strings.Cut(contents, "\n")
			if !strings.HasSuffix(head, fmt.Sprintf(" blob %d", h.Size)) || int64(len(rest)) <= h.Size {
				return fmt.Errorf("git cat-file: unexpected answer %q for %s", cut(head, 200), h.Name)
			}
			content, contents = rest[:h.Size], rest[h.Size+1:]
		}
		if err := packed.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		if _, err := io.WriteString(packed, content); err != nil {
			return err
		}
	}
	return nil
}

// runGit runs git without prompts, hooks or unusual transports.
func runGit(ctx context.Context, program, dir, stdin string, args ...string) (string, error) {
	all := append([]string{
		"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never", "-c", "gc.auto=0",
		"-c", "init.defaultBranch=main", "-C", dir,
	}, args...)
	cmd := exec.CommandContext(ctx, program, all...)
	cmd.Env = append(withoutGit(os.Environ()), "GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never", "LC_ALL=C")
	cmd.WaitDelay, cmd.Stdin = 2*time.Second, strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		message := stderr.Bytes()
		text, _ := visible(strings.TrimSpace(strings.ToValidUTF8(string(message[:min(len(message), maxGitError)]), "")))
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, text)
	}
	return stdout.String(), nil
}

// withoutGit removes variables that redirect git to another repository, such as
// those set within a hook.
func withoutGit(environ []string) []string {
	var out []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT":
		default:
			out = append(out, e)
		}
	}
	return out
}
