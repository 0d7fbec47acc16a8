package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/lazy"
)

// repository is the git repository of a workspace. It is read through git, with
// its programs turned off; only [repository.branch] writes it.
type repository struct{ top string }

// openRepository returns the repository that a directory belongs to, nil for none.
func openRepository(ctx context.Context, root string) (*repository, error) {
	for dir := root; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			return nil, nil
		}
	}
	r := &repository{top: root}
	out, err := r.git(ctx, nil, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	top, err := filepath.EvalSymlinks(filepath.FromSlash(strings.TrimSuffix(string(out), "\n")))
	if err != nil {
		return nil, err
	}
	if _, err := r.git(ctx, nil, "check-ignore", "-q", "."); err == nil {
		return nil, nil // a workspace that the repository around it does not care for
	}
	return &repository{top: top}, nil
}

// InGit reports whether worktrees of a workspace have what a git repository has, and
// not simply all files.
func InGit(ctx context.Context, root string) bool {
	r, err := openRepository(ctx, root)
	return err == nil && r != nil
}

// gitOptions keep git from running programs that a repository names.
var gitOptions = []string{
	"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "gc.auto=0", "-c", "maintenance.auto=false",
}

// command is a git command in the repository.
func (r *repository) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append(slices.Clone(gitOptions), args...)...)
	cmd.Dir = r.top
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "GIT_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(append(cmd.Env, "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"), env...)
	cmd.WaitDelay = time.Second
	return cmd
}

// git runs git in the repository.
func (r *repository) git(ctx context.Context, env []string, args ...string) ([]byte, error) {
	cmd := r.command(ctx, env, args...)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("it is a git repository, but git is not installed")
	case err != nil:
		first, _, _ := strings.Cut(strings.TrimSpace(failure.String()), "\n")
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, first)
	}
	return out, nil
}

// fields splits the output of an option -z.
func fields(out []byte) (all []string) {
	for field := range strings.SplitSeq(string(out), "\x00") {
		if field != "" {
			all = append(all, field)
		}
	}
	return all
}

