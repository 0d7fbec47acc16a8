package shell_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/permissions/shell"
)

// touches are scripts and all of their accesses, in the order of the script.
var touches = []struct{ script, want string }{
	{"cat a b", "read /work/a, read /work/b"},
	{"cat ./a ../b /c ~/d $HOME/e", "read /work/a, read /work/../b, read /c, read /home/me/d, read /home/me/e"},
	{"cat *.go", "read /work/*.go glob"},
	{"cat 'a*' b\\* \"c?\"", "read /work/a*, read /work/b*, read /work/c?"},
	{"cat a'*'*", `read /work/a\** glob`},
	{"cat .env*", "read /work/.env* glob"},
	{"cat .en[v]", "read /work/.en* glob"},
	{"cat .en[[:alpha:]]", "read /work/.en* glob"},
	{"cat a/[!x]y/[]z]", "read /work/a/*y/* glob"},
	{"cat a[b/c]d", "read /work/a[b/c]d"},
	{"cat < a > b 2>> c", "read /work/a, write /work/b, write /work/c"},
	{"ls", "list /work"},
	{"ls -la a", "list /work/a"},
	{"ls -R", "list /work recursive"},
	{"tree", "list /work recursive skips-hidden"},
	{"tree -a", "list /work recursive"},
	{"du -sh .", "list /work recursive"},
	{"rg x", "read /work recursive skips-hidden"},
	{"rg x src lib", "read /work/src recursive skips-hidden, read /work/lib recursive skips-hidden"},
	{"rg -u x", "read /work recursive skips-hidden"},
	{"rg -uu x", "read /work recursive"},
	{"rg --hidden x", "read /work recursive"},
	{"rg -. x", "read /work recursive"},
	{"rg -g '*.go' x", "read /work recursive skips-hidden"},
	{"rg -g '*' x", "read /work recursive"},
	{"rg -g '.env' x", "read /work recursive"},
	{"rg -f pats x", "read /work/pats, read /work/x recursive skips-hidden"},
	{"rg -e a b", "read /work/b recursive skips-hidden"},
	{"rg --files", "list /work recursive skips-hidden"},
	{"grep x", ""},
	{"grep x f", "read /work/f"},
	{"grep -r x", "read /work recursive"},
	{"grep -rn x src", "read /work/src recursive"},
	{"grep -d recurse x src", "read /work/src recursive"},
	{"grep -f pats f", "read /work/pats, read /work/f"},
	{"grep --file=pats --exclude-from ex f", "read /work/pats, read /work/ex, read /work/f"},
	{"grep x *", "read /work/* glob recursive, read /work recursive"},
	{"grep x *.go", "read /work/*.go glob recursive"},
	{"find", "list /work recursive"},
	{"find a b -newer c", "list /work/a recursive, list /work/b recursive, list /work/c"},
	{"find . -type f -exec cat {} +", "list /work recursive, read /work recursive"},
	{"find src -type f -exec grep -l x {} \\;", "list /work/src recursive, read /work/src recursive"},
	{"find src -type f -print0 | xargs -0 grep -l x", "list /work/src recursive, read /work/src recursive"},
	{"find . -type f -name '*.go' -print0 | xargs -0 -n 10 wc -l | sort -n", "list /work recursive, read /work recursive"},
	{"find . -type f -print0 2>/dev/null | xargs -0 -I{} cat {} 2>/dev/null", "list /work recursive, read /work recursive"},
	{"sed -n 1p f g", "read /work/f, read /work/g"},
	{"awk '{print}' FS=: f", "read /work/f"},
	{"jq . f", "read /work/f"},
	{"jq --rawfile a b --slurpfile c d . e", "read /work/b, read /work/d, read /work/e"},
	{"jq --arg a b .x", ""},
	{"diff -r --no-dereference a b", "read /work/a recursive, read /work/b recursive"},
	{"diff --from-file=a b", "read /work/a, read /work/b"},
	{"date -r f", "list /work/f"},
	{"stat f", "list /work/f"},
	{"test -f a", "list /work/a"},
	{"[ a -nt b ]", "list /work/a, list /work/b"},
	{"[[ -f a && ! -d b ]]", "list /work/a, list /work/b"},
	{"cd src && cat a", "list /work/src, read /work/src/a"},
	{"cd src; cat a", "list /work/src, read /work/src/a, read /work/a"},
	{"cd src && cat a; cat b", "list /work/src, read /work/src/a, read /work/src/b, read /work/b"},
	{"cd src && cat ../a", "list /work/src, read /work/src/../a"},
	{"cd .. && cat a", "list /, read /a"},
	{"cd /etc && cat passwd", "list /etc, read /etc/passwd"},
	{"cd && cat a", "list /home/me, read /home/me/a"},
	{"(cd src; cat a) ; cat b", "list /work/src, read /work/src/a, read /work/a, read /work/b"},
	{"cd src || cat a", "list /work/src, read /work/a"},
	{"cd src & cat a", "list /work/src, read /work/a"},
	{"cd src | cat a", "list /work/src, read /work/a"},
	{"x=f; cat \"$x\" $x.txt", "read /work/f, read /work/f.txt"},
	{"for f in a b; do cat $f; done", "read /work/a, read /work/b"},
	{"for f in *.go; do cat \"$f\"; done", "read /work/*.go glob"},
	{"for d in */; do cat \"$d/x\"; done", "read /work/*//x glob"},
	{"for i in {1..2}; do cat f$i; done", "read /work/f1, read /work/f2"},
	{"cat {a,b}.txt", "read /work/a.txt, read /work/b.txt"},
	{"i=1; while ls; do i=$((i+1)); cat f$i; done", "list /work, read /work/f* glob"},
	{"bash -c 'cat a'", "read /work/a"},
	{"cd src && bash -c 'cat a'", "list /work/src, read /work/src/a"},
	{"timeout 5 cat a", "read /work/a"},
	{"cat <(sort a)", "read /work/a"},
	{"cat /dev/null /dev/stdin - /dev/fd/3", "read /work/-"},
	{"git show HEAD:.env", "read /work/.env"},
	{"git log -p -- .env", "read /work/.env"},
	{"git diff HEAD~1 ':(glob)**/.env'", "read /work/HEAD~1, read /work/(glob)**/.env"},
	{"git cat-file -p main:a/secrets.yml", "read /work/a/secrets.yml"},
	{"git grep --untracked x", "read /work recursive, read /work/x"},
	{"git -C /other log", "list /other"},
	{"git -C sub status", "list /work/sub"},
	{"git diff /etc/passwd ../x", "read /etc/passwd recursive, read /work/../x recursive"},
	{"go list ./... /etc/...", "list /work recursive, list /work recursive, list /etc recursive"},
	{"rm -r a b", "delete /work/a recursive, delete /work/b recursive"},
	{"mv a b", "read /work/a recursive, delete /work/a recursive, write /work/b recursive, list /work/b, list /work/b/a"},
	{"cp a b", "read /work/a, write /work/b recursive, list /work/b, list /work/b/a"},
	{"cp -n a b", "read /work/a, write /work/b recursive"},
	{"touch ~/a", "write /home/me/a"},
	{"ls | tee a", "list /work, write /work/a"},
	{"wc -l a > b", "write /work/b, read /work/a"},
	{"echo a > /dev/null", ""},
	{"cat \"a b\" c\\ d", "read /work/a b, read /work/c d"},
	{"ls -- -a", "list /work/-a"},
	{"head -n 5 a", "read /work/a"},
	{"head -n5 -q a", "read /work/a"},
	{"sort -k 2 a", "read /work/a"},
	{"cut -d , -f 1 a", "read /work/a"},
	{"realpath --relative-to=a b", "list /work/a, list /work/b"},
}

