package shell

import (
	"slices"
	"strings"
)

// gitEnv turns off the git settings with fixed names that run programs.
// CheckRepository checks the others.
var gitEnv = []string{
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
	"GIT_OPTIONAL_LOCKS=0", // a status or diff does not write the index
	"GIT_PAGER=cat", "GIT_EDITOR=false", "GIT_ASKPASS=", "GIT_TERMINAL_PROMPT=0",
	"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", // no missing object is fetched
	"GIT_CONFIG_COUNT=10",
	"GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=false",
	"GIT_CONFIG_KEY_1=core.hooksPath", "GIT_CONFIG_VALUE_1=/dev/null",
	"GIT_CONFIG_KEY_2=safe.bareRepository", "GIT_CONFIG_VALUE_2=explicit",
	"GIT_CONFIG_KEY_3=log.showSignature", "GIT_CONFIG_VALUE_3=false",
	"GIT_CONFIG_KEY_4=gpg.program", "GIT_CONFIG_VALUE_4=false",
	"GIT_CONFIG_KEY_5=gpg.openpgp.program", "GIT_CONFIG_VALUE_5=false",
	"GIT_CONFIG_KEY_6=gpg.x509.program", "GIT_CONFIG_VALUE_6=false",
	"GIT_CONFIG_KEY_7=gpg.ssh.program", "GIT_CONFIG_VALUE_7=false",
	"GIT_CONFIG_KEY_8=diff.ignoreSubmodules", "GIT_CONFIG_VALUE_8=all",
	"GIT_CONFIG_KEY_9=core.sshCommand", "GIT_CONFIG_VALUE_9=false",
}

// gitRuns records that git runs in the current directory.
func (in *invocation) gitRuns() {
	in.setEnv(gitEnv...)
	if in.st.dirs == nil {
		in.unknown("git runs in a directory only known at run time")
	}
	for _, dir := range in.st.dirs {
		if !slices.Contains(in.out.Repositories, dir) {
			in.out.Repositories = append(in.out.Repositories, dir)
		}
	}
}

// Options that several git commands share.
const (
	gitFormat = " pretty? format= oneline abbrev? abbrev-commit no-abbrev-commit no-abbrev date= relative-date color? no-color z n= # decorate? no-decorate decorate-refs= decorate-refs-exclude= source graph no-graph encoding= expand-tabs? notes? no-notes show-notes mailmap no-mailmap use-mailmap parents children left-right log-size"
	gitRevs   = " all branches? tags? remotes? glob= exclude= max-count= skip= since= after= until= before= author= committer= grep= all-match invert-grep i regexp-ignore-case E extended-regexp F fixed-strings P perl-regexp merges no-merges min-parents= max-parents= first-parent not reverse date-order author-date-order topo-order follow full-history simplify-merges simplify-by-decoration ancestry-path? boundary cherry cherry-pick cherry-mark left-only right-only reflog g walk-reflogs count objects merge no-walk? do-walk ignore-missing S= G= L= pickaxe-all pickaxe-regex"
	gitDiff   = " p u patch no-patch s U= unified= raw patch-with-raw stat? numstat shortstat dirstat? summary compact-summary name-only name-status patch-with-stat minimal patience histogram diff-algorithm= indent-heuristic no-indent-heuristic color-words? word-diff? word-diff-regex= color-moved? color-moved-ws= no-renames find-renames? M? C? B? D R a text b w ignore-space-change ignore-all-space ignore-space-at-eol ignore-cr-at-eol ignore-blank-lines I= ignore-matching-lines= W function-context inter-hunk-context= full-index binary diff-filter= l= m c cc dd combined-all-paths check ws-error-highlight= no-prefix default-prefix src-prefix= dst-prefix= line-prefix= ita-invisible-in-index relative? no-relative exit-code quiet cached staged merge-base no-ext-diff no-textconv ignore-submodules?" + " base ours theirs 0 1 2 3 find-copies? find-copies-harder no-color-moved" + " t r root"
)

