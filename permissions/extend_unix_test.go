//go:build unix

package permissions_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
)

var update = flag.Bool("update", false, "write docs/rule-arguments.md")

// TestPrefixRulesAndArguments: a final * does not extend to arguments that run
// programs or write files.
func TestPrefixRulesAndArguments(t *testing.T) {
	for _, test := range []struct {
		rule, command string
		want          core.Verdict
	}{
		{"shell(find *)", "find . -name x", allow},
		{"shell(find *)", "find build -delete", ask},
		{"shell(find * )", "find . -fprint x", ask},
		{"shell(find build -delete *)", "find build -delete -depth", allow},
		{"shell(sort *)", "sort -u f", allow},
		{"shell(sort *)", "sort -uof f", ask},
		{"shell(sort *)", "sort --outp=f f", ask},
		{"shell(sed *)", "sed -n 1p f", allow},
		{"shell(sed *)", "sed -n 'w out' f", ask},
		{"shell(sed *)", "sed 1e f", ask},
		{"shell(sed -i *)", "sed -i s/a/b/ f", allow},
		{"shell(sed -i *)", "sed -i s/a/b/e f", ask},
		{"shell(git log *)", "git log --oneline -3", allow},
		{"shell(git log *)", "git log --output=x", ask},
		{"shell(git *)", "git -c core.pager=x log", ask},
		{"shell(git *)", "git bisect run ./x", ask},
		{"shell(git fetch *)", "git fetch --upload-pack=x", ask},
		{"shell(go test *)", "go test -count=1 ./...", allow},
		{"shell(go test *)", "go test -exec ./x ./...", ask},
		{"shell(go test *)", "go test --toolexec=./x ./...", ask},
		{"shell(go vet *)", "go vet -vettool=./x", ask},
		{"shell(go test -exec *)", "go test -exec ./x", allow},
		{"shell(tar -tf *)", "tar -tf a.tar --checkpoint-action=exec=x", ask},
		{"shell(tar *)", "tar xf a.tar", ask},
		{"shell(rg *)", "rg --pre ./x y", ask},
		{"shell(env *)", "env A=b ls", ask},
		{"shell(timeout 60 go test *)", "timeout 60 go test ./...", allow},
		{"shell(timeout 60 go test *)", "timeout 60 go test -exec x", ask},
		{"shell(xargs *)", "xargs touch", ask},
		{"shell(xargs wc *)", "xargs wc -l", allow},
		{"shell(timeout *)", "timeout 5 make", ask},
		{"shell(awk *)", "awk '{print $1}' f", allow},
		{"shell(awk *)", `awk 'BEGIN{system("x")}'`, ask},
		{"shell(python3 *)", "python3 -c x", ask},
		{"shell(python3 manage.py *)", "python3 manage.py -c x", allow},
		{"shell(make *)", "make -j4 all", allow},
		{"shell(make *)", "make --eval=x", ask},
		{"shell(sort *)", "sort $x", ask},
		{"shell(sort *)", "sort ./$x", allow},
		{"shell(*)", "find build -delete", allow},
	} {
		o := options(permissions.ModeDefault, user(settings(test.rule, "", "")))
		d := newPolicy(t, o).Decide(t.Context(), request("shell", script(test.command)))
		if d.Verdict != test.want {
			t.Errorf("%s with %s: %s (%s), want %s", test.command, test.rule, d.Verdict, d.Reason, test.want)
		}
	}
}

// TestArgumentsThatAct runs commands: each creates the file hit, and a rule for
// its program does not allow it.
func TestArgumentsThatAct(t *testing.T) {
	for _, command := range []string{
		"find f -exec touch hit {} +", "find f -fprint hit", "find f -execdir touch hit ';'", "sort -o hit f", "sort --outpu=hit f", "sed 'w hit' f", "sed '1e touch hit' f", "sed -n --expression='w hit' f",
		"awk 'BEGIN{system(\"touch hit\")}'", "awk '{print > \"hit\"}' f", "env touch hit", "timeout 5 touch hit", "nice touch hit", "xargs touch hit <f", "split --filter='touch hit' f",
		"tar -cf a.tar f --checkpoint=1 --checkpoint-action=exec='touch hit'", "tar cf hit f", "tar --use-compress-program='touch hit;cat' -cf a.tar f", "git -c alias.x='!touch hit' x", "git diff --no-index --output=hit f g",
		"uniq f hit", "sh -c 'touch hit'", "python3 -c 'open(\"hit\",\"w\")'", "dd if=f of=hit", "make --eval='x:;touch hit' x", "perl -e 'open(F,\">hit\")'", "bash -c 'touch hit'", "rg --pre 'touch' x hit",
	} {
		program := strings.Fields(command)[0]
		if _, err := exec.LookPath(program); err != nil {
			continue
		}
		m := newMachine(t, permissions.ModeDefault, user(settings("shell("+program+" *)", "", "")))
		if d := m.decide(t, command); d.Verdict == allow {
			t.Errorf("%s is allowed by %s", command, d.Rule)
		}
		if program == "rg" {
			continue // judged, but it runs the program only on files
		}
		m.write(t, filepath.Join(m.ws, "f"), "hit\n")
		m.write(t, filepath.Join(m.ws, "g"), "other\n")
		run := exec.CommandContext(t.Context(), "bash", "-c", command)
		run.Dir = m.ws
		out, _ := run.CombinedOutput() // git diff exits with 1
		if _, err := os.Stat(filepath.Join(m.ws, "hit")); err != nil {
			t.Errorf("%s does nothing that the table is about: %s", command, out)
		}
	}
}

func TestRuleArgumentsPage(t *testing.T) {
	const page = "../docs/rule-arguments.md"
	want := permissions.RuleArguments() + "\nNext: [the sandbox](sandbox.md)\n"
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("%s is not current (%v): run go test ./permissions -run TestRuleArgumentsPage -update", page, err)
	}
}