func TestAccesses(t *testing.T) {
	for _, c := range touches {
		a := shell.Analyze(c.script, shell.Options{Dir: "/work", Home: "/home/me"})
		if f, bad := a.Offence(); bad && a.Effect() == shell.Unknown {
			t.Errorf("%s: %s: %s", c.script, f.Text, f.Why)
		}
		if got := describe(&a); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.script, got, c.want)
		}
	}
}

func describe(a *shell.Analysis) string {
	var out []string
	note := func(x *shell.Access) {
		text := fmt.Sprint(x.Kind, " ", x.Path)
		if x.Glob {
			text += " glob"
		}
		if x.Recursive {
			text += " recursive"
		}
		if x.SkipsHidden {
			text += " skips-hidden"
		}
		out = append(out, text)
	}
	for x := range a.Accesses() {
		note(x)
	}
	return strings.Join(out, ", ")
}

func TestArgv(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{`rm -rf "a b" 'c'd e\ f`, `["rm" "-rf" "a b" "cd" "e f"] []`},
		{`rm "$x" *.o a`, `["rm" "\"$x\"" "*.o" "a"] [1 2]`},
		{`$cmd a`, `["$cmd" "a"] [0]`},
		{`timeout 5 git push`, `["timeout" "5" "git" "push"] [] ["git" "push"] []`},
		{`find . -exec rm {} \;`, `["find" "." "-exec" "rm" "{}" ";"] [] ["rm" "{}"] [1]`},
		{`ls | xargs rm -f`, `["ls"] [] ["xargs" "rm" "-f"] [] ["rm" "-f" "…"] [2]`},
		{`bash -c 'git push; ls'`, `["bash" "-c" "git push; ls"] [] ["git" "push"] [] ["ls"] []`},
		{`sudo -u root rm x`, `["sudo" "-u" "root" "rm" "x"] [] ["root" "rm" "x"] []`},
		{`env A=b git push`, `["env" "A=b" "git" "push"] [] ["git" "push"] []`},
		{`for i in 1 2; do rm $i; done`, `["rm" "1"] [] ["rm" "2"] []`},
		{`\rm x`, `["rm" "x"] []`},
		{`"rm" x`, `["rm" "x"] []`},
	} {
		a := shell.Analyze(c.script, shell.Options{Dir: "/work"})
		var got []string
		for _, cmd := range a.Commands {
			got = append(got, fmt.Sprintf("%q %v", cmd.Argv, cmd.Vague))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.script, text, c.want)
		}
	}
}

