package permissions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/permissions/shell"
)

// armed are the arguments of programs that run other programs, load code or write
// files. A rule with a final * does not extend to them unless it names them.
type armed struct {
	programs string // separated by spaces; "git/log" is the command log of git
	// arguments are separated by spaces: options, or the beginnings of operands.
	// An option of one letter is also found among others, as in -xo.
	arguments string
	words     bool // options are words after one dash, as in find and go
}

// The table in docs/rule-arguments.md is generated from this.
var armedArguments = []armed{
	{"find", "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls", true},
	{"fd fdfind", "-x -X --exec --exec-batch", false},
	{"rg", "--pre --hostname-bin -z --search-zip", false},
	{"ag", "--pager", false},
	{"sed gsed", "-i --in-place -f --file", false},
	{"awk gawk mawk nawk", "-f --file -i --include -l --load -E --exec -o --pretty-print -p --profile -d --dump-variables", false},
	{"sort gsort", "-o --output --compress-program", false},
	{"split gsplit", "--filter", false},
	{"tree", "-o -R", false},
	{"xxd", "-r", true},
	{"date", "-s --set", false},
	{"yq", "-i --inplace -s --split-exp", false},
	{"tar gtar bsdtar", "-x --extract --get -c --create -r --append -u --update -A --catenate --concatenate --delete -I --use-compress-program --checkpoint-action --to-command -F --info-script --new-volume-script --rsh-command --rmt-command --remove-files --index-file --use-compress", false},
	{"zip", "-T --test -TT --unzip-command -m --move -O --output-file", false},
	{"unzip", "-o -d", false},
	{"cpio", "-o -i -p --create --extract --pass-through --rsh-command -F -O --to-stdout", false},
	{"git", "-c --config-env --exec-path --git-dir --work-tree --output --ext-diff --textconv --open-files-in-pager --upload-pack --receive-pack --exec --extcmd --template --config --filters ext::", false},
	{"git/archive git/format-patch", "-o --output --output-directory --exec --remote", false},
	{"git/grep", "-O", false},
	{"git/rebase git/difftool", "-x", false},
	{"git/clone git/fetch-pack", "-u", false},
	{"git/bisect", "run", false},
	{"git/submodule", "foreach add update", false},
	{"git/config", "--file -f --global --system", false},
	{"git/diff git/log git/show", "-o", true},
	{"go", "-exec -toolexec -vettool -fixtool -o -overlay -modfile -ldflags -gcflags -asmflags -gccgoflags -compiler -pkgdir -C -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir -test.coverprofile -test.cpuprofile -test.memprofile -test.outputdir", true},
	{"go/env", "-w -u", true},
	{"go/tool go/generate go/install go/get", "-", true},
	{"cargo", "--config -Z --target-dir --manifest-path -C --out-dir --artifact-dir", false},
	{"cargo/clippy cargo/fix", "--fix", false},
	{"npm pnpm yarn", "-c --call --script-shell --node-options --prefix --userconfig --globalconfig --shell --git --require --cwd -C --dir", false},
	{"make gmake", "-f --file --makefile --eval -C --directory -I --include-dir SHELL= MAKEFLAGS= .SHELLFLAGS= -o --output-sync", false},
	{"cmake", "-P -E -D --build --install -C", false},
	{"ninja", "-C -f -t", false},
	{"gcc g++ cc c++ clang clang++", "-o -wrapper -B -fplugin -fpass-plugin -specs --specs -Xclang -load -save-temps -dumpdir -fuse-ld -Xlinker @", true},
	{"rustc", "-o -C -Z --out-dir --emit", false},
	{"pytest py.test", "-p -c --config-file --rootdir --confcutdir -o --override-ini --junitxml --junit-xml --basetemp --pyargs --pdbcls --pastebin --debug --log-file --resultlog", false},
	{"mypy", "--config-file --install-types --python-executable --cache-dir --junit-xml", false},
	{"ruff black isort", "--fix --unsafe-fixes --config -c --output-file -o --add-noqa", false},
	{"eslint", "--fix --fix-dry-run -c --config --resolve-plugins-relative-to --rulesdir -o --output-file --plugin --parser -f --format", false},
	{"prettier", "-w --write --plugin --config", false},
	{"tsc", "-b --build --outDir --outFile --init --project -p", false},
	{"jest vitest mocha", "-r --require -c --config --globalSetup --setupFiles --runner --outputFile -u --updateSnapshot --reporters --reporter --transform --testEnvironment", false},
	{"python python3", "-c -m", false},
	{"node nodejs deno bun", "-e --eval -p --print -r --require --import --loader --experimental-loader", false},
	{"perl", "-e -E -i -n -p -M -m -x", false},
	{"ruby", "-e -i -n -p -r -x", false},
	{"php", "-r -B -R -E -d", false},
	{"lua luajit", "-e -l", false},
	{"sh bash dash ash zsh ksh mksh fish", "-c --rcfile --init-file --init-command -C", false},
	{"curl", "-o --output -O --remote-name --remote-name-all --output-dir -K --config -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr --libcurl --etag-save --hsts --alt-svc --create-dirs -T --upload-file -J --remote-header-name -w --write-out", false},
	{"wget", "-", false},
	{"ssh", "-o -F -E -S -D -L -R -W -J", false},
	{"scp sftp", "-S -o -F -D -J", false},
	{"rsync", "-e --rsh --rsync-path --delete --remove-source-files --log-file --write-batch --daemon --config --backup-dir --partial-dir --temp-dir", false},
	{"docker podman nerdctl", "-v --volume --mount --privileged --device --pid --network --net --cap-add --security-opt --entrypoint --userns --ipc -H --host --config", false},
	{"kubectl", "--kubeconfig --exec-command --plugin --as --token --server -s", false},
	{"helm", "--post-renderer --output-dir --kubeconfig", false},
	{"terraform tofu", "-chdir -plugin-dir -out -state -state-out -backup -auto-approve", true},
	{"openssl", "-out -engine -provider -provider-path -writerand -keyout", true},
	{"gpg gpg2", "-o --output --exec-path --photo-viewer --agent-program --dirmngr-program --keyserver", false},
	{"man", "-P --pager -H --html -C --config-file", false},
	{"less more", "-o -O --log-file --LOG-FILE -k --lesskey-file --lesskey-src -t +", false},
	{"vi vim nvim view ex ed emacs", "-c --cmd -S -s -w -W + --eval -l --load -f --funcall -u -e -x", false},
	{"gdb lldb", "-ex -x -iex -ix -eval-command -command -o -s -O --source --one-line", true},
	{"sqlite3", "-cmd -init .", true},
	{"psql", "-c --command -f --file -o --output -L --log-file -v --set", false},
	{"mysql mariadb", "-e --execute --tee --pager --plugin-dir --init-command", false},
	{"tcpdump", "-w -z -W -G", false},
	{"nmap", "--script -o -i", false},
	{"dd", "of=", false},
	{"ip", "netns -b -batch", true},
	{"mvn gradle gradlew", "-D -f -b -I --init-script --include-build -p --project-dir -s --settings -gs -c", false},
	{"parted fdisk hostname sysctl", "-w -s -F --file", false},
}

