//go:build unix

package permissions_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLossOfHistory: commands of git that discard what no file and no other reference
// holds ask, and say what.
func TestLossOfHistory(t *testing.T) {
	m := workspaceMode(t)
	for _, line := range []string{
		"git init -qb main && git config user.name a && git config user.email a@example.test && echo 1 > f && git add f && git commit -qm 1",
		"git switch -qc side && git commit -q --allow-empty -m 2 && git commit -q --allow-empty -m 3 && git switch -q main && git branch same && git tag -a -m x v1 side~1 && git tag main-tag && git pack-refs --all",
		"git branch loose side~1 && echo 2 > f && git stash -q && echo 3 > f && git stash -q && git worktree add -q wt side && echo x > wt/work",
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir = m.ws
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("%s: %v: %s", line, err, out)
		}
	}
	for line, want := range map[string]string{
		"git stash list": "", "git stash push": "", "git stash pop": "", "git branch -d same": "", "git branch -D same": "", "git tag -d main-tag": "", "git branch new": "", "git gc": "", "git gc --auto": "", "git prune -n": "", "git reflog": "", "git reflog expire -n --all": "",
		"git worktree remove wt": "", "git push": "", "git push origin main": "", "git branch -D missing": "", "git commit --amend": "", "git branch --list -v": "", "git tag -l": "", "git tag v2": "",
		"git stash drop": "a stash (of 2)", "git stash drop stash@{1}": "a stash (of 2)", "git stash clear": "all stashes (2)", "git -C . stash clear": "all stashes (2)", "cd wt && git stash clear": "all stashes (2)",
		"git branch -D side": "the branch side (at ", "git branch -D same side": "2 commits were made on it", "git branch --delete --force side": "side", "git branch -df side": "side", "git branch -D loose side": "loose", "git branch -D $B": "may be the only one", "git branch | xargs git branch -D": "may be the only one",
		"git tag -d v1": "the tag v1", "git tag -f v1": "the tag v1", "git update-ref -d refs/heads/side": "refs/heads/side", "git update-ref --stdin": "may delete", "git reflog expire --expire=now --all": "reflog", "git reflog delete HEAD@{1}": "reflog",
		"git gc --prune=now": "unreachable objects", "git prune": "unreachable", "git repack -ad": "unreachable", "git filter-branch --all": "rewrites", "git worktree remove --force wt": "wt",
		"git push -f": "of the remote", "git push --force-with-lease origin x": "remote", "git push origin +main": "remote", "git push origin :main": "remote", "git push --delete origin main": "remote",
		// However it is written.
		"'git' stash clear": "stashes", "eval 'git stash clear'": "stashes", "env git stash clear": "stashes", "nohup git stash clear": "stashes", "sh -c 'git branch -D side'": "side", "git -c alias.x='stash clear' x": "stashes", "git -c alias.x='!git stash clear' x": "stashes", "git -c a.b=c stash clear": "stashes",
		"make && git stash clear || true": "stashes", "timeout 5 git stash drop": "stash", "git --git-dir=.git stash clear": "protected", "for b in side; do git branch -D $b; done": "side", "true; f() { git stash clear; }; f": "stashes", "echo git stash clear": "", "x=$(git stash clear)": "stashes", "git stash && git stash drop": "stash",
	} {
		d := m.decide(t, line)
		if want == "" && d.Verdict != allow || want != "" && (d.Verdict != ask || !strings.Contains(d.Reason, want)) {
			t.Errorf("%s: %s (%s), want %q", line, d.Verdict, d.Reason, want)
		}
	}
	bare := workspaceMode(t)
	if d := bare.decide(t, "git init -q && git stash clear"); d.Verdict != ask {
		t.Errorf("a new repository: %s (%s)", d.Verdict, d.Reason)
	}
}
