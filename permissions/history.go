package permissions

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions/shell"
)

// history adds what a command discards of the history of git repositories: what
// only a branch, a tag, a stash or the reflog holds is in no snapshot.
func (j *scriptJudge) history(c *shell.Command, dir string, by settled) {
	words := wordsOf(c)
	if by != bySandbox && !j.asks || j.environment == nil || program(words[0]) != "git" {
		return
	}
	g := &repository{judge: j, dir: dir}
	if why := g.discards(words[1:]); why != "" {
		j.add(finding{
			subject: j.part(core.Access{Scope: j.whole.Scope, Resource: c.Text, Argv: c.Argv}),
			verdict: core.Ask, step: byMode, confined: true, why: why, extra: j.asks,
		})
	}
}

// historyNamed is history for a script that could not be analyzed: it looks for git
// among its words.
func (j *scriptJudge) historyNamed(text string) {
	words := strings.FieldsFunc(stripQuotes(text), func(r rune) bool { return strings.ContainsRune(" \t\n;|&()`<>", r) })
	for i, w := range words {
		if program(w) == "git" {
			j.history(&shell.Command{Argv: words[i:], Text: text}, j.whole.dir, j.by)
		}
	}
}

// repository is the repository that git works in.
type repository struct {
	judge *scriptJudge
	dir   string // in which git runs; empty if unknown
	own   string // its .git directory, that of the worktree
	all   string // the directory of its references
}

// discards says what git with these arguments discards; empty if nothing.
func (g *repository) discards(args []string) string {
	for len(args) > 1 && strings.HasPrefix(args[0], "-") {
		switch name, value, joined := strings.Cut(args[0], "="); {
		case name == "-C":
			g.dir, _ = g.judge.operand(args[1], g.dir)
			args = args[1:]
		case name == "--git-dir":
			if !joined {
				value, args = args[1], args[1:]
			}
			g.own, _ = g.judge.operand(value, g.dir)
		case name == "-c" && strings.HasPrefix(args[1], "alias."):
			_, alias, _ := strings.Cut(args[1], "=")
			words := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(alias, "!"), "git "))
			return g.discards(append(words, args[2:]...))
		case name == "-c":
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	g.open()
	command, args := args[0], args[1:]
	o := parseArgs(args)
	switch command {
	case "stash":
		return g.stashes(o)
	case "branch":
		if o.has("-D") || (o.has("-d", "--delete") && o.has("-f", "--force")) && !o.has("-r") {
			return g.names("refs/heads/", "branch", o.operands)
		}
	case "tag":
		if o.has("-d", "--delete") || o.has("-f", "--force") {
			return g.names("refs/tags/", "tag", o.operands)
		}
	case "update-ref":
		if o.has("--stdin") {
			return "may delete branches and tags"
		}
		if o.has("-d") {
			return g.names("", "reference", o.operands)
		}
	case "push":
		return overwritesRemote(o)
	}
	return g.cleans(command, o)
}

// cleans says what a command removes that only the reflog holds, or nothing.
func (g *repository) cleans(command string, o parsedArgs) string {
	const objects = ": what only the reflog or nothing holds cannot be restored then"
	switch command {
	case "reflog":
		if o.first("expire", "delete", "drop") && !o.has("-n", "--dry-run") {
			return fmt.Sprintf("removes entries of the reflog, which has %d for HEAD, by which lost commits can be found", g.lines("logs/HEAD"))
		}
	case "gc":
		if slices.ContainsFunc(o.all, func(a string) bool { return strings.HasPrefix(a, "--prune") }) {
			return "removes unreachable objects of the repository" + objects
		}
	case "prune":
		if !o.has("-n", "--dry-run") {
			return "removes unreachable objects of the repository" + objects
		}
	case "repack":
		if o.has("-a") && o.has("-d") && !o.has("-k", "--keep-unreachable") {
			return "removes unreachable objects of the repository" + objects
		}
	case "filter-branch", "filter-repo":
		return "rewrites the history of the repository"
	}
	return ""
}

// open finds the repository.
func (g *repository) open() {
	j := g.judge
	for dir := g.dir; g.own == "" && dir != ""; dir = path.Dir(dir) {
		at := j.gitDir(dir)
		if _, err := j.environment.Files().Stat(j.ctx, at+"/HEAD"); err == nil {
			g.own = at
		} else if dir == path.Dir(dir) {
			break
		}
	}
	g.all = g.own
	if text := strings.TrimSpace(g.read(path.Join(g.own, "commondir"))); text != "" {
		if g.all = text; !path.IsAbs(text) {
			g.all = path.Join(g.own, text)
		}
	}
}

func (g *repository) read(name string) string {
	data, err := core.ReadFile(g.judge.ctx, g.judge.environment.Files(), name, maxGitFile)
	if err != nil {
		return ""
	}
	return string(data)
}

// lines counts the entries of a log.
func (g *repository) lines(log string) int {
	return strings.Count(g.read(path.Join(g.own, log)), "\n")
}