// uncovered says which of the words of a command behind a prefix, that of a rule
// with a final *, the rule does not extend to, and why; empty if there is none.
func uncovered(prefix []string, s *subject) string {
	words := s.Argv
	if len(prefix) == 0 {
		return "" // every command, on purpose
	}
	if len(words) == len(prefix) {
		return ""
	}
	name := program(words[0])
	bare := strings.TrimRight(name, "0123456789.-")
	if runsFrom(words) == 1 && !interprets(bare) {
		i := innerProgram(prefix)
		if i < 0 {
			return fmt.Sprintf("the program that %s runs", name)
		}
		inner := *s
		inner.Argv, inner.sure = words[i:], max(s.sure-i, 0)
		return uncovered(prefix[i:], &inner)
	}
	if interprets(bare) && slices.ContainsFunc(prefix[1:], func(w string) bool { return !strings.HasPrefix(w, "-") }) {
		return "" // arguments of a script that the rule names
	}
	if bad := armedWord(name, prefix, s); bad != "" {
		return bad
	}
	if bare == "sed" || bare == "gsed" || strings.HasSuffix(bare, "awk") {
		return unsafeScript(words)
	}
	if bare == "uniq" || bare == "xxd" {
		return secondOperand(words[1:])
	}
	return ""
}

// interprets reports whether a program runs a script that is its first operand.
func interprets(name string) bool {
	switch name {
	case "python", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "awk", "gawk", "mawk", "nawk":
		return true
	}
	return isShell(name)
}

