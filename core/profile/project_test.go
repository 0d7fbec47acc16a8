package profile_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/goldentest"
	"github.com/seed-009c0928/agent/core/profile"
)

func mustNew(t testing.TB, name string, opts profile.Options) core.Profile {
	t.Helper()
	p, err := profile.New(name, "", "", opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func promptIn(t testing.TB, name string, where core.Environment) string {
	t.Helper()
	text, err := mustNew(t, name, profile.Options{}).Prompt(t.Context(), core.PromptRequest{Env: where.Info(), Environment: where})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestPromptGolden: each profile's prompt, with every layer (9.2, 9.8).
func TestPromptGolden(t *testing.T) {
	t.Parallel()
	where := env.NewMemory("/home/ann/shop", map[string]string{
		"AGENTS.md": "Run make test.\n", "CLAUDE.md": "For Claude.\n", "GEMINI.md": "For Gemini.\n", ".codex/instructions.md": "For Codex.\n",
	})
	facts := func(provider, model string) profile.Facts {
		return profile.Facts{Name: "Model One", Cutoff: "2026-01", ContextWindow: 200_000}
	}
	for _, name := range profile.Names() {
		req := request()
		req.Environment = where
		p := mustNew(t, name, profile.Options{Facts: facts})
		got, err := p.Prompt(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		goldentest.Check(t, "testdata/"+name+"-project.golden", []byte(got))
		if p.ContextWindow != 200_000 || p.Name != name {
			t.Errorf("profile %+v", p)
		}
		if wanted := map[string]time.Duration{"anthropic": 120 * time.Second}[name]; p.CommandTimeout != wanted {
			t.Errorf("%s: time-out %s, want %s", name, p.CommandTimeout, wanted)
		}
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ provider, model, want string }{
		{"openai", "gpt-5-mini", "openai"},
		{"openai", "", "openai"},
		{"azure", "gpt-5.2-codex", "openai"},
		{"azure", "my-deployment", "default"},
		{"github", "openai/gpt-4o-mini", "openai"},
		{"github", "anthropic/claude-sonnet-4-5", "anthropic"},
		{"anthropic", "claude-opus-4-6", "anthropic"},
		{"anthropic", "new-model", "anthropic"},
		{"gemini", "gemini-3-pro", "gemini"},
		{"local", "llama3.3:latest", "default"},
		{"local", "gpt-oss:20b", "default"},
		{"local", "o3-like", "openai"},
	} {
		if got := profile.For(tt.provider, tt.model); got != tt.want {
			t.Errorf("For(%q, %q) = %q, want %q", tt.provider, tt.model, got, tt.want)
		}
	}
	if _, err := profile.New("opnai", "", "", profile.Options{}); err == nil || !strings.Contains(err.Error(), "default, openai, anthropic, gemini") {
		t.Errorf("an unknown profile: %v", err)
	}
}

// documentsOf lists the documents of a prompt as path=text.
func documentsOf(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, "<project_instructions path=\"") {
		if path, rest, ok := strings.Cut(part, "\">\n"); ok {
			body, _, _ := strings.Cut(rest, "\n</project_instructions>")
			out = append(out, path+"="+body)
		}
	}
	return out
}

// TestDocuments: the documents of the profile, from the top of the repository
// down (6.5, 9.8).
func TestDocuments(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("AGENTS.md", "\xef\xbb\xbftop\r\n")
	write("CLAUDE.md", "top for claude")
	write("a/AGENTS.md", "of a")
	write("a/b/AGENTS.md", "of b")
	write("a/b/CLAUDE.md", "of b") // the same
	write("a/b/GEMINI.md", "not for claude")
	write("a/b/c/AGENTS.md", "below the working directory")
	where := localAt(t, dir)
	if got, want := documentsOf(promptIn(t, "anthropic", where)), []string{"AGENTS.md=of b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("outside a repository: %q, want %q", got, want)
	}
	write(".git/HEAD", "ref: refs/heads/feature/x\n")
	want := []string{"../../AGENTS.md=top", "../../CLAUDE.md=top for claude", "../AGENTS.md=of a", "AGENTS.md=of b"}
	if got := documentsOf(promptIn(t, "anthropic", where)); !reflect.DeepEqual(got, want) {
		t.Errorf("in a repository: %q, want %q", got, want)
	}
	if text := promptIn(t, "anthropic", where); !strings.Contains(text, "Is git repository: true\nGit branch: feature/x\n") {
		t.Errorf("no branch in\n%s", text)
	}
	if runtime.GOOS == "windows" {
		return // creating links needs a privilege
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("do not read"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"a/GEMINI.md": outside, "GEMINI.md": "CLAUDE.md"} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	want = []string{"../../AGENTS.md=top", "../../GEMINI.md=top for claude", "../AGENTS.md=of a", "AGENTS.md=of b", "GEMINI.md=not for claude"}
	if got := documentsOf(promptIn(t, "gemini", where)); !reflect.DeepEqual(got, want) {
		t.Errorf("with links: %q, want %q", got, want)
	}
}

// TestDocumentsAreBounded: at most 32 KB in total, with a note if truncated.
func TestDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	where := env.NewMemory("/w", map[string]string{"AGENTS.md": strings.Repeat("é", 15<<10), "CLAUDE.md": strings.Repeat("x", 10<<10) + "end"})
	docs := documentsOf(promptIn(t, "anthropic", where))
	if len(docs) != 2 || !strings.HasSuffix(docs[1], "xxx\n[Project instructions truncated at 32KB]") || strings.Contains(docs[0], "truncated") {
		t.Fatalf("%d documents: …%q", len(docs), docs[len(docs)-1][max(0, len(docs[len(docs)-1])-60):])
	}
	if n := len(docs[0]) + len(docs[1]); n > 32<<10+100 || n < 32<<10-100 {
		t.Errorf("%d bytes together", n)
	}
	where = env.NewMemory("/w", map[string]string{"AGENTS.md": "a" + strings.Repeat("é", 20<<10)})
	if doc := documentsOf(promptIn(t, "default", where))[0]; !strings.HasSuffix(doc, "éé\n[Project instructions truncated at 32KB]") {
		t.Errorf("a character is cut: …%q", doc[len(doc)-60:])
	}
}

func localAt(t testing.TB, dir string) core.Environment {
	t.Helper()
	where, err := env.NewLocal(env.LocalOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = where.Close() })
	return where
}

// repo creates a repository with a commit and returns its directory.
func repo(t testing.TB) (dir string, git func(args ...string)) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir = t.TempDir()
	git = func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "trunk")
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "-qm", "First steps\n\nbody")
	return dir, git
}

