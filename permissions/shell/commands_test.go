package shell_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/permissions/shell"
)

// row is a line of testdata/commands.jsonl.
type row struct {
	Script    string
	Want      string // readonly, writes or ask
	Technique string // what a hostile script tries, or what a benign one is
	Why       string // occurs in the reason
	Source    string // where the technique was seen, if it is public
}

func rows(t testing.TB) []row {
	t.Helper()
	f, err := os.Open("testdata/commands.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []row
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r row
		d := json.NewDecoder(strings.NewReader(lines.Text()))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil {
			t.Fatalf("line %d: %v", len(all)+1, err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func verdict(a *shell.Analysis) string {
	switch a.Effect() {
	case shell.ReadOnly:
		return "readonly"
	case shell.Writes:
		return "writes"
	}
	return "ask"
}

func TestCommands(t *testing.T) {
	techniques, wanted := map[string]bool{}, map[string]int{}
	for i, r := range rows(t) {
		techniques[r.Technique] = true
		wanted[r.Want]++
		a := shell.Analyze(r.Script, shell.Options{Dir: "/work", Home: "/home/me"})
		offence, _ := a.Offence()
		if got := verdict(&a); got != r.Want {
			t.Errorf("line %d, %s: %q is %s, want %s (%s: %s)", i+1, r.Technique, short(r.Script), got, r.Want, offence.Text, offence.Why)
			continue
		}
		if reason := offence.Text + " " + offence.Why; !strings.Contains(reason, r.Why) {
			t.Errorf("line %d, %s: %q: the reason is %q, want %q in it", i+1, r.Technique, short(r.Script), reason, r.Why)
		}
		if r.Want != "readonly" && (r.Why == "" || offence.Why == "") {
			t.Errorf("line %d, %s: %q has no reason", i+1, r.Technique, short(r.Script))
		}
	}
	t.Logf("%v by %d techniques", wanted, len(techniques))
	if total := wanted["readonly"] + wanted["writes"] + wanted["ask"]; total < 400 || wanted["readonly"] < 120 || len(techniques) < 25 {
		t.Errorf("%d cases, %d of them benign, %d techniques: want 400, 120, 25", total, wanted["readonly"], len(techniques))
	}
}

func short(s string) string { return s[:min(len(s), 100)] }