// gitCommands are the read-only commands, with their options.
var gitCommands = map[string]program{
	"status":        {options: "s short b branch show-stash porcelain? long v verbose u? untracked-files? ignore-submodules? ignored? z column? no-column ahead-behind no-ahead-behind renames no-renames find-renames?"},
	"log":           {options: gitFormat + gitRevs + gitDiff},
	"show":          {options: gitFormat + gitRevs + gitDiff},
	"whatchanged":   {options: gitFormat + gitRevs + gitDiff},
	"diff":          {options: gitFormat + gitDiff + " S= G= pickaxe-all pickaxe-regex"},
	"diff-tree":     {options: gitFormat + gitDiff + " S= G= no-commit-id stdin"},
	"diff-index":    {options: gitFormat + gitDiff + " S= G="},
	"diff-files":    {options: gitFormat + gitDiff + " S= G= q"},
	"rev-list":      {options: gitFormat + gitRevs + " header timestamp bisect disk-usage? objects-edge no-object-names"},
	"shortlog":      {options: gitFormat + gitRevs + " s n e c summary numbered email group= committer w?"},
	"reflog":        {options: gitFormat + gitRevs + gitDiff},
	"rev-parse":     {options: "show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository show-superproject-working-tree abbrev-ref? short? verify q quiet sq symbolic symbolic-full-name all branches? tags? remotes? glob= git-path= show-object-format? revs-only no-revs flags no-flags default= since= until="},
	"ls-files":      {options: "c d m o i s t u k v f z cached deleted modified others ignored stage unmerged killed directory no-empty-directory eol exclude-standard x= exclude= error-unmatch full-name recurse-submodules abbrev? deduplicate format= resolve-undo debug"},
	"ls-tree":       {options: "d r t l z long name-only name-status object-only full-name full-tree abbrev? format="},
	"cat-file":      {options: "p t s e batch-check? buffer allow-unknown-type"},
	"blame":         {options: "L= l t p s e w b root show-stats show-name show-number show-email M? C? abbrev= since= date= porcelain line-porcelain incremental f n ignore-rev= reverse= minimal c score-debug first-parent color-lines color-by-age progress no-progress"},
	"annotate":      {options: "L= l t w b M? C?"},
	"describe":      {options: "all tags contains abbrev= candidates= exact-match debug long match= exclude= always first-parent dirty? broken?"},
	"branch":        {options: "a r v vv all remotes list verbose show-current merged? no-merged? contains? no-contains? points-at= sort= format= abbrev= no-abbrev color? no-color column? no-column i ignore-case q quiet"},
	"tag":           {options: "l list n? contains? no-contains? merged? no-merged? points-at= sort= format= column? no-column i ignore-case color?"},
	"for-each-ref":  {options: "count= sort= format= color? merged? no-merged? contains? no-contains? points-at= ignore-case exclude= s"},
	"show-ref":      {options: "head tags heads branches d dereference s hash? verify exists abbrev? q quiet"},
	"show-branch":   {options: "a r all remotes current topo-order date-order sparse more= list merge-base independent no-name sha1-name topics color? no-color"},
	"merge-base":    {options: "a all octopus independent is-ancestor fork-point"},
	"name-rev":      {options: "tags refs= exclude= all name-only no-undefined always"},
	"cherry":        {options: "v abbrev?"},
	"range-diff":    {options: gitFormat + gitDiff + " creation-factor= no-dual-color left-only right-only"},
	"count-objects": {options: "v verbose H human-readable"},
	"check-ignore":  {options: "q v n z quiet verbose non-matching no-index"},
	"check-attr":    {options: "a all z cached"},
	"grep":          {options: "# A= B= C= e= i v w a I n c l L h H o q z E G F P W p r ignore-case invert-match word-regexp text cached no-index untracked no-exclude-standard exclude-standard full-name extended-regexp basic-regexp fixed-strings perl-regexp line-number column files-with-matches name-only files-without-match null only-matching count color? no-color break heading show-function function-context after-context= before-context= context= max-depth= recursive no-recursive threads= max-count= m= and or not all-match quiet"},
	"version":       {options: "build-options"},
	"remote":        {options: "v verbose"},
	"stash":         {options: gitFormat + gitDiff + " include-untracked only-untracked u"},
	"worktree":      {options: "porcelain z v verbose"},
	"symbolic-ref":  {options: "q quiet short recurse no-recurse", most: 1, beyond: "changes a reference"},
	"config":        {options: "get get-all get-regexp z null show-origin show-scope type= bool int name-only local l list"},
}