// TestUncommitted: a change, or a file that is not tracked; none outside a repository.
func TestUncommitted(t *testing.T) {
	t.Parallel()
	dir, git := repo(t)
	where := localAt(t, dir)
	if profile.Uncommitted(t.Context(), where) {
		t.Error("a clean repository has changes")
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !profile.Uncommitted(t.Context(), where) {
		t.Error("a new file is no change")
	}
	git("add", ".")
	git("commit", "-qm", "More")
	if profile.Uncommitted(t.Context(), where) {
		t.Error("a commit leaves changes")
	}
	if profile.Uncommitted(t.Context(), localAt(t, t.TempDir())) {
		t.Error("a directory without a repository has changes")
	}
}

// TestGitSnapshot is 6.4: branch, counts, last commits.
func TestGitSnapshot(t *testing.T) {
	t.Parallel()
	dir, git := repo(t)
	git("commit", "-q", "--allow-empty", "-m", "Second \x1b[2Jsteps "+strings.Repeat("x", 200))
	for name, text := range map[string]string{"a.txt": "two\n", "new one": "", "new two": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := promptIn(t, "default", localAt(t, dir))
	_, after, ok := strings.Cut(text, "<git>\n")
	block, _, _ := strings.Cut(after, "</git>")
	if !ok || !strings.Contains(text, "Git branch: trunk\n") || !strings.Contains(block, "Changed files: 1\nUntracked: 2\nLast commits:\n") || !strings.Contains(block, " First steps\n") {
		t.Errorf("the prompt says\n%s", text)
	}
	for l := range strings.SplitSeq(block, "\n") {
		if strings.ContainsRune(l, 0x1b) || len([]rune(l)) > 110 {
			t.Errorf("the line %q", l)
		}
	}
	// A worktree is a repository too.
	tree := filepath.Join(t.TempDir(), "tree")
	git("worktree", "add", "-q", "-b", "side", tree)
	if text := promptIn(t, "default", localAt(t, tree)); !strings.Contains(text, "Git branch: side\n") || !strings.Contains(text, "Changed files: 0\n") {
		t.Errorf("in a worktree the prompt says\n%s", text)
	}
	git("checkout", "-q", "--detach")
	if text := promptIn(t, "default", localAt(t, dir)); !strings.Contains(text, "Is git repository: true\nPlatform") && strings.Contains(text, "Git branch") {
		t.Errorf("without a branch the prompt says\n%s", text)
	}
	if text := promptIn(t, "default", localAt(t, t.TempDir())); !strings.Contains(text, "Is git repository: false\n") || strings.Contains(text, "<git>") {
		t.Errorf("outside a repository the prompt says\n%s", text)
	}
}

// TestGitRunsNothing: git is not run in a repository whose configuration names
// programs. The first half shows that git would run them.
func TestGitRunsNothing(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	for name, config := range map[string][]string{
		"a monitor":         {"config", "core.fsmonitor", "PROGRAM"},
		"a filter":          {"config", "filter.evil.clean", "PROGRAM"},
		"an included file":  {"config", "include.path", "evil-config"},
		"a signature check": {"config", "gpg.program", "PROGRAM"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, git := repo(t)
			marker, program := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "program")
			if err := os.WriteFile(program, []byte("#!/bin/sh\ntouch '"+marker+"'\ncat\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			args := slices.Clone(config)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "PROGRAM", program)
			}
			git(args...)
			if config[1] == "filter.evil.clean" {
				if err := os.WriteFile(filepath.Join(dir, ".gitattributes"), []byte("* filter=evil\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("two\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if config[1] == "core.fsmonitor" || config[1] == "filter.evil.clean" {
				git("status")
				if err := os.Remove(marker); err != nil {
					t.Fatalf("git does not run the program, so the test proves nothing: %v", err)
				}
			}
			text := promptIn(t, "default", localAt(t, dir))
			if _, err := os.Stat(marker); err == nil {
				t.Error("the program ran")
			}
			if strings.Contains(text, "<git>") || !strings.Contains(text, "Git branch: trunk\n") {
				t.Errorf("the prompt says\n%s", text)
			}
		})
	}
}

// BenchmarkPromptGit makes the prompt in a repository, with the state that git tells.
func BenchmarkPromptGit(b *testing.B) {
	dir, _ := repo(b)
	where := localAt(b, dir)
	p := mustNew(b, "anthropic", profile.Options{})
	for b.Loop() {
		if _, err := p.Prompt(context.Background(), core.PromptRequest{Env: where.Info(), Environment: where}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPrompt(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte(strings.Repeat("Run make test.\n", 500)), 0o600); err != nil {
		b.Fatal(err)
	}
	where := localAt(b, dir)
	p := mustNew(b, "anthropic", profile.Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Prompt(context.Background(), core.PromptRequest{Env: where.Info(), Environment: where}); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleNew() {
	name := profile.For("anthropic", "claude-sonnet-4-5")
	p, err := profile.New(name, "anthropic", "claude-sonnet-4-5", profile.Options{Append: "Answer in French."})
	if err != nil {
		fmt.Println(err)
		return
	}
	patch := core.ToolDefinition{Name: "apply_patch", Profiles: []string{profile.NameOpenAI}}
	fmt.Println(p.Name, p.CommandTimeout, profile.HasTool(name, patch))
	// Output: anthropic 2m0s false
}