// files lists the files that are tracked or not ignored.
func (r *repository) files(ctx context.Context) ([]string, error) {
	out, err := r.git(ctx, nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	list := fields(out)
	list = slices.DeleteFunc(list, func(name string) bool { return strings.HasSuffix(name, "/") }) // another repository
	slices.Sort(list)                                                                              // conflicts list a file several times
	return slices.Compact(list), nil
}

// forced lists the tracked files below a directory that git would ignore, relative
// to it.
func (r *repository) forced(ctx context.Context, dir string) ([]string, error) {
	at := &repository{top: filepath.Join(r.top, dir)}
	out, err := at.git(ctx, nil, "ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
	return fields(out), err
}

// clone makes a repository with the same branches and index in a directory with
// its files, and a new branch at the same commit. It borrows the objects.
func (r *repository) clone(ctx context.Context, to, name string) (commit, branch string, err error) {
	out, err := r.git(ctx, nil, "rev-parse", "--show-object-format", "--git-path", "objects", "--git-path", "index",
		"--git-path", "shallow", "--git-path", "info/exclude", "--git-path", "info/sparse-checkout")
	if err != nil {
		return "", "", err
	}
	paths := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(paths) != 6 {
		return "", "", fmt.Errorf("git rev-parse: unexpected output %q", out)
	}
	for i := range paths[1:] {
		if p := &paths[i+1]; !filepath.IsAbs(*p) {
			*p = filepath.Join(r.top, *p)
		}
	}
	mine := &repository{top: to}
	if _, err := mine.git(ctx, nil, "init", "-q", "--template=", "--object-format="+paths[0]); err != nil {
		return "", "", err
	}
	git := filepath.Join(to, ".git")
	if err := os.MkdirAll(filepath.Join(git, "info"), 0o755); err != nil {
		return "", "", err
	}
	for _, file := range [][2]string{{paths[3], "shallow"}, {paths[4], "info/exclude"}, {paths[5], "info/sparse-checkout"}, {paths[2], "index"}} {
		if err := copyFile(file[0], filepath.Join(git, file[1])); err != nil {
			return "", "", err
		}
	}
	shared, _ := filepath.Glob(filepath.Join(filepath.Dir(paths[2]), "sharedindex.*")) // cannot fail
	for _, file := range shared {
		if err := copyFile(file, filepath.Join(git, filepath.Base(file))); err != nil {
			return "", "", err
		}
	}
	if err := os.WriteFile(filepath.Join(git, "objects", "info", "alternates"), []byte(paths[1]+"\n"), 0o644); err != nil {
		return "", "", err
	}
	if commit, branch, err = r.copyRefs(ctx, git, name); err != nil {
		return "", "", err
	}
	if err := r.copyConfig(ctx, git); err != nil {
		return "", "", err
	}
	_, _ = mine.git(ctx, []string{"GIT_OPTIONAL_LOCKS=1"}, "update-index", "-q", "--refresh") // fails if there are changes
	return commit, branch, nil
}

// copyRefs writes the branches and tags, and the new branch.
func (r *repository) copyRefs(ctx context.Context, git, name string) (commit, branch string, err error) {
	out, err := r.git(ctx, nil, "for-each-ref", "--format=%(objectname) %(refname) %(symref)")
	if err != nil {
		return "", "", err
	}
	head, err := r.git(ctx, nil, "rev-parse", "--verify", "-q", "HEAD")
	if err == nil {
		commit = strings.TrimSpace(string(head))
	}
	branch = "agent/" + name
	refs := "# pack-refs with: \n"
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		id, rest, _ := strings.Cut(line, " ")
		ref, symbolic, _ := strings.Cut(rest, " ")
		if ref == "refs/heads/agent" {
			branch = "agent-" + name
		}
		if symbolic == "" && ref != "refs/stash" {
			refs += id + " " + ref + "\n"
		}
	}
	if err := os.WriteFile(filepath.Join(git, "packed-refs"), []byte(refs), 0o644); err != nil {
		return "", "", err
	}
	if err := os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/"+branch+"\n"), 0o644); err != nil || commit == "" {
		return "", branch, err
	}
	file := filepath.Join(git, "refs", "heads", filepath.FromSlash(branch))
	err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(commit+"\n"), 0o644))
	return commit, branch, err
}

// copied are the settings of a repository that a worktree has, too: those that
// name no program.
var copied = lazy.Regexp(`^(core\.(autocrlf|eol|safecrlf|filemode|ignorecase|symlinks|precomposeunicode|longpaths|sparsecheckout|sparsecheckoutcone|splitindex)|` +
	`user\.(name|email)|index\.sparse|init\.defaultbranch|remote\..+\.(url|fetch|promisor|partialclonefilter)|branch\..+\.(remote|merge))$`)

var password = lazy.Regexp(`^(\w+://)[^/@]*@`)