// innerProgram returns the index of the word that names the program that a
// wrapper runs; -1 if there is none.
func innerProgram(words []string) int {
	for i := 1; i < len(words); i++ {
		if w := words[i]; w != "" && w[0] != '-' && !strings.Contains(w, "=") && (w[0] < '0' || w[0] > '9') {
			return i
		}
	}
	return -1
}

// armedWord returns the first word behind the prefix that is an argument in the
// table and is not in the prefix.
func armedWord(name string, prefix []string, s *subject) string {
	names := []string{name, name + "/" + subcommand(s.certain())}
	for _, a := range armedArguments {
		if !slices.ContainsFunc(strings.Fields(a.programs), func(p string) bool { return slices.Contains(names, p) }) {
			continue
		}
		for i := len(prefix); i < len(s.Argv); i++ {
			word := s.Argv[i]
			if i >= s.sure && maybeOption(word) {
				return show(word) + ", only known at run time"
			}
			for _, arg := range strings.Fields(a.arguments) {
				is := func(w string) bool { return a.is(arg, w) }
				if is(word) && !slices.ContainsFunc(prefix[1:], is) || name == "tar" && i == 1 && a.is(arg, "-"+word) {
					return show(word)
				}
			}
		}
	}
	return ""
}

// maybeOption reports whether a word only known at run time may be an option.
func maybeOption(source string) bool {
	source = stripQuotes(source)
	return source == "" || strings.ContainsAny(source[:1], "-$`*?[{")
}

// subcommand returns the first operand of a command; empty if there is none.
func subcommand(argv []string) string {
	for i := 1; i < len(argv); i++ {
		switch {
		case argv[i] == "-C":
			i++
		case !strings.HasPrefix(argv[i], "-"):
			return argv[i]
		}
	}
	return ""
}

// is reports whether a word is an argument of the table.
func (a *armed) is(arg, word string) bool {
	name, _, _ := strings.Cut(word, "=")
	switch {
	case arg == "-":
		return true
	case !strings.HasPrefix(arg, "-"):
		return strings.HasPrefix(word, arg)
	case a.words:
		return name == arg || name == "-"+arg
	case strings.HasPrefix(arg, "--"):
		return name == arg || len(name) > 3 && strings.HasPrefix(arg, name)
	case len(arg) == 2:
		return len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.Contains(word, arg[1:])
	}
	return strings.HasPrefix(word, arg)
}

// unsafeScript reports the script of sed or awk that may run programs or write
// files.
func unsafeScript(words []string) string {
	quoted := []string{program(words[0])}
	for _, w := range words[1:] {
		if quoted[0] != "sed" || !strings.HasPrefix(w, "-i") && !strings.HasPrefix(w, "--in-place") {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
	}
	script := shell.Analyze(strings.Join(quoted, " "), shell.Options{Dir: "/"})
	if offence, bad := script.Offence(); bad && script.Effect() == shell.Unknown {
		return "a script that " + offence.Why
	}
	return ""
}

// secondOperand reports an output file behind the input.
func secondOperand(args []string) string {
	operands := 0
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			if operands++; operands == 2 {
				return show(a) + ", to which it writes"
			}
		}
	}
	return ""
}

// notExtended says why an allow rule whose words a command begins with does not
// allow it; empty if there is no such rule.
func (p *Policy) notExtended(s *subject) string {
	for _, r := range p.allow.rules {
		if r.argv == nil || !r.argv.more || !r.about(s) || !r.argv.begins(s) {
			continue
		}
		if what := uncovered(r.argv.words, s); what != "" {
			return fmt.Sprintf("the rule %s does not extend to %s: it may run programs or write files", r.Text, what)
		}
	}
	return ""
}
