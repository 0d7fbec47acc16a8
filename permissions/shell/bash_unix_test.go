//go:build unix

package shell_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/permissions/shell"
)

// bash runs scripts in a temporary directory where every program is a shim
// that only logs how it was called.
type bash struct {
	argv       []string // of the shell, before -c
	dialect    string
	dir        string // where scripts run
	shims, log string
	path       string // where scripts find programs
	attr       *syscall.SysProcAttr
}

// shimmed are the programs that exist for the scripts. Calls of evil programs
// must never be missed.
var shimmed = []string{
	"evil1", "evil2", "ls", "cat", "wc", "grep", "head", "sort", "find", "git", "xargs", "env", "timeout", "sed", "sudo", "sh", "mkdir", "rm",
}

// newBash sets up bash, as an unprivileged user if this is root.
func newBash(t testing.TB, argv ...string) *bash {
	t.Helper()
	dialect := "sh"
	if len(argv) == 0 {
		argv, dialect = []string{"bash"}, "bash"
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		t.Skipf("%s is not installed", argv[0])
	}
	root, err := os.MkdirTemp("", "shell") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	b := &bash{argv: argv, dialect: dialect, dir: filepath.Join(root, "dir"), shims: filepath.Join(root, "bin"), path: filepath.Join(root, "bin"), log: filepath.Join(root, "log"), attr: &syscall.SysProcAttr{Setpgid: true}}
	for _, dir := range []string{root, b.dir, b.shims} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range shimmed {
		answer := ""
		if name == "cat" { // so that substitutions give something to run
			answer = "echo evil1\n"
		}
		text := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\0' %s \"$@\" '\x01' >>%s\n%s", name, b.log, answer)
		if err := os.WriteFile(filepath.Join(b.shims, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		const nobody = 65534
		b.attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: false}
		if err := os.Chown(b.dir, nobody, nobody); err != nil {
			t.Skipf("cannot give a directory to another user: %v", err)
		}
	}
	return b
}

// run runs a script. It returns the argument lists of all programs that were
// started, and whether anything in the directory was changed.
func (b *bash) run(t testing.TB, script string) (started [][]string, changed bool) {
	t.Helper()
	b.reset(t)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	argv := slices.Concat(b.argv[1:], []string{"-c", script})
	cmd := exec.CommandContext(ctx, b.argv[0], argv...)
	cmd.Dir = b.dir
	cmd.Env = []string{"PATH=" + b.path, "HOME=" + filepath.Dir(b.dir)}
	attr := *b.attr
	cmd.SysProcAttr = &attr
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// Background processes of the script keep a pipe open.
	ended, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ended.Close()
	cmd.ExtraFiles = []*os.File{8 - 3: nil, 9 - 3: held}
	err = cmd.Start()
	held.Close()
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // scripts may fail
	_ = ended.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.Copy(io.Discard, ended)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	log, err := os.ReadFile(b.log)
	if err != nil {
		t.Fatal(err)
	}
	for record := range strings.SplitSeq(strings.TrimSuffix(string(log), "\x01\x00"), "\x01\x00") {
		if record != "" {
			started = append(started, strings.Split(strings.TrimSuffix(record, "\x00"), "\x00"))
		}
	}
	return started, b.changed(t)
}

// The files in the directory and their content.
var scene = map[string]string{"a.txt": "evil1\n", "b.txt": "two words\n", "evil3": "", "src/c.txt": "x\n"}

func (b *bash) reset(t testing.TB) {
	t.Helper()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(b.dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range scene {
		path := filepath.Join(b.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		if b.attr.Credential != nil {
			if err := os.Chown(path, int(b.attr.Credential.Uid), int(b.attr.Credential.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(b.log, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(b.log, 0o666); err != nil {
		t.Fatal(err)
	}
}

func (b *bash) changed(t testing.TB) bool {
	t.Helper()
	found := 0
	err := filepath.WalkDir(b.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(b.dir, path)
		content, err := os.ReadFile(path)
		if want, ok := scene[name]; ok && want == string(content) {
			found++
		} else {
			found = -1 << 20
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found != len(scene)
}

// contradiction says what bash did that the analysis does not have;
// empty if nothing.
func contradiction(a shell.Analysis, started [][]string, changed bool) string {
	if len(a.Unclear) > 0 {
		return ""
	}
	for _, argv := range started {
		if !slices.ContainsFunc(a.Commands, func(c shell.Command) bool { return couldBe(c, argv) }) {
			return fmt.Sprintf("bash ran %q, the analysis has only %+v", argv, a.Commands)
		}
	}
	if changed && a.Effect() == shell.ReadOnly {
		return "bash changed files, the analysis says read-only"
	}
	return ""
}

// couldBe reports whether a command of the analysis may be the one started.
func couldBe(c shell.Command, argv []string) bool {
	known := len(c.Argv)
	if !c.Exact() {
		known = c.Vague[0]
	}
	if known == 0 || len(argv) < known || c.Exact() && len(argv) != known || filepath.Base(c.Argv[0]) != argv[0] {
		return false
	}
	return slices.Equal(c.Argv[1:known], argv[1:known])
}

// TestReadOnlyChangesNothing runs the harmless rows of the table with the real
// programs, as far as they are installed.
func TestReadOnlyChangesNothing(t *testing.T) {
	b := newBash(t)
	b.path = os.Getenv("PATH")
	var scripts []string
	for _, r := range rows(t) {
		endless := strings.Contains(r.Script, "-f log") || strings.Contains(r.Script, "tail -f") || strings.Contains(r.Script, "sleep 1; done")
		if r.Want == "readonly" && !endless && !strings.HasPrefix(r.Script, "/") {
			scripts = append(scripts, r.Script)
		}
	}
	var all strings.Builder
	for _, script := range scripts {
		all.WriteString("(\n" + script + "\n) </dev/null >/dev/null 2>&1\n")
	}
	if _, changed := b.run(t, all.String()); !changed {
		return
	}
	for _, script := range scripts {
		if _, changed := b.run(t, script); changed {
			t.Errorf("%s changes files", script)
		}
	}
}

// generator writes scripts from a stream of choices.
type generator struct {
	choose func(n int) int // in [0, n)
	depth  int
}

func (g *generator) oneOf(texts ...string) string { return texts[g.choose(len(texts))] }

func (g *generator) script() string {
	text := g.list()
	for range max(0, g.choose(4)-1) { // small damage, where parsers differ
		const marks = "'\"\\$`(){};&|<>#*?[]!~ \n=,-a"
		at := g.choose(len(text) + 1)
		switch g.choose(3) {
		case 0:
			i := g.choose(len(marks))
			text = text[:at] + marks[i:i+1] + text[at:]
		case 1:
			if at < len(text) {
				text = text[:at] + text[at+1:]
			}
		}
	}
	return text
}

func (g *generator) list() string {
	var b strings.Builder
	for i := range 1 + g.choose(3) {
		if i > 0 {
			b.WriteString(g.oneOf("; ", "\n", " && ", " || ", " | ", " |& ", " & ", ";", "|", "&&"))
		}
		b.WriteString(g.stmt())
	}
	return b.String()
}

func (g *generator) stmt() string {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 4 {
		return g.simple()
	}
	switch g.choose(22) {
	case 0:
		return "if " + g.list() + "; then " + g.list() + g.oneOf("", "; else "+g.list(), "; elif "+g.stmt()+"; then "+g.stmt()) + "; fi"
	case 1:
		return "for v in " + g.word() + " " + g.word() + "; do " + g.list() + "; " + g.oneOf("$v", `cat "$v"`, "echo $v", "break", "x=$v", "cd $v") + "; done"
	case 2:
		return g.oneOf("while", "until") + " " + g.list() + "; do " + g.list() + "; break; done"
	case 3:
		return "case " + g.word() + " in " + g.oneOf("*", "a*", g.word()) + ") " + g.list() + g.oneOf(";;", ";&", ";;&") + " b) " + g.stmt() + ";; esac"
	case 4:
		return "( " + g.list() + " )"
	case 5:
		return "{ " + g.list() + "; }"
	case 6:
		return g.oneOf("f", "g", "ls", "cat") + "() { " + g.list() + "; }; " + g.oneOf("f", "g", "ls", "f "+g.word())
	case 7:
		return "[[ " + g.word() + " " + g.oneOf("==", "!=", "-eq", "-lt", "=~", "-nt") + " " + g.word() + " ]]"
	case 8:
		return "(( " + g.arithmetic() + " ))"
	case 9:
		return g.assignment() + "; " + g.stmt()
	case 10:
		return g.oneOf("! ", "time ", "coproc ", "time -p ") + g.stmt()
	case 11:
		return g.trick()
	case 12:
		return g.trick()
	case 13:
		return "cat <<" + g.oneOf("E", "'E'", "-E", `"E"`, `\E`) + "\n" + g.word() + " " + g.oneOf("$(evil1)", "`evil2`", "\\$(evil1)", "${x:-$(evil2)}", "text") + "\nE\n"
	case 14:
		return "select v in " + g.word() + "; do " + g.stmt() + "; done <<<1"
	case 15:
		return "for ((i=" + g.arithmetic() + "; i<1; i++)); do " + g.list() + "; done"
	default:
		return g.simple()
	}
}

func (g *generator) simple() string {
	var b strings.Builder
	if g.choose(8) == 0 {
		b.WriteString(g.assignment() + " ")
	}
	b.WriteString(g.name())
	for range g.choose(4) {
		b.WriteString(" " + g.word())
	}
	if g.choose(5) == 0 {
		b.WriteString(" " + g.oneOf("> out", ">> a.txt", "2>/dev/null", "2>&1", "< a.txt", "<<< "+g.word(), "&> out", ">| out", "<> out", "> "+g.word(), ">&2", ">& out", "> >(evil1)", "< <(evil2)", "{v}>out", "2> $(evil1)"))
	}
	return b.String()
}

func (g *generator) name() string {
	if g.choose(3) > 0 {
		return g.oneOf("ls", "cat", "wc", "grep", "head", "sort", "git", "sed", "echo", "printf", "test", "true", ":", "cd", "evil1", "evil2", "mkdir", "[")
	}
	return g.oneOf(`\evil1`, `ev\il1`, `'evil1'`, `"evil2"`, `ev""il1`, `$x`, `${x}`, `$(echo evil1)`, "`echo evil2`", `{evil1,a}`, `evil?`, `$'evil1'`, `$'\x65vil1'`, `$"evil1"`, `${y:-evil2}`, `e"v"il1`, "ev\\\nil1", "$(cat a.txt)", `evil1$y`, "./evil3", "env evil1", "timeout 1 evil2", "xargs evil1", "command evil1", "builtin echo", "exec evil1", "eval evil1", "~/evil3", "[[", "!", "function")
}

func (g *generator) word() string {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth < 6 && g.choose(3) == 0 {
		inner := g.oneOf(g.simple(), "evil1", "cat a.txt", "echo a b")
		return g.oneOf("$("+inner+")", "`"+inner+"`", `"$(`+inner+`)"`, "<("+inner+")", "${x:-$("+inner+")}", "${x/$("+inner+")/b}", "$((1+$("+inner+")))", "'$("+inner+")'", `"a`+"`"+inner+"`"+`"`, `${x+"$(`+inner+`)"}`, `\$(`+inner+")", "${a[$("+inner+")]}", "${x:$("+inner+")}", "${#x}$("+inner+")", "$[ $("+inner+") ]", "$'$("+inner+")'", "${x:-<("+inner+")}", "${x#"+inner+"}", "$(# c\n"+inner+")", "$(cat <<E\n$("+inner+")\nE\n)", "$( ("+inner+") )", "$(case a in a) "+inner+";; esac)", `"${x:-'$(`+inner+`)'}"`, `"${x:-"$(`+inner+`)"}"`, "$\\("+inner+")")
	}
	return g.oneOf("a", "a.txt", "*.txt", "*", "?.txt", "[ab].txt", "'q r'", `"d e"`, "$x", `"$x"`, "${x}", "$y", "-n", "--", "src", "{a,b}", "{1..3}", "a{b,c}d", "~", "~/a", `\*`, `a\ b`, "#c", "a#b", "$1", `"$@"`, "$*", "$?", "$#", "$$", "$((1+2))", "$((x))", "${!x}", "${x@P}", "${x@Q}", "${x:=evil1}", "${x%%a}", "${x^^}", "''", `""`, "$'a\\nb'", "$'\\''", "x=1", "]", "-v", "-eq", "=", "!", "a[1]", "'a[$(evil1)]'", "$RANDOM", "${x#*[}", "@(a|b)", "!(a)", "{", "}", "{a", ",b}", "%s", "$", "\\", "-exec", ";;")
}

func (g *generator) assignment() string {
	return g.oneOf("x", "y", "z", "IFS", "PATH", "a[0]", "a[$(evil1)]", "x+", "BASH_ENV", "PS4", "LC_ALL") + "=" + g.oneOf("", "1", "evil1", "'evil1 evil2'", "'a[$(evil1)]'", "'$(evil2)'", "$(evil1)", "(a b)", "$x", "a.txt", "$((x+1))", ".", "~", "`evil2`", g.word())
}

func (g *generator) arithmetic() string {
	return g.oneOf("1", "x", "x+1", "a[$(evil1)]", "y=2", "x++", "$x", "x ? y : 1", "a[x]", "$(evil2)", "'a[$(evil1)]'", "1+1", "${x:-1}", "i", "x=y", `"x"`, "`evil1`", "0x1f", "RANDOM")
}

func (g *generator) trick() string {
	cmd := g.oneOf("evil1", "evil2", "evil1 a")
	return strings.ReplaceAll(g.oneOf(tricks...), "CMD", cmd)
}

// tricks run a program in ways that an analysis could miss.
var tricks = []string{
	`x='a[$(CMD)]'; echo $((x))`, `x='a[$(CMD)]'; [[ $x -eq 1 ]]`, `x='a[$(CMD)]'; ((x))`, `x='a[$(CMD)]'; let x`, `test -v 'a[$(CMD)]'`, `[ -v 'a[$(CMD)]' ]`,
	`[[ -v 'a[$(CMD)]' ]]`, `x='a[$(CMD)]'; [[ -v $x ]]`, `x='a[$(CMD)]'; test -v "$x"`, `printf -v 'a[$(CMD)]' x`, `printf -v'a[$(CMD)]' x`, `x=-va['$(CMD)']; printf "$x" b`, `read 'a[$(CMD)]' <<<1`,
	`unset 'a[$(CMD)]'`, `a=1; unset 'a[$(CMD)]'`, `declare 'a[$(CMD)]=1'`, `export 'a[$(CMD)]=1'`, `readonly 'a[$(CMD)]=1'`, `typeset -i x='a[$(CMD)]'`, `declare -i x; x='a[$(CMD)]'`, `declare -n r='a[$(CMD)]'; echo $r`,
	`x='$(CMD)'; echo "${x@P}"`, `x='a[$(CMD)]'; echo ${!x}`, `x='a[$(CMD)]'; echo ${y:x}`, `x='a[$(CMD)]'; echo ${z[x]}`, `PS4='$(CMD)'; set -x; :`, `trap CMD EXIT`, `trap 'CMD' DEBUG; :`, `trap -- CMD ERR; false`,
	`eval CMD`, `eval "CMD"`, `x='CMD'; $x`, `x=CMD; eval $x`, `command CMD`, `command -p CMD`, `builtin eval CMD`, `exec CMD`, `exec -a b CMD`, `. ./a.txt`, `source a.txt`, `coproc CMD`, `coproc N { CMD; }`,
	`mapfile -C CMD -c 1 m < a.txt`, `compgen -C CMD`, `complete -C CMD x`, `alias ls=CMD; ls`, "shopt -s expand_aliases\nalias ls=CMD\nls", `hash -p ` + "`command -v evil1`" + ` ls; ls`, `enable -n echo; echo`, `set -- CMD; "$@"`, `set -- CMD; $1`, `set -- CMD; $@`,
	`ls() { CMD; }; ls`, `function cat { CMD; }; cat x`, `f() { $1; }; f CMD`, `f() { "$@"; }; f CMD`, `function f() ( CMD ); f`, `cat <(CMD)`, `ls > >(CMD)`, `cat <<< $(CMD)`, "cat <<E\n$(CMD)\nE", "cat <<'E'\n$(evil1)\nE\nCMD", `${x:-CMD}`, `${x:=CMD}`, `: ${x:=CMD}; $x`, `IFS=:; x=CMD:b; $x`,
	`wait -p 'a[$(CMD)]'`, `getopts x 'a[$(CMD)]' -x`, `f() { local -n r='a[$(CMD)]'; : $r; }; f`, `for x in CMD; do $x; done`, `for x in 'a[$(CMD)]'; do : $((x)); done`, `read x <<< CMD; $x`, `read x <<< 'a[$(CMD)]'; : $((x))`, `while read x; do $x; done < a.txt`,
	`x=1; while ((x)); do x='a[$(CMD)]'; : $((x)); break; done`, `i=0; while [ $i = 0 ]; do : $((i)); i='a[$(CMD)]'; done; : $((i))`, `x=5; f() { x='a[$(CMD)]'; }; f; : $((x))`, `if false; then x=1; else x='a[$(CMD)]'; fi; : $((x))`, `x=1; false && x=2 || x='a[$(CMD)]'; : $((x))`,
	`echo a#b; CMD`, `echo a # b; evil2` + "\nCMD", `echo '#' ; CMD`, `: <<x; CMD` + "\nx", `{ CMD; }`, `! CMD`, `time CMD`, `CMD &`, `a=b CMD`, `>out CMD`, `</dev/null CMD`, `2>&1 CMD`, `(CMD)`, `((CMD)) || CMD`, `$((CMD)) ; CMD`, `case a in a) CMD;; esac`, `case $(CMD) in *) :;; esac`,
	`[ -n "$(CMD)" ]`, `[[ $(CMD) ]]`, `echo "${x:-"$(CMD)"}"`, "echo \"`CMD`\"", "echo `echo \\`CMD\\``", `echo $(echo $(CMD))`, `echo "$(echo ")"; CMD)"`, `echo $(case a in a) CMD;; esac)`, `echo $(# comment )` + "\nCMD)", `echo ${x#$(CMD)}`, `echo ${x/a/$(CMD)}`, `echo ${x[$(CMD)]}`, `a[$(CMD)]=1`, `a=([$(CMD)]=1)`, `a=($(CMD))`,
	`x=$(CMD) y=2`, `x=$(CMD) ls`, `echo {a,$(CMD)}`, `echo {$(CMD)..3}`, `cd $(CMD)`, `cd src; CMD`, `echo "\$(evil2)"; CMD`, `echo '$(evil2)'$(CMD)`, `echo $'\'; evil2; \''; CMD`, `echo "a\"; evil2; \""; CMD`, `echo \"; CMD`, `echo \'; CMD`, `echo "'"; CMD; echo "'"`, `printf %s "$(CMD)"`, `printf '%d' 'a[$(evil1)]'; CMD`, `echo a\` + "\nCMD", `echo a \` + "\n; CMD", "CMD\\\n b", `true && CMD`, `false || CMD`, `false && CMD`,
	`let 'x=a[$(CMD)]'`, `let "x=$(CMD)"`, `((a[$(CMD)]++))`, `for ((;a[$(CMD)];)); do :; done`, `select x in a; do CMD; break; done <<<1`, `if CMD; then :; fi`, `until CMD; do break; done`, `x=CMD; ${x}`, `"$(echo CMD)"`, `$(echo CMD)`, "`echo CMD`", `{CMD,} `, `$'CMD'`, `""CMD`, `\CMD`, `CMD>out`, `CMD<a.txt`, `ls;CMD`, `ls&CMD`, `ls|CMD`, `ls||CMD;CMD`, `ls&&CMD`, `ls|&CMD`,
	"ls # a\\\nCMD", "ls '#' a\\\nCMD", "ls a#b \\\nc; CMD", "# x \\\nCMD", "ls;#\\\nCMD", `ls {,b} {a,}; CMD`, `ls ~'a' ~"$x" ~$x; CMD`,
	`: 'a[$(CMD)]'; echo $((_))`, `: 'a[$(CMD)]'; echo $(($_))`, `: 'a[$(CMD)]'; [[ $_ -eq 1 ]]`, `: 'a[$(CMD)]'; echo ${x:_}`, `[[ 'a[$(CMD)]' =~ .* ]]; echo $((BASH_REMATCH))`, `[[ 'a[$(CMD)]' =~ .* ]]; echo $((${BASH_REMATCH}))`,
	`: 'x=a[$(CMD)]'; echo $((BASH_COMMAND))`, `select x in a; do : $((REPLY)); break; done <<< 'a[$(CMD)]'`, `getopts x: o -x 'a[$(CMD)]'; echo $((OPTARG))`, `cd 'a[$(CMD)]'; echo $((OLDPWD))`, `echo $((BASH_EXECUTION_STRING)) 'a[$(CMD)]'`,
	`mapfile x <<< 'a[$(CMD)]'; echo $((x))`, `mapfile <<< 'a[$(CMD)]'; echo $((MAPFILE))`, `f() { : $((FUNCNAME)); }; f`, `f() { : $((x)); }; x='a[$(CMD)]' f`, `x='a[$(CMD)]' : ; : $((x))`, `x='a[$(CMD)]'; (( y = x ))`, `x='a[$(CMD)]'; y=x; : $((y))`, `x=1; x[$(CMD)]=2`,
	`echo ${x:-<(CMD)}`, `echo ${x:-$<(CMD)}`, `echo "${x:-<(CMD)}"`, `echo "${x:-$<(CMD)}"`, `echo ${x:->(CMD)}`, `x=<(CMD)`, `x=$<(CMD)`, `echo a$<(CMD)`, `echo "<(evil1)"; CMD`, `echo ${x/a/<(CMD)}`, `case <(CMD) in *) :;; esac`, `[[ -e <(CMD) ]]`, `echo ${x#<(CMD)}`,
	`a=(<(CMD))`, `echo $((1<(2))); CMD`, `cat <<< <(CMD)`, "cat <<E\n<(evil1)\nE\nCMD", `for x in <(CMD); do :; done`, `echo ${a[<(CMD)]}`,
	`env CMD`, `timeout 1 CMD`, `xargs CMD < a.txt`, `sh -c CMD`, `find . -exec CMD {} \;`, `sudo CMD`, `env -S 'CMD'`, `echo x > $(echo out)`, `echo x > o*`, `echo x >& out`, `echo x &>out`, `echo x 1<>out`, `: > out`, `> out`, `>> a.txt echo hi`, `exec > out; echo hi`, `exec 3>out`, `{ echo; } > out`, `echo x 2>&1 >out`, `echo x >out 2>&1`,
	`set -- -v 'a[$(CMD)]'; test "$@"`, `set -- -v 'a[$(CMD)]'; test $1 $2`, `x=-v; test $x 'a[$(CMD)]'`, `x="-v a[\$(CMD)]"; test $x`, `f() { CMD; }; g() { f; }; g`, `f() { unset -f ls; }; f; ls`, `ls() { :; }; unset -f ls; ls`, `readonly x='a[$(CMD)]'; echo $((x))`, `export x='a[$(CMD)]'; echo $((x))`, `x[0]='a[$(CMD)]'; echo $((x))`, `x+='a[$(CMD)]'; echo $((x))`, `printf -- '%s' -v; CMD`, `REPLY='a[$(CMD)]'; echo $((REPLY))`, `read <<< 'a[$(CMD)]'; echo $((REPLY))`, `x=1; read -r x <<< 'a[$(CMD)]'; echo $((x))`,
	`x=1; read -a x <<< 'a[$(CMD)]'; echo $((x))`, `x=1; : $((x=2)); : $((x))`, `for ((x=1;x<2;x++)); do :; done; CMD`, `x=y; y='a[$(CMD)]'; echo $((x))`, `LINENO='a[$(CMD)]'; echo $((LINENO))`, `unset RANDOM; RANDOM='a[$(CMD)]'; echo $((RANDOM))`, `x='a[$(CMD)]'; echo $[x]`, `x='a[$(CMD)]'; echo {1..$((x))}`, `x='a[$(CMD)]'; : >&$((x))`, `x='a[$(CMD)]'; a[x]=1`, `x='a[$(CMD)]'; a=([x]=1)`, `x='a[$(CMD)]'; printf %s "${a[@]:x}"`, `x='a[$(CMD)]'; shift $x`, `x='a[$(CMD)]'; return $x`, `x='a[$(CMD)]'; exit $x`, `x='a[$(CMD)]'; [ $x -eq 1 ]`, `x='a[$(CMD)]'; test "$x" -eq 1`, `x='a[$(CMD)]'; seq $x`, `x='a[$(CMD)]'; echo ${#a[x]}`, `x='a[$(CMD)]'; ulimit -n $x`, `x='a[$(CMD)]'; case 1 in $((x))) :;; esac`,
}

// idioms are everyday scripts.
var idioms = []string{
	`ls $(echo a)`, `x=a; cat "$x.txt"`, `cat *.txt`, `for f in *.txt; do wc -l "$f"; done`, `for i in {1..3}; do echo $i; done`, `i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; ls $i`,
	`cd src && cat c.txt`, `cd src; ls; cd ..; ls`, `(cd src && ls) | head -n 1`, `[ -f a.txt ] && cat a.txt || ls`, `while read -r l; do echo "$l"; done < a.txt | sort`, `cat {a,b}.txt 2>/dev/null | grep -v x`,
	`if [[ -d src ]]; then ls src; else ls; fi`, `x=$(ls | wc -l); echo "$x"`, `cat <<E | grep a` + "\na $x\nE", `f() { ls src; }; f; f`, `set -euo pipefail; ls`, `case a in a|b) ls;; *) cat a.txt;; esac`,
	`find . -name '*.txt' -exec cat {} +`, `env LC_ALL=C ls`, `timeout 5 sort a.txt`, `git log --oneline | head`, `printf '%s\n' a b | sort`, `echo "$((1 + 2))" $# $?`, `ls src/../a.txt "a b" a\ b`, `LC_ALL=C sort a.txt | uniq`,
	`ls [{ab].txt`, `ls [ab].txt [[:alpha:]].txt [!x].txt`, `ls ["a"b].txt`, `ls a[/]b [a`,
}

// newGenerator makes random choices, the same for each seed.
func newGenerator(seed uint64) *generator {
	r := rand.New(rand.NewPCG(seed, 1))
	return &generator{choose: r.IntN}
}

const generated = 1500 // scripts, of which few are understood; the fuzz target makes more

func TestBashAgrees(t *testing.T) {
	t.Run("bash", func(t *testing.T) { newBash(t).agrees(t, generated) })
	for name, argv := range map[string][]string{"bash as sh": {"bash", "--posix"}, "dash": {"dash"}, "busybox": {"busybox", "sh"}} {
		t.Run(name, func(t *testing.T) { newBash(t, argv...).agrees(t, generated/5) })
	}
}

func (b *bash) agrees(t *testing.T, scripts uint64) {
	understood, readOnly := 0, 0
	check := func(script string) {
		a := b.analyze(script)
		if len(a.Unclear) > 0 {
			return // it promises nothing
		}
		understood++
		if a.Effect() == shell.ReadOnly {
			readOnly++
		}
		started, changed := b.run(t, script)
		if why := contradiction(a, started, changed); why != "" {
			t.Errorf("%s\n%s", script, why)
		}
	}
	for _, trick := range slices.Concat(tricks, idioms) {
		check(strings.ReplaceAll(trick, "CMD", "evil1"))
	}
	for seed := range scripts {
		check(newGenerator(seed).script())
	}
	t.Logf("of %d generated and %d written scripts %d were understood, %d of them read-only", scripts, len(tricks)+len(idioms), understood, readOnly)
	if understood < 50 || readOnly < 10 {
		t.Errorf("only %d scripts were understood, %d of them read-only: the test shows little", understood, readOnly)
	}
}

func (b *bash) analyze(script string) shell.Analysis {
	return shell.Analyze(script, shell.Options{Dialect: b.dialect, Dir: b.dir, Home: filepath.Dir(b.dir)})
}

// TestBashCatches shows that the comparison finds mistakes.
func TestBashCatches(t *testing.T) {
	b := newBash(t)
	mistakes := map[string]func(a *shell.Analysis){
		"nothing is unclear":       func(a *shell.Analysis) { a.Unclear = nil },
		"only the first command":   func(a *shell.Analysis) { a.Commands = a.Commands[:min(1, len(a.Commands))] },
		"no redirects":             func(a *shell.Analysis) { a.Redirects = nil },
		"every word is known":      func(a *shell.Analysis) { exactly(a) },
		"evil1 is not a command":   func(a *shell.Analysis) { a.Commands = slices.DeleteFunc(a.Commands, named("evil1")) },
		"no command from the back": func(a *shell.Analysis) { a.Commands = a.Commands[:max(0, len(a.Commands)-1)] },
	}
	for name, weaken := range mistakes {
		t.Run(name, func(t *testing.T) {
			for i, trick := range slices.Concat(idioms, tricks) {
				script := strings.ReplaceAll(trick, "CMD", "evil1")
				a := b.analyze(script)
				weaken(&a)
				started, changed := b.run(t, script)
				if contradiction(a, started, changed) != "" {
					t.Logf("caught by script %d: %s", i, script)
					return
				}
			}
			t.Error("the mistake was not caught")
		})
	}
}

func exactly(a *shell.Analysis) {
	for i := range a.Commands {
		a.Commands[i].Vague = nil
	}
}

func named(name string) func(shell.Command) bool {
	return func(c shell.Command) bool { return c.Argv[0] == name }
}

// FuzzBashAgrees turns bytes into choices, so that only the generator's scripts
// are run.
func FuzzBashAgrees(f *testing.F) {
	b := newBash(f)
	for seed := range byte(8) {
		f.Add([]byte{seed, 11, seed * 7, 3, 5, seed, 200, 13, 17, 19, 23, 29, 31})
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		g := &generator{choose: func(n int) int {
			if len(choices) < 2 {
				return 0
			}
			v := int(choices[0])<<8 | int(choices[1])
			choices = choices[2:]
			return v % n
		}}
		script := g.script()
		a := b.analyze(script)
		if len(a.Unclear) > 0 {
			return
		}
		started, changed := b.run(t, script)
		if why := contradiction(a, started, changed); why != "" {
			t.Errorf("%s\n%s", script, why)
		}
	})
}