var gitRefused = map[string]string{
	"output": writesFile, "ext-diff": runsProgram, "textconv": runsProgram, "show-signature": runsProgram, "filters": runsProgram,
	"O": "reads a file, or runs a program", "open-files-in-pager": runsProgram, "upload-pack": runsProgram, "exec": runsProgram,
	"contents": "reads a file that is not checked", "X": "reads a file that is not checked", "exclude-from": "reads a file that is not checked", "f": "reads a file that is not checked", "file": "reads a file that is not checked", "stdin": "reads its arguments from stdin",
}

// git judges git: its global options, then those of its command.
func git(in *invocation) {
	ok := in.gitGlobal()
	in.gitRuns()
	in.gitSettings(ok)
	in.gitLosses(ok)
	if !ok {
		return
	}
	if len(in.args) == 0 {
		return
	}
	name := &in.args[0]
	p, known := gitCommands[name.text]
	if !known || !name.exact() {
		if name.text != "--version" {
			in.unknown("git " + name.src + " may change the repository, use the network or run programs")
		}
		return
	}
	in.args = in.args[1:]
	p.refused = gitRefused
	in.name = "git " + name.text
	in.parse(&p)
	in.gitOptions()
	if why := in.gitOperands(name.text); why != "" {
		in.unknown(in.name + " " + why)
	}
}

// gitGlobal judges the options before the command; false if one is refused.
func (in *invocation) gitGlobal() bool {
	for len(in.args) > 0 && (strings.HasPrefix(in.args[0].text, "-") || !in.args[0].exact()) {
		arg := &in.args[0]
		switch {
		case !arg.exact():
			in.unknown("git runs a command only known at run time")
			return false
		case arg.text == "--version":
			return true
		case arg.text == "--no-pager" || arg.text == "-P" || arg.text == "--no-optional-locks" || arg.text == "--literal-pathspecs":
			in.args = in.args[1:]
		case arg.text == "-C" && len(in.args) > 1:
			st := *in.st
			dir := &invocation{walker: in.walker, st: &st, cmd: in.cmd, args: in.args[1:2]}
			st.dirs = dir.entered()
			in.touch(List, &in.args[1], false)
			in.st = &st
			in.args = in.args[2:]
		default:
			in.unknown("git " + arg.text + " changes which repository or settings git uses, or what it runs")
			return false
		}
	}
	return true
}

// gitOptions judges the values of options: a format may check signatures.
func (in *invocation) gitOptions() {
	for _, o := range in.options {
		if o.value == nil {
			continue
		}
		switch o.name {
		case "format", "pretty":
			if !o.value.exact() || strings.Contains(o.value.text, "%G") || strings.Contains(o.value.text, "signature") {
				in.unknown("git has a format that may run a program to check signatures")
			}
		case "git-path":
			in.touch(List, o.value, false)
		}
	}
	if in.has("no-index") {
		in.unknown("git --no-index reads files outside the repository")
	}
}

// gitOperands judges the operands of a command: subcommands, and paths, which may
// be outside the repository.
func (in *invocation) gitOperands(command string) string {
	first := ""
	if len(in.operands) > 0 {
		first = in.operands[0].text
		if !in.operands[0].exact() && (command == "remote" || command == "stash" || command == "worktree" || command == "reflog" || command == "config") {
			return "has a command only known at run time"
		}
	}
	switch command {
	case "branch", "tag":
		if len(in.operands) > 0 && !in.has("list", "contains", "no-contains", "merged", "no-merged") && !(command == "tag" && in.has("l")) {
			return "creates a " + command
		}
		return ""
	case "remote":
		if len(in.operands) > 0 && first != "get-url" {
			return first + " changes remotes or uses the network"
		}
		return ""
	case "stash":
		if first != "list" && first != "show" {
			return "changes the stash and the files"
		}
		return ""
	case "worktree":
		if first != "list" {
			return first + " changes worktrees"
		}
		return ""
	case "reflog":
		if first == "expire" || first == "delete" || first == "drop" || first == "write" {
			return first + " changes the log"
		}
	case "symbolic-ref":
		if len(in.operands) > 1 {
			return "changes a reference"
		}
		return ""
	case "config":
		return in.gitConfig(first)
	}
	if command == "grep" && in.has("untracked", "no-exclude-standard") {
		in.here(Access{Kind: Read, Recursive: true})
	}
	for i := range in.operands {
		o := &in.operands[i]
		if o.kind == unknown && !strings.HasPrefix(command, "rev-") && command != "merge-base" {
			return "has " + o.src + ", which is only known at run time"
		}
		in.gitPath(command, o)
	}
	return ""
}