// copyConfig copies settings.
func (r *repository) copyConfig(ctx context.Context, git string) error {
	out, err := r.git(ctx, nil, "config", "--local", "--null", "--list")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(git, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	for _, entry := range fields(out) {
		key, value, _ := strings.Cut(entry, "\n")
		if !copied().MatchString(key) {
			continue
		}
		first, last := strings.Index(key, "."), strings.LastIndex(key, ".")
		section := "[" + key[:first] + "]"
		if first < last {
			section = fmt.Sprintf("[%s \"%s\"]", key[:first], quote.Replace(key[first+1:last]))
		}
		if key[last:] == ".url" {
			value = password().ReplaceAllString(value, "$1")
		}
		if _, err := fmt.Fprintf(file, "%s\n\t%s = \"%s\"\n", section, key[last+1:], quote.Replace(value)); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a small file, if it exists.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// copyIndex returns a temporary copy of an index with its time: from that git tells
// which files may have changed in the second after they were added. Without the
// index there is no copy.
func copyIndex(from string) (path string, err error) {
	temp, err := os.CreateTemp("", "agent-index-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) { // nothing was ever added
		return temp.Name(), errors.Join(temp.Close(), os.Remove(temp.Name()))
	}
	if err != nil {
		return "", errors.Join(err, temp.Close())
	}
	data, err := os.ReadFile(from)
	if err == nil {
		_, err = temp.Write(data)
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return "", err
	}
	return temp.Name(), os.Chtimes(temp.Name(), info.ModTime(), info.ModTime())
}

// branch makes a branch of the state of a worktree, in the user's repository: its
// commits, and one more if there are other changes. The user's index and working
// tree are not touched.
func (r *repository) branch(ctx context.Context, tree, name, message string) (commit string, err error) {
	if _, err := r.git(ctx, nil, "check-ref-format", "--branch", name); err != nil {
		return "", fmt.Errorf("invalid name of a branch: %q", name)
	}
	ref := "refs/heads/" + name
	if _, err := r.git(ctx, nil, "rev-parse", "--verify", "-q", ref); err == nil {
		return "", fmt.Errorf("there is a branch %s already: give another name", name)
	}
	git := filepath.Join(tree, ".git")
	index, err := copyIndex(filepath.Join(git, "index"))
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(index) }()
	env := []string{"GIT_INDEX_FILE=" + index, "GIT_WORK_TREE=" + tree, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strconv.Quote(filepath.Join(git, "objects"))}
	head := ""
	if out, err := (&repository{top: tree}).git(ctx, nil, "rev-parse", "--verify", "-q", "HEAD"); err == nil {
		head = strings.TrimSpace(string(out))
	}
	if commit, err = r.commit(ctx, env, head, message); err != nil {
		return "", err
	}
	if err := r.fetch(ctx, env, commit); err != nil {
		return "", err
	}
	_, err = r.git(ctx, nil, "update-ref", "-m", "agent: kept a worktree", ref, commit, "")
	return commit, err
}

// commit makes a commit of the files in env's working tree, unless that of head has
// the same.
func (r *repository) commit(ctx context.Context, env []string, head, message string) (string, error) {
	gitDir, err := r.git(ctx, nil, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return "", err
	}
	env = append(slices.Clip(env), "GIT_DIR="+strings.TrimSpace(string(gitDir)))
	work := &repository{top: strings.TrimPrefix(env[1], "GIT_WORK_TREE=")}
	if _, err := work.git(ctx, env, "add", "--all", "--", "."); err != nil {
		return "", err
	}
	out, err := work.git(ctx, env, "write-tree")
	if err != nil {
		return "", err
	}
	tree, args := strings.TrimSpace(string(out)), []string{"commit-tree"}
	if head != "" {
		same, err := r.git(ctx, env, "rev-parse", head+"^{tree}")
		if err == nil && strings.TrimSpace(string(same)) == tree {
			return head, nil
		}
		args = append(args, "-p", head)
	}
	if _, err := r.git(ctx, nil, "var", "GIT_COMMITTER_IDENT"); err != nil {
		env = append(env, "GIT_AUTHOR_NAME=agent", "GIT_AUTHOR_EMAIL=agent@localhost", "GIT_COMMITTER_NAME=agent", "GIT_COMMITTER_EMAIL=agent@localhost")
	}
	out, err = r.git(ctx, env, append(args, "-m", message, tree)...)
	return strings.TrimSpace(string(out)), err
}

// fetch copies what a commit needs into the repository.
func (r *repository) fetch(ctx context.Context, env []string, commit string) error {
	has, err := r.git(ctx, nil, "for-each-ref", "--format=^%(objectname)")
	if err != nil {
		return err
	}
	pack := r.command(ctx, env, "pack-objects", "--revs", "--stdout", "-q")
	pack.Stdin = strings.NewReader(commit + "\n" + string(has))
	store := r.command(ctx, nil, "unpack-objects", "-q")
	var failures [2]bytes.Buffer
	pack.Stderr, store.Stderr = &failures[0], &failures[1]
	if store.Stdin, err = pack.StdoutPipe(); err != nil {
		return err
	}
	if err := pack.Start(); err != nil {
		return err
	}
	storeErr := store.Run()
	if err := errors.Join(pack.Wait(), storeErr); err != nil {
		return fmt.Errorf("copy the commit: %w: %s%s", err, failures[0].String(), failures[1].String())
	}
	return nil
}