// stashes says what git stash discards.
func (g *repository) stashes(o parsedArgs) string {
	if !o.first("drop", "clear") {
		return ""
	}
	n := strings.Count(g.read(path.Join(g.all, "logs/refs/stash")), "\n")
	switch {
	case g.own != "" && n == 0 && len(g.judge.script.Commands) == 1:
		return ""
	case n == 0:
		return "discards stashes, which nothing else holds"
	case o.first("clear"):
		return fmt.Sprintf("discards all stashes (%d), which nothing else holds", n)
	}
	return fmt.Sprintf("discards a stash (of %d), which nothing else holds", n)
}

// names says which references git deletes or moves that are the only ones of their
// commits.
func (g *repository) names(prefix, kind string, operands []string) string {
	refs, err := g.refs()
	var lost []string
	for _, name := range operands {
		ref := prefix + name
		at, found := refs[ref]
		switch {
		case strings.ContainsAny(name, "$`*?…") || err != nil:
			return fmt.Sprintf("deletes a %s that may be the only one to hold its commits", kind)
		case !found || prefix == "" && ref == "":
			continue
		}
		others := 0
		for other, commit := range refs {
			if commit == at && other != ref && !slices.Contains(operands, strings.TrimPrefix(other, prefix)) {
				others++
			}
		}
		if others == 0 {
			lost = append(lost, name+g.commits(ref, at))
		}
		if kind == "reference" {
			break // the second operand is a commit
		}
	}
	if len(lost) == 0 {
		return ""
	}
	return fmt.Sprintf("deletes the %s %s: no other branch or tag is at that commit, so its commits may be lost", kind, strings.Join(lost, ", "))
}

// commits describes what a reference is at, for the user.
func (g *repository) commits(ref, at string) string {
	made := 0
	for line := range strings.Lines(g.read(path.Join(g.all, "logs", ref))) {
		if _, what, _ := strings.Cut(line, "\t"); strings.HasPrefix(what, "commit") {
			made++
		}
	}
	at = at[:min(len(at), 8)]
	switch made {
	case 0:
		return " (at " + at + ")"
	case 1:
		return " (at " + at + ", 1 commit was made on it)"
	}
	return fmt.Sprintf(" (at %s, %d commits were made on it)", at, made)
}

// maxRefs bounds the references that are read.
const maxRefs = 5000

var errManyRefs = errors.New("too many references")

// refs returns the commits of all references.
func (g *repository) refs() (map[string]string, error) {
	if g.own == "" {
		return nil, fs.ErrNotExist
	}
	refs := map[string]string{}
	for line := range strings.Lines(g.read(path.Join(g.all, "packed-refs"))) {
		if at, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			refs[name] = at
		}
	}
	if err := g.loose("refs", refs); err != nil {
		return nil, err
	}
	if head := strings.TrimSpace(g.read(path.Join(g.own, "HEAD"))); !strings.HasPrefix(head, "ref:") {
		refs["HEAD"] = head
	}
	delete(refs, "refs/stash")
	return refs, nil
}

func (g *repository) loose(dir string, into map[string]string) error {
	files := g.judge.environment.Files()
	entries, err := files.ReadDir(g.judge.ctx, path.Join(g.all, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			err = cmp.Or(err, g.loose(name, into))
			continue
		}
		if len(into) > maxRefs {
			return errManyRefs
		}
		if at := strings.TrimSpace(g.read(path.Join(g.all, name))); !strings.HasPrefix(at, "ref:") {
			into[name] = at
		}
	}
	return err
}

// overwritesRemote says that git push discards commits of the remote.
func overwritesRemote(o parsedArgs) string {
	forces := o.has("-f", "--force", "--mirror", "--prune", "-d", "--delete") || slices.ContainsFunc(o.all, func(a string) bool { return strings.HasPrefix(a, "--force-") })
	for i, ref := range o.operands {
		forces = forces || i > 0 && (strings.HasPrefix(ref, "+") || strings.HasPrefix(ref, ":"))
	}
	if !forces || o.has("-n", "--dry-run") {
		return ""
	}
	return "overwrites or deletes branches of the remote, whose commits may then be lost"
}

// parsedArgs are the arguments of a command of git.
type parsedArgs struct{ all, operands []string }

func parseArgs(args []string) parsedArgs {
	p := parsedArgs{all: args}
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			p.operands = append(p.operands, a)
		}
	}
	return p
}

// has reports whether an option was given, one of a letter also among others.
func (p *parsedArgs) has(options ...string) bool {
	return slices.ContainsFunc(p.all, func(a string) bool {
		return slices.ContainsFunc(options, func(o string) bool {
			return a == o || len(o) == 2 && len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.Contains(a, o[1:]) ||
				len(o) > 2 && len(a) > 4 && strings.HasPrefix(o, a) // shortened
		})
	})
}

// first reports whether the first operand is one of these.
func (p *parsedArgs) first(names ...string) bool {
	return len(p.operands) > 0 && slices.Contains(names, p.operands[0])
}