// TestOffence shows that the offending part and its position are reported.
func TestOffence(t *testing.T) {
	for _, c := range []struct{ script, text string }{
		{"ls -la && curl http://x && cat f", "curl http://x"},
		{"ls | while read l; do rm \"$l\"; done", `rm "$l"`},
		{"cat f; echo \"$(nc -l 1)\"", "nc -l 1"},
		{"echo x > out", "> out"},
		{"eval \"$x\"", `eval "$x"`},
		{"ls; bash -c 'cat f; curl x'", "curl x"},
	} {
		a := shell.Analyze(c.script, shell.Options{Dir: "/work"})
		f, bad := a.Offence()
		if !bad || f.Text != c.text || f.Why == "" {
			t.Errorf("%s: %+v, want %q", c.script, f, c.text)
		}
		if !strings.Contains(c.script, "bash -c") && !strings.HasPrefix(c.script[f.Offset:], c.text) {
			t.Errorf("%s: offset %d is not that of %q", c.script, f.Offset, c.text)
		}
	}
}

// TestSh covers what other shells than bash may parse differently.
func TestSh(t *testing.T) {
	for script, want := range map[string]shell.Effect{
		"ls | wc -l":                    shell.ReadOnly,
		"for f in a b; do cat $f; done": shell.ReadOnly,
		"export LANG=C; sort f":         shell.ReadOnly,
		"f() { ls; }; f":                shell.ReadOnly,
		"[ -f a ] && cat a":             shell.ReadOnly,
		"[[ -f a ]]":                    shell.Unknown,
		"cat <(ls)":                     shell.Unknown,
		"ls &> /dev/null":               shell.Unknown,
		"cat <<< x":                     shell.Unknown,
		"cat {a,b}":                     shell.Unknown,
		"cat $'a'":                      shell.Unknown,
		"a=(b)":                         shell.Unknown,
		"local x='a[$(id)]'; let x":     shell.Unknown,
		"export PATH=.":                 shell.Unknown,
		"function f { ls; }":            shell.Unknown,
		"ls |& cat":                     shell.Unknown,
		"echo ${x/a/b}":                 shell.Unknown,
		"select x in a; do ls; done":    shell.Unknown,
		"time ls":                       shell.ReadOnly,
		"declare x=1":                   shell.Unknown,
	} {
		a := shell.Analyze(script, shell.Options{Dialect: "sh", Dir: "/work"})
		if a.Effect() != want {
			f, _ := a.Offence()
			t.Errorf("%s: %v (%+v), want %v", script, a.Effect(), f, want)
		}
	}
	for _, dialect := range []string{"zsh", "fish", "cmd", "powershell"} {
		a := shell.Analyze("ls", shell.Options{Dialect: dialect, Dir: "/work"})
		if a.Effect() != shell.Unknown || len(a.Unclear) == 0 {
			t.Errorf("%s: %+v", dialect, a)
		}
	}
}