// gitPath records the file that an operand may name, possibly after a revision
// and a colon.
func (in *invocation) gitPath(command string, o *word) {
	p := *o
	if i := strings.LastIndexByte(p.text, ':'); i >= 0 {
		if p.text = p.text[i+1:]; i == 0 {
			p.text = strings.TrimLeft(p.text, "/") // from the top of the repository
		}
	}
	outside := strings.HasPrefix(p.text, "/") || strings.HasPrefix(p.text, "../") || strings.Contains(p.text, "/../")
	switch command {
	case "diff", "show", "log", "whatchanged", "blame", "annotate", "cat-file", "grep", "diff-tree", "diff-index", "diff-files", "reflog":
		in.reach(&p, Access{Kind: Read, Recursive: outside})
	default:
		if outside {
			in.reach(&p, Access{Kind: Read, Recursive: true})
		}
	}
}

// gitConfig allows showing single settings; all of them may include secrets.
func (in *invocation) gitConfig(first string) string {
	gets := in.has("get", "get-all")
	if first == "get" {
		gets = true
		in.operands = in.operands[1:]
	}
	if !gets || len(in.operands) != 1 || !in.operands[0].exact() {
		return "changes settings, or shows all of them"
	}
	key := strings.ToLower(in.operands[0].text)
	if strings.HasPrefix(key, "http") || strings.HasPrefix(key, "credential") || strings.Contains(key, "pass") || strings.Contains(key, "token") {
		return "shows a setting that may be secret"
	}
	return ""
}

// gitSettings records writes to the settings of a repository, from which git runs
// programs later. Unless the command is known to come first, any word may be it.
func (in *invocation) gitSettings(first bool) {
	i := slices.IndexFunc(in.args, func(a word) bool { return slices.Contains(gitSetters, a.text) })
	if i < 0 || first && i > 0 {
		return
	}
	args := in.args[i+1:]
	target := ".git/config"
	switch in.args[i].text {
	case "config":
		if readsSettings(args) {
			return
		}
		target = configFile(args)
	case "remote":
		if len(args) == 0 || slices.Contains([]string{"-v", "--verbose", "show", "get-url", "update", "prune"}, args[0].text) {
			return
		}
	case "submodule":
		if len(args) == 0 || slices.Contains([]string{"status", "summary"}, args[0].text) {
			return
		}
	case "init", "clone":
		if !slices.ContainsFunc(args, func(a word) bool { return !a.exact() || plantsSettings(a.text) }) {
			return
		}
	}
	in.touch(Write, &word{value: value{text: target}, src: in.cmd.Text, pos: in.cmd.Offset}, false)
}

// gitSetters are the commands of git that may write settings.
var gitSetters = []string{"config", "remote", "submodule", "init", "clone"}

// plantsSettings reports whether an option of git init or clone adds settings or
// hooks to the new repository.
func plantsSettings(option string) bool {
	name, _, _ := strings.Cut(option, "=")
	return strings.HasPrefix(name, "--templ") || strings.HasPrefix(name, "--conf") || strings.HasPrefix(name, "--separate") || strings.HasPrefix(name, "-c")
}

// readsSettings reports whether git config with these arguments only reads.
func readsSettings(args []word) bool {
	operands := 0
	for i := range args {
		switch a := &args[i]; {
		case !a.exact():
			return false
		case strings.HasPrefix(a.text, "--get") || a.text == "--list" || a.text == "-l" || operands == 0 && (a.text == "get" || a.text == "list"):
			return true
		case !strings.HasPrefix(a.text, "-"):
			operands++
		case slices.Contains([]string{"--unset", "--unset-all", "--add", "--replace-all", "--edit", "-e", "--remove-section", "--rename-section"}, a.text):
			return false
		}
	}
	return operands <= 1
}