// TestUnknownPlaces shows that without a directory or home nothing is guessed.
func TestUnknownPlaces(t *testing.T) {
	for _, script := range []string{"cat a", "ls", "rg x", "cat ~/x", "cat $HOME/x", "cd", "cat < a", "[[ -f a ]]", "git status", "cd a && ls"} {
		a := shell.Analyze(script, shell.Options{})
		if a.Effect() != shell.Unknown {
			t.Errorf("%s: %v", script, a.Effect())
		}
	}
}

func TestZeroAndStrings(t *testing.T) {
	var e shell.Effect
	if e != shell.Unknown || e.String() != "unknown" || shell.Writes.String() != "writes" || shell.ReadOnly.String() != "read-only" {
		t.Errorf("effects: %v %v %v", e, shell.Writes, shell.ReadOnly)
	}
	kinds := []string{shell.List.String(), shell.Read.String(), shell.Write.String(), shell.Delete.String(), shell.Network.String()}
	if want := []string{"list", "read", "write", "delete", "network"}; !slices.Equal(kinds, want) {
		t.Errorf("kinds: %v, want %v", kinds, want)
	}
	if a := shell.Analyze("", shell.Options{}); a.Effect() != shell.ReadOnly || len(a.Commands) != 0 {
		t.Errorf("the empty script: %+v", a)
	}
}

// FuzzAnalyze shows that no script makes Analyze panic or grow without bounds,
// and that all reported offsets are within the script.
func FuzzAnalyze(f *testing.F) {
	for _, r := range rows(f) {
		f.Add(r.Script, len(r.Script)%2 == 0)
	}
	f.Fuzz(func(t *testing.T, script string, sh bool) {
		o := shell.Options{Dir: "/work", Home: "/home/me"}
		if sh {
			o.Dialect = "sh"
		}
		a := shell.Analyze(script, o)
		if len(a.Commands) > 2000 || len(a.Unclear) > 100 || len(a.Redirects) > 100_000 {
			t.Errorf("%d commands, %d findings, %d redirects", len(a.Commands), len(a.Unclear), len(a.Redirects))
		}
		for _, u := range a.Unclear {
			if u.Offset < 0 || u.Offset > len(script) || u.Why == "" {
				t.Errorf("finding %+v", u)
			}
		}
		for _, c := range a.Commands {
			if len(c.Argv) == 0 || c.Offset < 0 || c.Offset > len(script) || (c.Effect != shell.ReadOnly) != (c.Why != "") {
				t.Errorf("command %+v", c)
			}
		}
		for x := range a.Accesses() {
			if x.Kind != shell.Network && !strings.HasPrefix(x.Path, "/") {
				t.Errorf("access %+v", x)
			}
		}
	})
}