// configFile returns the file that git config writes.
func configFile(args []word) string {
	for i := range args {
		switch a := args[i].text; {
		case a == "--global":
			return "/.gitconfig" // of some home directory
		case a == "--system":
			return "/etc/gitconfig"
		case strings.HasPrefix(a, "--file="):
			return a[len("--file="):]
		case (a == "-f" || a == "--file") && i+1 < len(args) && args[i+1].exact():
			return args[i+1].text
		}
	}
	return ".git/config"
}

// gitLosses records what commands of git discard.
func (in *invocation) gitLosses(known bool) {
	if !known || len(in.args) == 0 {
		return
	}
	all := in.args
	defer func() { in.args = all }()
	switch in.args[0].text {
	case "checkout":
		in.overwrites(in.args[1:])
		if !in.hasWord("--", ".", "-f", "--force", "--ours", "--theirs") {
			in.discards(in.args[1:], LosesModified) // of those that are paths
			return
		}
	case "apply":
		in.args = in.args[1:]
		in.patches(in.plain())
		return
	case "worktree", "submodule":
		if in.hasWord("remove", "deinit") && in.hasWord("-f", "--force", "-ff") {
			in.discards(in.args[2:], LosesAll)
		}
	case "rm":
		if !in.hasWord("--cached") && in.hasFlag("--force", "f") {
			in.discards(in.args[1:], LosesModified)
		}
	case "mv":
		if n := len(in.args); n > 2 && in.hasFlag("--force", "f") {
			in.replaces(&in.args[n-1], in.args[1:n-1], false)
		}
	}
	loss := in.treeLoss()
	if loss == LosesNone {
		return
	}
	if in.args[0].text == "restore" {
		in.overwrites(in.args)
	}
	paths := in.args[1:]
	if i := slices.IndexFunc(paths, func(a word) bool { return a.text == "--" }); i >= 0 {
		paths = paths[i+1:]
	} else if in.args[0].text != "restore" {
		paths = nil
	}
	if paths = exactPaths(paths); len(paths) == 0 {
		in.here(Access{Kind: List, Recursive: true, Loss: loss})
	}
	in.discards(paths, loss)
}

// treeLoss returns what a command of git discards in the working tree, or at the
// paths behind --.
func (in *invocation) treeLoss() Loss {
	loses := false
	switch in.args[0].text {
	case "clean":
		if !in.hasFlag("--dry-run", "n") {
			return LosesUntracked
		}
	case "checkout":
		loses = true
	case "reset":
		loses = in.hasWord("--hard")
	case "merge", "rebase", "cherry-pick", "revert", "am":
		loses = in.hasWord("--abort", "--skip")
	case "read-tree", "checkout-index":
		loses = in.hasWord("-u", "--reset", "-f", "--force", "-a")
	case "switch":
		loses = in.hasWord("-f", "--force", "--discard-changes")
	case "restore":
		loses = !in.hasWord("--staged", "-S") || in.hasWord("--worktree", "-W")
	}
	if loses {
		return LosesModified
	}
	return LosesNone
}

// hasWord reports whether one of some words is among the arguments.
func (in *invocation) hasWord(words ...string) bool {
	return slices.ContainsFunc(in.args, func(a word) bool { return slices.Contains(words, a.text) })
}

// hasFlag reports whether an option is set in its long form, or by its letter.
func (in *invocation) hasFlag(long, letter string) bool {
	return slices.ContainsFunc(in.args, func(a word) bool { return a.text == long || isCluster(a.text, letter) })
}

// discards records what git discards at paths.
func (in *invocation) discards(paths []word, loss Loss) {
	if paths = exactPaths(paths); len(paths) > 0 {
		in.each(paths, Access{Kind: List, Recursive: true, Loss: loss})
	}
}

// overwrites records the files that git takes from a commit among the arguments: it
// also replaces those that it does not know yet.
func (in *invocation) overwrites(args []word) {
	if paths := exactPaths(args); len(paths) > 1 && !in.given("-b", "-B", "--orphan") {
		in.each(paths, Access{Kind: List, Loss: LosesAll})
	}
}

func exactPaths(args []word) []word {
	return slices.DeleteFunc(slices.Clone(args), func(a word) bool { return strings.HasPrefix(a.text, "-") || !a.exact() })
}

// isCluster reports whether a word is options of one letter, one of them this.
func isCluster(word, letter string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.Contains(word, letter)
}
